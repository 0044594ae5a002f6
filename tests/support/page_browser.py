"""The match's page in a Chromium without a window and without a graphics card."""

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.processes import child

WIDTH, HEIGHT = 1280, 720
GL: Final = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox")
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_ANSWER_MS: Final = 60_000  # that a page may take on a busy machine


def find_chromium() -> str | None:
    """Return the browser's program, None where there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """Start a browser that draws WebGL in software."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(GL))
        try:
            yield browser
        finally:
            browser.close()


def open_page(browser: Browser, address: str, script: str = "", drawn: bool = True) -> Page:
    """Open an address in a page of its own; `script` runs before the page's, `drawn` awaits a frame."""
    page = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}).new_page()
    page.set_default_timeout(_ANSWER_MS)
    if script:
        page.add_init_script(script)
    page.goto(address)
    if drawn:
        wait_until(page, "window.app?.view")
    return page


def wait_until(page: Page, script: str) -> None:
    """Wait until a script's value is true; the error tells what the page shows."""
    page.wait_for_function(f"() => {script}", polling=50)


def ask(page: Page, script: str) -> Any:
    """Return the value of a script."""
    return page.evaluate(f"() => {script}")


def command(page: Page, do: str, value: Any = None) -> None:
    """Send a command as the page's own panel does."""
    page.evaluate("([what, value]) => app.command(what, value)", [do, value])


@contextmanager
def shown_page(folder: Path, *options: str) -> Iterator[str]:
    """Run a command that shows a page, such as `play`; give the page's address, and stop it by Ctrl-C."""
    words = [sys.executable, "-m", "rlgym_bridge.cli", *options, "--no-browser"]
    with child(words, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [next(process.stdout, "")]
        while said[-1] and "http://" not in said[-1]:
            said.append(next(process.stdout, ""))
        found = re.search(r"http://\S+", said[-1])
        assert found is not None, f"it said {said}, expected the page's address"
        yield found[0]
        process.send_signal(signal.SIGINT)
        process.wait(30)
