"""Makes docs/pictures/view.png: `python -m tools.viewer_picture RECORDING.mcap SECONDS OUT.png`.

The picture in the documentation is of a match between the bots that come along, 13.1 s after its start:

    rlgym-bridge match --blue chaser --orange bot/policy --pace lockstep --seconds 20 --max-overtime 0 \
        --record match.mcap
    python -m tools.viewer_picture match.mcap 13.1 docs/pictures/view.png
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Page

from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.view.scene import BALL_COLOR
from rlgym_bridge.view.write import write_rrd
from tests.support.viewer_browser import like, picture, viewer_page, wait_for

_SIZE: Final = (1440, 900)
# On the page, from its left or right and upper or lower edge, in pixels.
_TAB: Final = (220, 40)
_PAUSE: Final = (73, -17)
_TIME: Final = (-130, -17)
_SETTLE_SECONDS: Final = 6.0


def main() -> None:
    """Show a recording at a moment, and save what is seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "match.rrd"
        write_rrd(open_recording(options.recording), path)
        with viewer_page(path, *_SIZE) as page:
            wait_for(page, lambda seen: like(seen, BALL_COLOR).sum() > 20, 120)
            _go_to(page, options.seconds)
            seen = picture(page)
    Image.fromarray(seen).save(options.out, optimize=True)
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


def _go_to(page: Page, seconds: float) -> None:
    """Look from behind blue's goal, and at this moment."""
    for place, clicks in ((_TAB, 1), (_PAUSE, 1), (_TIME, 2)):
        x, y = (one if one >= 0 else size + one for one, size in zip(place, _SIZE, strict=True))
        page.mouse.click(x, y, click_count=clicks)
        time.sleep(1)
    page.keyboard.press("Control+A")
    page.keyboard.type(f"{seconds}s")
    page.keyboard.press("Enter")
    time.sleep(_SETTLE_SECONDS)


if __name__ == "__main__":
    main()
