"""Start a packaged bot as RLBot does, where no torch can be imported, to see that it loads and connects."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from rlbot import flat

from rlgym_bridge.project.bot_description import ProjectError
from rlgym_bridge.user_input.text_files import escape_controls

_SECONDS: Final = 60.0  # that a bot may take to connect, and to end
_ASK_SECONDS: Final = 0.05
_START: Final = (
    "import runpy, sys; sys.modules['torch'] = None; sys.path.insert(0, sys.argv.pop()); "
    "sys.argv[0] = 'bot.py'; runpy.run_path('bot.py', run_name='__main__')"
)
_LOG_PREFIX: Final = re.compile(r"^\S+ \S+ [A-Z]+ [\w.]+: ")  # of a line that `play` logs
_MOST_LETTERS: Final = 1000


def start_once(folder: Path, agent_id: str, command: Sequence[str] = ()) -> float:
    """Start a bot until it connects to a server, which says goodbye at once.

    Args:
        folder: The bot's.
        agent_id: As RLBot gives it to the process.
        command: Starts it; by default this Python runs `bot.py` without torch.

    Returns:
        Seconds until it connected.

    Raises:
        ProjectError: It ends before it connects, with another status than 0, or takes too long.
    """
    with socket.create_server(("127.0.0.1", 0)) as server, TemporaryFile() as log:
        server.settimeout(_ASK_SECONDS)
        variables = {name: value for name, value in os.environ.items() if not _is_ours(name)}
        variables |= {"RLBOT_AGENT_ID": agent_id, "RLBOT_SERVER_IP": "127.0.0.1"}
        variables |= {"RLBOT_SERVER_PORT": str(server.getsockname()[1]), "PYTHONDONTWRITEBYTECODE": "1"}
        begin = time.monotonic()
        process = subprocess.Popen(
            command or [sys.executable, "-P", "-c", _START, str(folder)], cwd=folder, env=variables,
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            connection = _wait_for(server, process, begin + _SECONDS)
            seconds = time.monotonic() - begin
            if connection is not None:
                with connection:
                    goodbye = flat.CorePacket(flat.DisconnectSignal()).pack()
                    connection.sendall(len(goodbye).to_bytes(2, "big") + goodbye)
                    process.wait(_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            connection = None
        finally:
            status = process.poll()
            process.kill()
            process.wait()
        if connection is None or status != 0:
            log.seek(0)
            raise ProjectError(f"the packaged bot does not start: {_explain(log.read(), status)}")
    return seconds


def _is_ours(name: str) -> bool:
    """Tell whether an environment variable changes what a bot does or finds."""
    return name == "PYTHONPATH" or name.startswith(("RLGYM_BRIDGE_", "RLBOT_"))


def _wait_for(
    server: socket.socket, process: "subprocess.Popen[bytes]", deadline: float
) -> socket.socket | None:
    """Return the connection of a process; None where it ends or time runs out."""
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return server.accept()[0]
        except TimeoutError:
            continue
    return None


def _explain(log: bytes, status: int | None) -> str:
    """Return the last line that a bot printed; a status of None says that it runs yet."""
    lines = [line.strip() for line in log.decode("utf-8", "replace").splitlines() if line.strip()]
    said = escape_controls(_LOG_PREFIX.sub("", lines[-1]))[-_MOST_LETTERS:] if lines else "it prints nothing"
    if status is None:
        return f"it takes more than {_SECONDS:.0f} s to connect or to end; {said}"
    hint = "; a packaged bot has no torch, so import it in the functions that train alone"
    return f"status {status}; {said}" + (hint if re.search(r"\btorch\b", said) else "")
