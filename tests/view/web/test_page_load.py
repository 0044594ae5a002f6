"""A match in real time beside pages that do what they should not."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("aiohttp")

import aiohttp
from rlbot import flat

from rlgym_bridge.policy.load_player import BUILT_IN, load_player
from rlgym_bridge.server import MatchServer
from rlgym_bridge.view.web.page_server import PageServer
from rlgym_bridge.view.web.played_match import HUMAN, PlayedMatch
from tests.support.web_pages import linked, socket_address

_SECONDS = 1.5
_LEAST_SHARE = 0.9
_ROUNDS = 4  # one of these counts: other programs slow a match, too


@pytest.fixture
def played() -> Iterator[tuple[str, Callable[[], int]]]:
    """Play a match against Chaser in another thread; return the page's address and what tells the tick."""
    opened: list[str] = []
    ready = threading.Event()

    def serve(show: PlayedMatch) -> PageServer:
        pages = PageServer(show)
        opened.append(pages.address)
        ready.set()
        return pages

    players = [flat.PlayerConfiguration(flat.PsyonixBot(f"Car {team}"), team) for team in (0, 1)]
    match = flat.MatchConfiguration(player_configurations=players, mutators=flat.MutatorSettings())
    show = PlayedMatch("play", [HUMAN, "chaser"], load_player, BUILT_IN, serve)
    with MatchServer(control=show) as server, show:
        thread = threading.Thread(target=server.play, args=(match,), daemon=True)
        thread.start()
        assert ready.wait(20)
        yield opened[0], lambda: show._match.tick
        server.stop()
        thread.join(20)


async def ticks_a_second(tick: Callable[[], int]) -> float:
    """Return the ticks of the match in a second, over a few seconds."""
    first, began = tick(), time.perf_counter()
    await asyncio.sleep(_SECONDS)
    return (tick() - first) / (time.perf_counter() - began)


async def annoy(address: str, until: asyncio.Event) -> int:
    """Connect, flood, send nonsense and ask with a wrong token, again and again; return how often."""
    count, socket = 0, socket_address(address)
    async with aiohttp.ClientSession() as session:
        while not until.is_set():
            count += 1
            try:
                link = await session.ws_connect(socket if count % 2 else f"{socket}x")
                for _ in range(400):
                    await link.send_str(
                        '{"type":"input","seq":1,"controls":[1,1,1,1,1,1,1,1]}' if count % 3 else "{"
                    )
                await link.close()
            except (aiohttp.ClientError, ConnectionError):
                await asyncio.sleep(0.01)
    return count


def test_floods_and_a_hundred_pages_do_not_slow_the_match(
    played: tuple[str, Callable[[], int]], capsys: pytest.CaptureFixture[str]
) -> None:
    address, tick = played

    async def run() -> tuple[float, float, int]:
        until = asyncio.Event()
        async with linked(address) as (driver,), aiohttp.ClientSession() as session:
            await driver.command("ready")
            await driver.frame(lambda frame: frame.tick > 60)
            alone = await ticks_a_second(tick)
            others = [await session.ws_connect(socket_address(address)) for _ in range(100)]
            tasks = [asyncio.create_task(annoy(address, until)) for _ in range(4)]
            for _ in range(_ROUNDS):
                beside = await ticks_a_second(tick)
                if beside > _LEAST_SHARE * alone:
                    break
            until.set()
            count = sum(await asyncio.gather(*tasks))
            for one in others:
                await one.close()
            return alone, beside, count

    alone, beside, count = asyncio.run(run())
    with capsys.disabled():
        print(f" {alone:.1f} ticks a second alone, {beside:.1f} beside 100 pages and {count} floods", end=" ")
    assert beside > _LEAST_SHARE * alone
