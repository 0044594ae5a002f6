import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from unittest.mock import Mock

import pytest

pytest.importorskip("aiohttp")

import aiohttp

from rlgym_bridge.server import ServerError
from rlgym_bridge.state import MatchState
from rlgym_bridge.view.web.frames import pack_frames
from rlgym_bridge.view.web.page_server import MOST_MESSAGES, MOST_PAGES, PageServer
from tests.support.web_pages import EchoShow, Link, linked, socket_address


@pytest.fixture
def show() -> Iterator[EchoShow]:
    show = EchoShow()
    yield show
    show.server.close()


async def refused(address: str, **headers: str) -> int:
    async with aiohttp.ClientSession() as session:
        try:
            await session.ws_connect(socket_address(address), headers=headers)
        except aiohttp.WSServerHandshakeError as error:
            return error.status
    return 0


def with_page(show: EchoShow, work: Callable[[Link], Awaitable[object]]) -> object:
    async def run() -> object:
        async with linked(show.server.address) as (link,):
            await link.text("setup")
            return await work(link)

    return asyncio.run(run())


@pytest.mark.parametrize("token", ["", "?token=", "?token=x", "?token=%F0%9F%98%80"])
def test_without_the_token_there_is_no_page_and_no_match(show: EchoShow, token: str) -> None:
    address = show.server.address.partition("?")[0] + token
    assert asyncio.run(refused(address.replace("/?", "/?") if token else address + "ws")) == 403

    async def get() -> int:
        async with aiohttp.ClientSession() as session, session.get(address) as answer:
            return answer.status

    assert asyncio.run(get()) == 403 and show.opened == 0


