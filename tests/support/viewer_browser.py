"""Rerun's viewer in a Chromium without a window and without a graphics card."""

import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image
from playwright.sync_api import Error, Page

from rlgym_bridge.view.viewer import viewer
from tests.support.page_browser import opened_browser

_MORE_ATTACHMENTS: Final = """
const asked = WebGL2RenderingContext.prototype.getParameter;
WebGL2RenderingContext.prototype.getParameter = function (name) {
  const limits = [0x8CDF, 0x8824];  // MAX_COLOR_ATTACHMENTS, MAX_DRAW_BUFFERS
  const value = asked.call(this, name);
  return limits.includes(name) ? Math.max(8, value) : value;
};
"""
"""SwiftShader has 6, and wgpu asks for 8, which the viewer does not use."""
_ASK_SECONDS: Final = 1.0


@contextmanager
def viewer_page(path: Path, width: int, height: int) -> Iterator[Page]:
    """Open an `.rrd` file in a page of this size."""
    with viewer(False, path) as (address, _, _), opened_browser() as browser:
        page = browser.new_page(viewport={"width": width, "height": height})
        page.add_init_script(_MORE_ATTACHMENTS)
        # Nothing is asked of other machines: the viewer's usage data, its examples, its fonts.
        page.route(lambda url: "//127.0.0.1:" not in url, lambda route: route.abort())
        page.goto(f"{address}&renderer=webgl")
        yield page


def has_webgl() -> bool:
    """Tell whether the browser can draw."""
    with opened_browser() as browser:
        return bool(browser.new_page().evaluate("!!document.createElement('canvas').getContext('webgl2')"))


def picture(page: Page) -> np.ndarray:
    """Return what the page shows, `(height, width, 3)` uint8."""
    return np.array(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))


def wait_for(page: Page, shows: Callable[[np.ndarray], bool], seconds: float) -> np.ndarray:
    """Return the first picture that shows something, or the last one when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        late = time.monotonic() > deadline
        try:
            seen = picture(page)
        except Error:
            if late:
                raise
        else:
            if shows(seen) or late:
                return seen
        time.sleep(_ASK_SECONDS)


def like(seen: np.ndarray, color: tuple[int, ...]) -> np.ndarray:
    """Return which pixels have a colour's hue, `(height, width)` bool: shading makes them darker."""
    seen = seen.astype(float)
    brightness = np.linalg.norm(seen, axis=-1)
    along = seen @ (np.array(color) / np.linalg.norm(color))
    return (brightness > 110) & (along > 0.985 * brightness)
