"""Start Rerun's viewer in its window or the browser, served on this machine alone.

Rerun's Python functions would serve to the whole network.
"""

import functools
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import rerun_cli

from rlgym_bridge.user_input.stop_signals import await_end

LOOPBACK: Final = "127.0.0.1"
_START_SECONDS: Final = 20.0
_ASK_SECONDS: Final = 0.05
_LIVE: Final = ("--memory-limit", "1GB", "--server-memory-limit", "256MB")  # else a match may take them all


class ViewerError(ChildProcessError):
    """Rerun's viewer does not start."""


def program() -> Path:
    """Return Rerun's program."""
    name = "rerun.exe" if sys.platform.startswith("win") else "rerun"
    return Path(rerun_cli.__file__).parent / name


@contextmanager
def viewer(in_window: bool, path: Path | None = None) -> Iterator[tuple[str, str, subprocess.Popen[bytes]]]:
    """Run Rerun's viewer until the block ends: in its own window, or served to browsers on this machine.

    It shows an `.rrd` file, or what is sent to it if `path` is None. Yield the address of the page, empty for
    a window, the address to send to, and the viewer's process, which ends when its window is closed. Raises
    ViewerError if it does not start.
    """
    page, port = _free_ports(2)
    origin, proxy = f"http://{LOOPBACK}:{page}", f"rerun+http://{LOOPBACK}:{port}/proxy"
    words = ["--bind", LOOPBACK, "--port", str(port), *(_LIVE if path is None else ())]
    with ExitStack() as stack:
        address = ""
        if not in_window:
            source = proxy if path is None else stack.enter_context(_served(path, origin))
            address = f"{origin}/?url={quote(source, safe=':/%')}"
            words += ["--web-viewer-port", str(page), "--serve-web"]
        elif path is None:
            words += ["--hide-welcome-screen", "--expect-data-soon"]
        else:
            words.append(str(path))
        process = stack.enter_context(_running(*words))
        if not in_window:
            _wait_for(page, process)
        if path is None:
            _wait_for(port, process)
        yield address, proxy, process


class _OneFile(http.server.SimpleHTTPRequestHandler):
    """Answers with one file, for a page from one origin."""

    def __init__(self, *arguments: object, path: Path, origin: str) -> None:
        self.one, self.origin = path, origin
        super().__init__(*arguments)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        return str(self.one)

    def do_GET(self) -> None:
        """Answer, unless a name of another site leads here (DNS rebinding)."""
        if self.headers.get("Host") == f"{LOOPBACK}:{self.connection.getsockname()[1]}":
            super().do_GET()
        else:
            self.send_error(403, "Host is not this server's own address")

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", self.origin)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def copyfile(self, source: Any, outputfile: Any) -> None:
        with suppress(ConnectionError):  # the page was closed meanwhile
            super().copyfile(source, outputfile)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def _served(path: Path, origin: str) -> Iterator[str]:
    """Serve a file until the block ends, and yield its address."""
    handler = functools.partial(_OneFile, path=path, origin=origin)
    with http.server.ThreadingHTTPServer((LOOPBACK, 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
        try:
            yield f"http://{LOOPBACK}:{server.server_address[1]}/{quote(path.name)}"
        finally:
            server.shutdown()


@contextmanager
def _running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [program(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={"RUST_LOG": "warn", **os.environ},  # it would name an address that shows nothing
    )
    try:
        yield process
    finally:
        process.terminate()
        await_end(process, 5)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server((LOOPBACK, 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ViewerError(
                f"Rerun's viewer ended with exit code {process.returncode}; its message is above"
            )
        try:
            socket.create_connection((LOOPBACK, port), timeout=1).close()
            return
        except OSError:
            time.sleep(_ASK_SECONDS)
    raise ViewerError(f"Rerun's viewer did not answer on {LOOPBACK}:{port} within {_START_SECONDS:g} s")
