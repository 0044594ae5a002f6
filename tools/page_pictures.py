"""Makes the documentation's pictures of the page: `python -m tools.page_pictures docs/pictures RUN`.

It writes page-play.jpg, page-watch.jpg, page-view.jpg and page-train.jpg, of 1280 x 720 points and below
200 kB each. Chasers play, the shipped policy plays Chaser for a recording, and RUN is the folder of a
training run: it takes two minutes.
"""

import sys
import tempfile
import threading
from pathlib import Path
from queue import Queue

from playwright.sync_api import Browser, Page

from rlgym_bridge.view.web.shown_run import RunShow
from tests.support.page_browser import ask, command, open_page, opened_browser, shown_page, wait_until
from tests.support.recorded_matches import CHASER_AND_POLICY, POLICY, record

_QUALITY = 86  # of a JPEG, in percent
_SHARP = "window.addEventListener('load', () => setTimeout(() => (app.sharpened = Infinity)))"
"""Keeps a slow machine from drawing fewer points."""


def picture(page: Page, path: Path) -> None:
    """Write what a page shows, once it stands still and is sharp."""
    ask(page, "void (app.renderer.scale = 1)")
    ask(page, "void (document.getElementById('numbers').hidden = true)")  # this machine's speed
    page.wait_for_timeout(1500)
    path.write_bytes(page.screenshot(type="jpeg", quality=_QUALITY))
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def play(browser: Browser, folder: Path) -> None:
    """Show a match of two against two that a human drives in, just after the kickoff."""
    options = ("play", "chaser", "chaser", "--with", "chaser", "--seed", "4")
    with tempfile.TemporaryDirectory() as home, shown_page(Path(home), *options) as address:
        page = open_page(browser, address, _SHARP)
        command(page, "speed", 0.25)  # so that a slow machine takes it in time
        wait_until(page, "app.phase() === 'kickoff'")
        page.keyboard.down("w")
        page.mouse.move(640, 300)
        page.mouse.down()
        wait_until(page, "app.frame.cars[app.followed].boost < 22")
        picture(page, folder / "page-play.jpg")


def watch(browser: Browser, folder: Path) -> None:
    """Show a match from the stands."""
    teams = ("--blue", "chaser", "chaser", "--orange", "chaser", "chaser")
    options = ("match", "--web", *teams, "--seconds", "60")
    with tempfile.TemporaryDirectory() as home, shown_page(Path(home), *options) as address:
        page = open_page(browser, address, _SHARP)
        wait_until(page, "app.frame.clock < 54 && app.phase() === 'active'")
        picture(page, folder / "page-watch.jpg")


def view(browser: Browser, folder: Path) -> None:
    """Show a recording, with what the policy saw and chose."""
    with tempfile.TemporaryDirectory() as home:
        recording = record(Path(home) / "match.mcap", **CHASER_AND_POLICY)
        with shown_page(Path(home), "view", "--web", str(recording), "--policy", str(POLICY)) as address:
            page = open_page(browser, address, _SHARP)
            seat = ask(page, "app.setup.cars.findIndex(({ name }) => !/chaser/i.test(name))")
            ask(page, f"app.follow({max(seat, 0)})")
            command(page, "seek", 0.2 * ask(page, "app.setup.length_s"))
            wait_until(page, "!document.getElementById('mind').hidden")
            command(page, "pause")
            picture(page, folder / "page-view.jpg")


def train(browser: Browser, folder: Path, run: Path) -> None:
    """Show a run's newest checkpoint against itself, beside the curves."""
    opened: Queue[str] = Queue()
    show = RunShow(run, 0)
    threading.Thread(target=show.show, args=(opened.put,), daemon=True).start()
    page = open_page(browser, opened.get(timeout=60), _SHARP)
    ask(page, "app.follow(0)")
    wait_until(
        page, "app.frame.clock < 298.8 && app.phase() === 'active' && !document.getElementById('mind').hidden"
    )
    picture(page, folder / "page-train.jpg")
    show.stop()


if __name__ == "__main__":
    pictures, trained = Path(sys.argv[1]), Path(sys.argv[2])
    with opened_browser() as chromium:
        for make in (play, watch, view):
            make(chromium, pictures)
        train(chromium, pictures, trained)
