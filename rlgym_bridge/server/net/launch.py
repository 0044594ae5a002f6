"""Start bot processes as RLBot does, watch them, and end them with all their children."""

import logging
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from rlgym_bridge.server.game.roster import AgentSeat
from rlgym_bridge.server.net.callers import MARK, MARK_VARIABLE
from rlgym_bridge.user_input.arguments import shorten_text
from rlgym_bridge.user_input.text_files import check_file

_log = logging.getLogger(__name__)

_LOCAL: Final = {"localhost": "127.0.0.1", "": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Address at which this machine finds a server that listens on all addresses."""

_APART: Final[dict[str, Any]] = (
    {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    if sys.platform == "win32"
    else {"start_new_session": True}
)
"""A Ctrl-C in the terminal is for the server, which ends the bots in good order."""

_TAIL_LINES: Final = 12
_TAIL_BYTES: Final = 8192
_SEARCHED_BYTES: Final = 1 << 24
_LONGEST_LOG: Final = 64 << 20  # bytes; a match of an hour writes some kilobytes
_KEPT_LOG: Final = 1 << 20  # bytes of the beginning that a longer one keeps
_SHOWN_COMMAND: Final = 500  # letters; a shorter one is shown whole, so that it can be entered
_TERMINATE_SECONDS: Final = 2.0  # a process has this long to end after it was asked to


@dataclass
class BotProcess:
    """One started agent process.

    Attributes:
        seats: Seats it is to fill: one, or all cars of a hivemind.
        log_path: File with everything it prints.
        popen: The shell that runs its command.
        early_exit_code: Its exit code, if it has ended before the match did.
        exceptions: Python's tracebacks in the first 16 MiB of its log when the match ended.
        was_told_to_end: It did not end by itself, and was made to.
    """

    seats: list[AgentSeat]
    log_path: Path
    popen: subprocess.Popen[bytes]
    early_exit_code: int | None = None
    exceptions: int = 0
    was_told_to_end: bool = False
    _family: dict[int, psutil.Process] = field(default_factory=dict)

    @property
    def exit_code(self) -> int | None:
        """Return its exit code, None while it runs."""
        return self.popen.poll()

    @property
    def has_ended(self) -> bool:
        """Tell whether nothing of it runs any more.

        A command may end with status 0 and leave the bot running: then a process of its family lives.
        """
        code = self.exit_code
        return code is not None and (code != 0 or not self._has_heirs())

    def _has_heirs(self) -> bool:
        """Tell whether a process lives that its shell started, or that is in its shell's session."""
        if not self.living():
            self.find_heirs()
        return bool(self.living())

    def find_heirs(self) -> None:
        """Remember those of its shell's children and session that its living processes have not started."""
        pid = self.popen.pid
        if self.exit_code is not None and psutil.pid_exists(pid):
            return  # the system has given the number to a stranger, which it does when no heir has it
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.ppid() == pid or (sys.platform != "win32" and os.getsid(process.pid) == pid):
                    self._family[process.pid] = process

    @property
    def log_tail(self) -> str:
        """Return the last lines it has printed; why not, where they cannot be read."""
        return read_tail(self.log_path)

    def shorten_log(self) -> None:
        """Cut a log beyond 64 MiB down to its first MiB; what is printed from then on follows."""
        with suppress(OSError):
            about = self.log_path.lstat()
            if stat.S_ISREG(about.st_mode) and about.st_size > _LONGEST_LOG:
                os.truncate(self.log_path, _KEPT_LOG)
                with self.log_path.open("ab") as file:
                    file.write(f"\n[{about.st_size - _KEPT_LOG:,} bytes were cut here]\n".encode())

    def note_end(self) -> None:
        """Note its exit code and the exceptions in its log; called before the match closes connections."""
        self.early_exit_code = self.exit_code
        with suppress(OSError, ValueError):
            check_file(self.log_path, "a log")
            with self.log_path.open("rb") as file:
                self.exceptions = file.read(_SEARCHED_BYTES).count(b"Traceback (most recent call last)")

    def watch_family(self) -> None:
        """Remember its children now, so that they are found when their parent has gone."""
        try:
            parent = psutil.Process(self.popen.pid)
            for process in (parent, *parent.children(recursive=True)):
                self._family[process.pid] = process
        except psutil.Error:
            return  # it has gone, or is not ours to look at

    def living(self) -> list[psutil.Process]:
        """List those of its processes that still run."""
        self.watch_family()
        self.popen.poll()  # else the shell stays as a zombie
        return [one for one in self._family.values() if _is_alive(one)]


def read_tail(log_path: Path) -> str:
    """Return the last lines of a log; why not, where they cannot be read."""
    try:
        check_file(log_path, "a log")  # whose bot may have put a pipe in its place
        with log_path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        return f"(cannot be read: {error})"
    return "\n".join(text.splitlines()[-_TAIL_LINES:])


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def processes_needed(agents: list[AgentSeat]) -> list[list[AgentSeat]]:
    """Group the seats that are driven by one process.

    Args:
        agents: All seats of a match.

    Returns:
        A list of groups: a hivemind is one for each folder, command, name and team; every other
        bot and script is alone. Agents without a command are left out: the user starts them.
    """
    groups: dict[tuple[object, ...], list[AgentSeat]] = {}
    for seat in agents:
        if not seat.run_command:
            continue
        key: tuple[object, ...] = (seat.team, seat.index)
        if seat.hivemind:
            key = (seat.root_dir, seat.run_command, seat.agent_id, seat.team)
        groups.setdefault(key, []).append(seat)
    return list(groups.values())


def launch(seats: list[AgentSeat], host: str, port: int, log_dir: Path) -> BotProcess:
    """Start the process for a group of seats.

    Its command is given to the shell in the bot's folder; `python` is the one that runs this
    server, unless the bot's own environment says otherwise.

    Args:
        seats: Seats that the process is to fill; the first one says how to start it.
        host: Address of this server.
        port: Port of this server.
        log_dir: Folder for its log.

    Returns:
        The process. A command that cannot be run ends it at once, with the shell's words in its
        log.
    """
    seat = seats[0]
    environment = dict(os.environ)
    scripts = str(Path(sys.executable).parent)
    environment["PATH"] = scripts + os.pathsep + environment.get("PATH", "")
    environment.update(seat.environment)
    environment[MARK_VARIABLE] = MARK
    environment["RLBOT_AGENT_ID"] = seat.agent_id
    environment["RLBOT_SERVER_IP"] = _LOCAL.get(host, host)
    environment["RLBOT_SERVER_PORT"] = str(port)
    safe_name = re.sub(r"[^\w.-]+", "_", seat.name)[:80]
    log_path = log_dir / f"{seat.team}-{seat.index}-{safe_name}.log"
    if log_path.exists() and not log_path.is_file():  # left there by a bot: opening a pipe waits for ever
        log_path.unlink()
    log_path.open("wb").close()
    with log_path.open("ab") as log:  # so that what is printed after `shorten_log` goes to its end
        try:
            popen = subprocess.Popen(
                seat.run_command, shell=True, cwd=seat.root_dir or None, env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, **_APART,
            )  # fmt: skip
        except (OSError, ValueError) as error:  # no such folder; a NUL or = where none may be
            log.write(f"cannot be started: {error}\n".encode())
            log.flush()
            popen = subprocess.Popen(
                [sys.executable, "-c", "raise SystemExit(127)"], stdin=subprocess.DEVNULL
            )
    _log.info(
        "started %s (%s): %s",
        shorten_text(seat.name),
        seat.side,
        shorten_text(seat.run_command, _SHOWN_COMMAND),
    )
    _log.debug("started %s with %r in %s", seat.label, seat.run_command, seat.root_dir)
    return BotProcess(seats, log_path, popen)


def launch_again(process: BotProcess, host: str, port: int) -> BotProcess:
    """End a bot process at once and start it anew, with a log of its own in the folder `restarted`.

    Args:
        process: The process.
        host: Address of this server.
        port: Port of this server.
    """
    end_all([process], 0.0)
    log_dir = process.log_path.parent / "restarted"
    log_dir.mkdir(exist_ok=True)
    return launch(process.seats, host, port, log_dir)


def end_all(processes: list[BotProcess], patience: float) -> None:
    """End bot processes with everything they have started.

    Args:
        processes: The bots; those that have ended already are fine.
        patience: Seconds in which they may leave by themselves.
    """
    _wait(processes, patience)
    for one in processes:
        one.find_heirs()
        one.was_told_to_end = bool(one.living())
    for process in _living(processes):
        _try(process.terminate)
    _wait(processes, _TERMINATE_SECONDS)
    for process in _living(processes):
        _log.warning("process %d does not end, killed", process.pid)
        _try(process.kill)
    _wait(processes, _TERMINATE_SECONDS)


def _living(processes: list[BotProcess]) -> list[psutil.Process]:
    return [one for process in processes for one in process.living()]


def _wait(processes: list[BotProcess], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while _living(processes) and time.monotonic() < deadline:
        time.sleep(0.02)


def _try(action: Callable[[], None]) -> None:
    try:
        action()
    except psutil.Error:
        return  # it ended meanwhile
