"""Serve the page in the browser, in a thread of its own; it never holds up whoever hands it frames.

    tick thread -> three frames at most for each page -> this thread -> WebSocket -> page
    page -> WebSocket -> checked here -> `Show.take`

Only programs of this machine can connect. A page needs the token of the address, and no page of another site
gets in: the server checks the headers Host and Origin.
"""

import asyncio
import logging
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from typing import Any, Final, Protocol

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.http import HttpProcessingError

from rlgym_bridge.components.user_errors import describe_error
from rlgym_bridge.server import ServerError
from rlgym_bridge.server.net.wire import listen
from rlgym_bridge.view.web.frames import with_input
from rlgym_bridge.view.web.page_messages import MOST_BYTES, PageCommand, PageInput, read_message

_log = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
MOST_PAGES: Final = 16
MOST_MESSAGES: Final = 240  # a second, of one page

_QUEUED_FRAMES: Final = 3
_QUEUED_TEXTS: Final = 256
_MALFORMED: Final = 3  # from this one on the page is closed
_SEND_BYTES: Final = 1 << 15  # of the socket's buffer, so that a slow page gets new frames, not old ones
_HEARTBEAT_SECONDS: Final = 20.0
_START_SECONDS: Final = 10.0
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip


class Viewer:
    """A page that is open; `number` is that of the connection, from 1."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.seat: int | None = None  # the car that it drives
        self.ready = False  # whether it has drawn a frame, and has not slept since
        self.follows: int | None = None  # the car of which it is told what its bot sees
        self.frames: deque[bytes] = deque(maxlen=_QUEUED_FRAMES)
        self.texts: deque[str] = deque(maxlen=_QUEUED_TEXTS)
        self.wanted = asyncio.Event()
        self.malformed = 0
        self._tokens, self._filled = float(MOST_MESSAGES), time.monotonic()

    def may_send(self) -> bool:
        """Count a message; return False where there were more than `MOST_MESSAGES` in a second."""
        now = time.monotonic()
        self._tokens = min(MOST_MESSAGES, self._tokens + (now - self._filled) * MOST_MESSAGES)
        self._filled = now
        self._tokens -= 1.0
        return self._tokens >= 0.0


class Show(Protocol):
    """The content of pages. The server's thread calls it."""

    def open(self, viewer: Viewer) -> Mapping[str, Any]:
        """Take a page that has come; return the setup for it."""

    def take(self, viewer: Viewer, message: PageInput | PageCommand) -> None:
        """Take a message of a page; what it raises is told to the page."""

    def close(self, viewer: Viewer) -> None:
        """Take leave of a page that has gone."""