@pytest.mark.parametrize(
    "origin",
    ["http://example.com", "null", "http://127.0.0.1", "https://127.0.0.1:{port}", "http://localhost:1"],
)
def test_a_page_of_another_site_is_refused(show: EchoShow, origin: str) -> None:
    given = origin.format(port=show.server.port)
    assert asyncio.run(refused(show.server.address, Origin=given)) == 403 and show.opened == 0


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"\x16\x03\x01 no HTTP\r\n\r\n", b" 400 "),
        (b"GET / HTTP/1.1\r\n\r\n", b" 400 "),
        (b"GET /%s HTTP/1.1\r\nHost: {host}\r\n\r\n" % (b"a" * 9000), b" 400 "),
        (b"GET /ws HTTP/1.1\r\nHost: {host}\r\nOrigin: \xff\xfe\r\n\r\n", b" 403 "),
    ],
    ids=["no HTTP", "no host", "long address", "origin of no text"],
)
def test_a_request_of_any_form_is_answered_and_not_logged(
    show: EchoShow, request_bytes: bytes, status: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    idle = socket.create_connection(("127.0.0.1", show.server.port))
    with idle, socket.create_connection(("127.0.0.1", show.server.port), timeout=10) as link:
        link.sendall(request_bytes.replace(b"{host}", f"127.0.0.1:{show.server.port}".encode()))
        assert status in link.recv(100)
        show.server.close()
    assert not caplog.records


def test_a_name_that_leads_here_is_refused(show: EchoShow) -> None:
    host = f"rebound.example.com:{show.server.port}"
    assert asyncio.run(refused(show.server.address, Host=host)) == 403


def test_the_pages_own_origin_is_let_in(show: EchoShow) -> None:
    assert asyncio.run(refused(show.server.address, Origin=f"http://127.0.0.1:{show.server.port}")) == 0


def test_files_of_the_page_are_served_and_no_others(show: EchoShow) -> None:
    async def get(path: str) -> tuple[int, str]:
        address = f"http://127.0.0.1:{show.server.port}{path}"
        async with aiohttp.ClientSession() as session, session.get(address) as answer:
            return answer.status, answer.headers.get("Content-Security-Policy", "")

    status, policy = asyncio.run(get("/page/index.html"))
    assert status == 200 and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    for path in ("/page/..%2Fframes.py", "/page/%2e%2e/frames.py", "/page/", "/page/x.js", "/frames.py"):
        assert asyncio.run(get(path))[0] == 404


MALFORMED = (
    "",
    "x",
    "[]",
    "{}",
    '{"type":"input"}',
    '{"type":"input","seq":-1,"controls":[0,0,0,0,0,0,0,0]}',
    '{"type":"input","seq":1,"controls":[0,0,0,0,0,0,0]}',
    '{"type":"input","seq":1,"controls":[NaN,0,0,0,0,0,0,0]}',
    '{"type":"input","seq":1,"controls":[1e9,0,0,0,0,0,0,0]}',
    '{"type":"command","do":"eval","value":"x"}',
    '{"type":"command","do":"rewind","value":61}',
    '{"type":"command","do":"put","value":{"body":"x","pos":[0,0,0]}}',
    '{"type":"command","do":"take","value":{"car":-1,"driver":"human"}}',
    '{"type":"command","do":"speed","value":9}',
    '{"type":"command","do":"follow","value":true}',
    "[" * 1500,
    '{"type":"command","do":"speed","value":' + "[" * 1500,
    '{"type":"command","do":"speed","value":1' + "0" * 400 + "}",
    '{"type":"command","do":"seek","value":1e999}',
)


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_the_third_malformed_message_ends_the_page(show: EchoShow, text: str) -> None:
    async def work(link: Link) -> tuple[int | None, str]:
        for _ in range(2):
            await link.send(text)
            said = await link.text("say")
            assert said["level"] == "error" and said["text"].startswith("not understood: ")
        await link.send(text)
        return await link.end()

    assert with_page(show, work) == (1008, "3 messages that were not understood") and show.taken == 0


def test_what_a_show_refuses_is_told_and_ends_no_page(
    show: EchoShow, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [ValueError("an input too late"), KeyError("x"), SystemExit(3), RecursionError()]

    async def work(link: Link) -> list[str]:
        told = []
        for error in errors:
            monkeypatch.setattr(show, "take", Mock(side_effect=error))
            await link.command("ready")
            told.append((await link.text("say"))["text"])
        monkeypatch.undo()
        await link.command("ready")
        assert "ready" in (await link.text("say"))["text"]
        return told

    told = with_page(show, work)
    assert isinstance(told, list) and all(text.startswith("not done: ") for text in told)
    assert "an input too late" in told[0] and "KeyError: 'x'" in told[1] and "sys.exit(3)" in told[2]


def test_numbers_that_json_lacks_become_null(show: EchoShow) -> None:
    async def work(link: Link) -> dict[str, object]:
        show.server.tell({"type": "mind", "observed": [["speed", float("nan")], ["far", float("inf")]]})
        return await link.text("mind")

    assert with_page(show, work) == {"type": "mind", "observed": [["speed", None], ["far", None]]}


def test_a_long_message_ends_the_page(show: EchoShow) -> None:
    async def work(link: Link) -> int | None:
        await link.send("x" * 3000)
        return (await link.end())[0]

    assert with_page(show, work) == 1009


def test_a_flood_ends_the_page_that_sends_it(show: EchoShow) -> None:
    text = json.dumps({"type": "command", "do": "ready"})

    async def run() -> tuple[int | None, str]:
        async with linked(show.server.address, 2) as (flood, calm):
            for _ in range(4 * MOST_MESSAGES):
                await flood.send(text)
            ended = await flood.end()
            await calm.send(text)
            assert "ready" in (await calm.text("say"))["text"]
            return ended

    assert asyncio.run(run()) == (1008, f"more than {MOST_MESSAGES} messages in a second")
    assert show.taken <= 2 * MOST_MESSAGES


def test_of_a_hundred_pages_sixteen_stay(show: EchoShow) -> None:
    async def run() -> list[tuple[int | None, str]]:
        async with linked(show.server.address, 100) as links:
            ended = [await link.end() for link in links[MOST_PAGES:]]
            show.server.say("hello")
            assert (await links[0].text("say"))["text"] == "hello"
            return ended

    assert set(asyncio.run(run())) == {(1013, f"{MOST_PAGES} pages are open already")}
    assert show.opened == MOST_PAGES


def test_a_page_that_does_not_read_gets_the_newest_frames(show: EchoShow) -> None:
    frames = [number.to_bytes(4, "little") * 1000 for number in range(2000)]

    async def run() -> list[int]:
        async with aiohttp.ClientSession() as session:
            socket = await session.ws_connect(socket_address(show.server.address))
            await socket.receive(timeout=10)  # the setup: from here on it is sent frames
            transport = socket._response.connection.transport  # type: ignore[union-attr]
            transport.pause_reading()
            for frame in frames:
                show.server.show_frame(frame)
            await asyncio.sleep(0.2)
            transport.resume_reading()
            came = []
            while not came or came[-1] < len(frames) - 1:
                message = await socket.receive(timeout=10)
                if message.type == aiohttp.WSMsgType.BINARY:
                    came.append(int.from_bytes(message.data[:4], "little"))
            return came

    came = asyncio.run(run())
    assert len(came) < len(frames) / 2 and came == sorted(came)


def test_each_page_that_drives_is_told_of_its_own_input(show: EchoShow) -> None:
    frame = pack_frames(MatchState(1, 1), phase=3, tick=1, speed=1.0, clock=300).tobytes()

    async def run() -> list[int]:
        async with linked(show.server.address, 3) as links:
            for link in links:
                await link.text("setup")
            first, second, _ = show.server.viewers
            show.server.show_frame(frame, {first: 7, second: 2**32 - 1})
            return [(await link.frame()).input for link in links]

    assert asyncio.run(run()) == [7, 2**32 - 1, 0]


def test_pages_are_told_goodbye(show: EchoShow) -> None:
    async def work(link: Link) -> int | None:
        await asyncio.get_running_loop().run_in_executor(None, show.server.close)
        return (await link.end())[0]

    assert with_page(show, work) == 1001 and show.closed == show.opened == 1
    show.server.close()  # again, and nothing happens
    show.server.show_frame(b"")
    show.server.say("nobody hears it")


def test_a_port_that_is_taken_is_named(show: EchoShow) -> None:
    with pytest.raises(ServerError, match=f"port {show.server.port} on 127.0.0.1 is in use"):
        PageServer(show, show.server.port)
