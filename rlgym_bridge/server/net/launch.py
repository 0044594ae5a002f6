"""Start bot processes as RLBot does, watch them, and end them with all their children."""

import ctypes
import itertools
import logging
import math
import os
import re
import secrets
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from rlgym_bridge.server.game.roster import AgentSeat
from rlgym_bridge.user_input.arguments import shorten_text
from rlgym_bridge.user_input.stop_signals import apart
from rlgym_bridge.user_input.text_files import check_file

_log = logging.getLogger(__name__)

MARK_VARIABLE: Final = "RLGYM_BRIDGE_MATCH"
"""Environment variable by which bots, and what they start, are known where their parents have ended."""

MARK: Final = secrets.token_hex(16)
"""Its value begins with this, another one for each server process; a number for each bot process follows."""

_LOCAL: Final = {"localhost": "127.0.0.1", "": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Address at which this machine finds a server that listens on all addresses."""

_numbers: Final = itertools.count()  # of the bot processes that were started
_TAIL_LINES: Final = 12
_TAIL_BYTES: Final = 8192
_SEARCHED_BYTES: Final = 1 << 24
_LONGEST_LOG: Final = 64 << 20  # bytes; a match of an hour writes some kilobytes
_KEPT_LOG: Final = 1 << 20  # bytes of the beginning that a longer one keeps
_LONGEST_NAME: Final = 80  # bytes of a bot's name in that of its log; file systems take 255 in all
_SHOWN_COMMAND: Final = 500  # letters; a shorter one is shown whole, so that it can be entered
_PR_SET_CHILD_SUBREAPER: Final = 36  # of Linux's prctl
_EXTENDED_LIMITS: Final = 9  # JobObjectExtendedLimitInformation
_KILL_ON_JOB_CLOSE: Final = 0x2000
_SCRIPTS: Final = str(Path(sys.executable).parent)  # first in the PATH of bots
_TERMINATE_SECONDS: Final = 2.0  # a process has this long to end after it was asked to


@dataclass
class BotProcess:
    """One started agent process."""

    seats: list[AgentSeat]  # seats it is to fill: one, or all cars of a hivemind
    log_path: Path
    popen: subprocess.Popen[bytes]  # the shell that runs its command
    early_exit_code: int | None = None  # its exit code, if it has ended before the match did
    exceptions: int = 0  # Python's tracebacks in the first 16 MiB of its log when the match ended
    was_told_to_end: bool = False  # it did not end by itself, and was made to
    mark: str = ""  # value of `MARK_VARIABLE` that its processes have
    started_at: float = math.inf  # when it was started, as psutil tells it, s; infinity where it does not
    foreign_ids: list[str] = field(default_factory=list)  # agent ids of other seats that it came as
    _family: dict[int, psutil.Process] = field(default_factory=dict)
    _job: int | None = None  # Windows: a handle with which all that it has started ends

    def __post_init__(self) -> None:
        with suppress(psutil.Error):
            self.started_at = psutil.Process(self.popen.pid).create_time()
        if sys.platform == "win32":
            self._job = _put_in_job(int(getattr(self.popen, "_handle")))  # noqa: B009

    @property
    def exit_code(self) -> int | None:
        """Return its exit code, None while it runs."""
        return self.popen.poll()

    @property
    def has_ended(self) -> bool:
        """Tell whether nothing of it runs any more.

        A command may end with status 0 and leave the bot running: then a process of its family lives.
        """
        code = self.exit_code  # asked once: it may end between two questions
        if code != 0:
            return code is not None
        if not self.living():
            self.find_heirs()
        return not self.living()

    def find_heirs(self) -> None:
        """Remember its shell's children and session, and all that have its mark.

        Who forks twice and leads a session of its own is known by the mark alone.
        """
        pid = self.popen.pid
        # The system gives the number to a stranger only when no heir has it.
        is_strangers = self.exit_code is not None and psutil.pid_exists(pid)
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                is_near = not is_strangers and (
                    process.ppid() == pid or (sys.platform != "win32" and os.getsid(process.pid) == pid)
                )
                if is_near or (self.mark and process.environ().get(MARK_VARIABLE) == self.mark):
                    self._family[process.pid] = process

    def reap(self) -> None:
        """Take the exit codes of those that this process has inherited; others stay as zombies."""
        for pid in self._family:
            if sys.platform != "win32" and pid != self.popen.pid:
                with suppress(OSError):
                    os.waitpid(pid, os.WNOHANG)

    def end_job(self) -> None:
        """End what is left of it on Windows."""
        if self._job is not None:
            getattr(ctypes, "windll").kernel32.CloseHandle(ctypes.c_void_p(self._job))  # noqa: B009
            self._job = None

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
        with suppress(psutil.Error):  # it has gone, or is not ours to look at
            parent = psutil.Process(self.popen.pid)
            for process in (parent, *parent.children(recursive=True)):
                self._family[process.pid] = process

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
    """Group the seats that are driven by one process; agents without a command are left out.

    A hivemind is one for each folder, command, name and team; every other bot and script is alone.
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
    """Start the process for a group of seats, with a log in a folder, or elsewhere if that takes none.

    The command of the first seat is given to the shell in the bot's folder; `python` is the one that runs
    this server, unless the bot's own environment says otherwise. A command that cannot be run ends the
    process at once, with the shell's words in its log.
    """
    seat = seats[0]
    environment = dict(os.environ)
    environment["PATH"] = _SCRIPTS + os.pathsep + environment.get("PATH", "")
    environment.update(seat.environment)
    mark = environment[MARK_VARIABLE] = f"{MARK}/{next(_numbers)}"
    environment["RLBOT_AGENT_ID"] = seat.agent_id
    environment["RLBOT_SERVER_IP"] = _LOCAL.get(host, host)
    environment["RLBOT_SERVER_PORT"] = str(port)
    log_path = _make_log(log_dir, seat)
    with log_path.open("ab") as log:  # so that what is printed after `shorten_log` goes to its end
        try:
            popen = subprocess.Popen(
                seat.run_command, shell=True, cwd=seat.root_dir or None, env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, **apart(),
            )  # fmt: skip
        except (OSError, ValueError) as error:  # no such folder; a NUL or = where none may be
            log.write(f"cannot be started: {error}\n".encode())
            log.flush()
            popen = subprocess.Popen(
                [sys.executable, "-c", "raise SystemExit(127)"], stdin=subprocess.DEVNULL
            )
    command = shorten_text(seat.run_command, _SHOWN_COMMAND)
    _log.info("started %s (%s): %s", shorten_text(seat.name), seat.side, command)
    _log.debug("started %s with %r in %s", seat.label, seat.run_command, seat.root_dir)
    return BotProcess(seats, log_path, popen, mark=mark)


def _make_log(log_dir: Path, seat: AgentSeat) -> Path:
    """Make an empty log, in a temporary folder where this one takes none: a bot may have changed it."""
    safe_name = re.sub(r"[^\w.-]+", "_", seat.name).encode()[:_LONGEST_NAME].decode(errors="ignore")
    name = f"{seat.team}-{seat.index}-{safe_name}.log"
    try:
        return _make_empty(log_dir / name)
    except OSError as error:
        path = _make_empty(Path(tempfile.mkdtemp(prefix="rlgym-bridge-match-")) / name)
        _log.warning("%s: no log can be written there; that of %s is %s", error, seat.label, path)
        return path


def _make_empty(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # left there by a bot: opening a pipe waits for ever
        path.unlink()
    path.open("wb").close()
    return path


def end_all(processes: list[BotProcess], patience: float) -> None:
    """End bot processes with all they have started; for `patience` seconds they may leave by themselves."""
    _wait(processes, patience)
    hidden = _find_hidden(processes)
    for one in processes:
        one.find_heirs()
        one._family |= {process.pid: process for process in hidden}
        hidden = []
        one.was_told_to_end = bool(one.living())
    for process in _living(processes):
        with suppress(psutil.Error):  # it ended meanwhile
            process.terminate()
    _wait(processes, _TERMINATE_SECONDS)
    for process in _living(processes):
        _log.warning("process %d does not end, killed", process.pid)
        with suppress(psutil.Error):
            process.kill()
    _wait(processes, _TERMINATE_SECONDS)
    for one in processes:
        one.end_job()
        one.reap()


def inherit_orphans(wanted: bool) -> None:
    """Make this process the parent of all whose own parent has ended, on Linux; elsewhere do nothing."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)


def _find_hidden(processes: list[BotProcess]) -> list[psutil.Process]:
    """Return orphans of these bots, on Linux, that have lost the mark; others have our variables."""
    if sys.platform != "linux" or not processes:
        return []
    since = min(one.started_at for one in processes)
    ours = set(os.environ.items())
    hidden = []
    with suppress(psutil.Error, OSError):
        for child in psutil.Process().children():
            with suppress(psutil.Error, OSError):
                its = child.environ()
                path = its.get("PATH", "")
                is_changed = path.startswith(_SCRIPTS) and path != os.environ.get("PATH")
                is_bots = is_changed or not ours & set(its.items())
                if child.create_time() >= since and MARK_VARIABLE not in its and is_bots:
                    hidden.append(child)
    return hidden


def _put_in_job(process: int) -> int | None:
    """Put a process in a job that ends with its handle, None where Windows refuses; untried on Windows."""
    kernel = getattr(ctypes, "windll").kernel32  # noqa: B009
    kernel.CreateJobObjectW.restype = ctypes.c_void_p
    job = kernel.CreateJobObjectW(None, None)
    if not job:
        return None
    # JOBOBJECT_EXTENDED_LIMIT_INFORMATION: LimitFlags are the third field of its first part.
    limits = (ctypes.c_byte * (144 if ctypes.sizeof(ctypes.c_void_p) == 8 else 112))()
    ctypes.c_uint32.from_buffer(limits, 16).value = _KILL_ON_JOB_CLOSE
    is_set = kernel.SetInformationJobObject(
        ctypes.c_void_p(job), _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
    )
    if not (is_set and kernel.AssignProcessToJobObject(ctypes.c_void_p(job), ctypes.c_void_p(process))):
        kernel.CloseHandle(ctypes.c_void_p(job))
        return None
    return int(job)


def _living(processes: list[BotProcess]) -> list[psutil.Process]:
    return [one for process in processes for one in process.living()]


def _wait(processes: list[BotProcess], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while _living(processes) and time.monotonic() < deadline:
        time.sleep(0.02)