class PageServer:
    """Serves pages of one show until it is closed, on a port, 0 for any free one.

    `address` is that of the page, with the `token`: whoever has it may look and drive. Raises ServerError if
    the port is taken, or serves no page.
    """

    def __init__(self, show: Show, port: int = 0) -> None:
        self._show = show
        self.token = secrets.token_urlsafe(24)
        self._viewers: list[Viewer] = []
        self._numbers = 0
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._socket = listen(HOST, port)
        self.port: int = self._socket.getsockname()[1]
        self.address = f"http://{HOST}:{self.port}/?token={self.token}"
        self._hosts = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="page", daemon=True)
        self._thread.start()
        if not self._started.wait(_START_SECONDS):
            raise ServerError(
                f"port {self.port} of {HOST} serves no page after {_START_SECONDS:g} s; try again"
            )

    # --- from any thread ---------------------------------------------------------------------

    @property
    def viewers(self) -> list[Viewer]:
        """List the pages that are open."""
        return list(self._viewers)

    def show_frame(self, frame: bytes, inputs: Mapping[Viewer, int] | None = None) -> None:
        """Send a frame to all pages, to those that drive with the number of the latest input that acted."""
        if not self._viewers:
            return
        for viewer in self.viewers:
            number = inputs.get(viewer, 0) if inputs else 0
            viewer.frames.append(with_input(frame, number) if number else frame)
        self._wake()

    def tell(self, message: Mapping[str, Any], viewer: Viewer | None = None) -> None:
        """Send a message to one page, or to all; numbers that are not finite become null."""
        text = _as_text(message)
        for one in self.viewers if viewer is None else (viewer,):
            one.texts.append(text)
        self._wake()

    def say(self, text: str, level: str = "info", viewer: Viewer | None = None) -> None:
        """Show a sentence on one page, or on all."""
        self.tell({"type": "say", "text": text, "level": level}, viewer)

    def close(self) -> None:
        """Say goodbye to all pages and close the port."""
        with suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(_START_SECONDS)

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._wake_all)

    # --- in the server's thread --------------------------------------------------------------

    def _wake_all(self) -> None:
        for viewer in self._viewers:
            viewer.wanted.set()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # ends tasks of idle connections
            runner.run(self._serve())

    async def _serve(self) -> None:
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_get("/", self._index)
        app.router.add_get("/page/{name}", self._file)
        app.router.add_get("/ws", self._page)
        runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=1.0, logger=_without_clients_errors()
        )
        await runner.setup()
        await web.SockSite(runner, self._socket).start()
        self._started.set()
        await self._stopped.wait()
        self._wake_all()  # their senders say goodbye
        await asyncio.sleep(0)
        await runner.cleanup()

    def _check_host(self, request: web.Request) -> None:
        """Refuse names that only lead here, which another site may have made (DNS rebinding)."""
        if request.headers.get("Host") not in self._hosts:
            raise web.HTTPForbidden(text="Host is not this server's own address\n", headers=_HEADERS)

    def _check_token(self, request: web.Request) -> None:
        given = request.query.get("token", "")
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            raise web.HTTPForbidden(
                text="the token is missing or wrong: open the address that the command printed\n",
                headers=_HEADERS,
            )

    async def _index(self, request: web.Request) -> web.Response:
        self._check_host(request)
        self._check_token(request)
        return _asset("index.html")

    async def _file(self, request: web.Request) -> web.Response:
        self._check_host(request)
        return _asset(request.match_info["name"])

    async def _page(self, request: web.Request) -> web.WebSocketResponse:
        self._check_host(request)
        origin = request.headers.get("Origin")  # browsers always send it
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            raise web.HTTPForbidden(text=f"Origin {origin[:100]!a} is another site\n", headers=_HEADERS)
        self._check_token(request)
        link = web.WebSocketResponse(
            heartbeat=_HEARTBEAT_SECONDS, max_msg_size=MOST_BYTES, compress=False, writer_limit=1
        )
        await link.prepare(request)
        if len(self._viewers) >= MOST_PAGES:
            await link.close(
                code=WSCloseCode.TRY_AGAIN_LATER, message=f"{MOST_PAGES} pages are open already".encode()
            )
            return link
        raw = None if request.transport is None else request.transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        self._numbers += 1
        viewer = Viewer(self._numbers)
        viewer.texts.append(_as_text(self._show.open(viewer)))
        self._viewers.append(viewer)
        viewer.wanted.set()
        sender = asyncio.create_task(self._send(viewer, link))
        try:
            await self._hear(viewer, link)
        finally:
            sender.cancel()
            self._viewers.remove(viewer)
            self._show.close(viewer)
        return link

    async def _send(self, viewer: Viewer, link: web.WebSocketResponse) -> None:
        with suppress(ConnectionError):
            while not self._stopped.is_set():
                await viewer.wanted.wait()
                viewer.wanted.clear()
                while viewer.texts or viewer.frames:
                    if viewer.texts:
                        await link.send_str(viewer.texts.popleft())
                    else:
                        await link.send_bytes(viewer.frames.popleft())
            await link.close(code=WSCloseCode.GOING_AWAY, message=b"it has ended")

    async def _hear(self, viewer: Viewer, link: web.WebSocketResponse) -> None:
        async for message in link:
            if not viewer.may_send():
                why = f"more than {MOST_MESSAGES} messages in a second"
                await link.close(code=WSCloseCode.POLICY_VIOLATION, message=why.encode())
                return
            if message.type == WSMsgType.ERROR:
                return
            try:
                if message.type != WSMsgType.TEXT:
                    raise ValueError("a message of bytes, expected JSON as text")
                checked = read_message(message.data)
            except ValueError as error:
                viewer.malformed += 1
                if viewer.malformed >= _MALFORMED:
                    why = f"{_MALFORMED} messages that were not understood"
                    await link.close(code=WSCloseCode.POLICY_VIOLATION, message=why.encode())
                    return
                self.say(f"not understood: {error}", "error", viewer)
                continue
            try:
                self._show.take(viewer, checked)
            except (Exception, SystemExit) as error:  # a policy's own modules may raise anything
                self.say(f"not done: {describe_error(error)}", "error", viewer)


def _without_clients_errors() -> logging.Logger:
    """Return a logger for aiohttp that is silent about requests that are no HTTP: they got a 400."""

    def keep(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))

    quiet = logging.getLogger(f"{__name__}.requests")
    quiet.filters[:] = [keep]
    return quiet


def _as_text(message: Mapping[str, Any]) -> str:
    """Return a message as JSON, which has no numbers that are not finite: null stands for them."""
    return msgspec.json.encode(message).decode()


def _asset(name: str) -> web.Response:
    """Return a file of the page; only the names that lie there are found."""
    found = next((one for one in files(__package__).joinpath("page").iterdir() if one.name == name), None)
    kind = None if found is None else _TYPES.get("." + name.rpartition(".")[2])
    if found is None or kind is None:
        raise web.HTTPNotFound(text="there is no such file\n", headers=_HEADERS)
    return web.Response(body=found.read_bytes(), content_type=kind, charset="utf-8", headers=_HEADERS)
