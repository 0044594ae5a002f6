"""Start a packaged bot as RLBot does, to see that it loads and connects; most have no torch."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

import psutil
from rlbot import flat

from rlgym_bridge.project.bot_description import ProjectError
from rlgym_bridge.user_input.text_files import escape_controls

_SECONDS: Final = 60.0  # that a bot may take to connect, and to end
_ASK_SECONDS: Final = 0.05
_START: Final = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop()); "
    "sys.argv[0] = 'bot.py'; runpy.run_path('bot.py', run_name='__main__')"
)
_OURS: Final = ("PYTHONPATH", "RLGYM_BRIDGE_", "RLBOT_")  # variables that change what a bot does or finds
_NO_TORCH: Final = "import sys; sys.modules['torch'] = None; "
_LOG_PREFIX: Final = re.compile(r"^\S+ \S+ [A-Z]+ [\w.]+: ")  # of a line that `play` logs
_MOST_LETTERS: Final = 1000
_FEW_LETTERS: Final = 100  # of what is printed without end
_MOST_BYTES: Final = 16 << 20  # that a bot may print
_TAIL_BYTES: Final = 8192


def start_once(folder: Path, agent_id: str, command: Sequence[str] = (), torch: bool = False) -> float:
    """Start the bot of a folder until it connects to a server, which says goodbye at once.

    By default this Python runs `bot.py`. It may import `torch` where it has a network of the user's own.
    Return the seconds until it connected. A ProjectError says that it ended before, with another status than
    0, or took too long.
    """
    with socket.create_server(("127.0.0.1", 0)) as server, TemporaryFile() as log:
        server.settimeout(_ASK_SECONDS)
        variables = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        variables |= {"RLBOT_AGENT_ID": agent_id, "RLBOT_SERVER_IP": "127.0.0.1"}
        variables |= {"RLBOT_SERVER_PORT": str(server.getsockname()[1]), "PYTHONDONTWRITEBYTECODE": "1"}
        begin, start = time.monotonic(), _START if torch else _NO_TORCH + _START
        process = subprocess.Popen(
            command or [sys.executable, "-P", "-c", start, str(folder)], cwd=folder, env=variables,
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            start_new_session=sys.platform != "win32",
        )  # fmt: skip
        try:
            connection = _wait_for(server, process, log, begin + _SECONDS)
            seconds = time.monotonic() - begin
            if connection is not None:
                with connection:
                    goodbye = flat.CorePacket(flat.DisconnectSignal()).pack()
                    connection.sendall(len(goodbye).to_bytes(2, "big") + goodbye)
                    _wait_for_end(process, log, time.monotonic() + _SECONDS)
        except OSError:
            connection = None
        finally:
            status = process.poll()
            _end(process)
        if connection is None or status != 0:
            raise ProjectError(f"the packaged bot does not start: {_explain(log, status)}")
    return seconds


def _wait_for(
    server: socket.socket, process: "subprocess.Popen[bytes]", log: IO[bytes], deadline: float
) -> socket.socket | None:
    """Return the connection of a process; None where it ends, prints without end, or time runs out."""
    while process.poll() is None and time.monotonic() < deadline and not _is_full(log):
        try:
            return server.accept()[0]
        except TimeoutError:
            continue
    return None


def _wait_for_end(process: "subprocess.Popen[bytes]", log: IO[bytes], deadline: float) -> None:
    while time.monotonic() < deadline and not _is_full(log):
        with suppress(subprocess.TimeoutExpired):
            process.wait(_ASK_SECONDS)
            return


def _is_full(log: IO[bytes]) -> bool:
    return os.fstat(log.fileno()).st_size > _MOST_BYTES


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(OSError, psutil.Error):
        if sys.platform == "win32":
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _explain(log: IO[bytes], status: int | None) -> str:
    """Return the last line that a bot printed; a status of None says that it runs yet."""
    size = os.fstat(log.fileno()).st_size
    log.seek(max(0, size - _TAIL_BYTES))
    lines = [line.strip() for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
    said = escape_controls(_LOG_PREFIX.sub("", lines[-1]))[-_MOST_LETTERS:] if lines else "it prints nothing"
    if status is None and size > _MOST_BYTES:
        return f"it prints more than {_MOST_BYTES >> 20} MiB, expected a few lines; {said[-_FEW_LETTERS:]}"
    if status is None:
        return f"it takes more than {_SECONDS:.0f} s to connect or to end; {said}"
    hint = "; a packaged bot has no torch, so import it in the functions that train alone"
    return f"status {status}; {said}" + (hint if re.search(r"\btorch\b", said) else "")
