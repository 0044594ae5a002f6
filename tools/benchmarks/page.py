"""Measures the page of `play` in a browser, drawn in software: `python -m tools.benchmarks.page [SECONDS]`.

It prints the seconds from the command to a page and to a car that one drives, the countdown included; then,
of some seconds of driving with a key that is pressed again and again, pictures a second at 1280 x 720,
JavaScript a picture, the delay from key to car, and ticks a second of the match. It needs Chromium.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.support.page_browser import ask, open_page, opened_browser, shown_page, wait_until

_HELD_MS = 125  # that the key is down, and up


def main(seconds: float) -> None:
    """Measure for some seconds, and print."""
    load = os.getloadavg()[0]
    with opened_browser() as browser, tempfile.TemporaryDirectory() as home:
        began = time.perf_counter()
        with shown_page(Path(home), "play") as address:
            page = open_page(browser, address)
            drawn = time.perf_counter() - began
            page.keyboard.down("w")
            wait_until(page, "app.frame.cars[app.setup.seat].throttle === 1 && app.phase() !== 'countdown'")
            print(f"a page after {drawn:.1f} s, a car that drives after {time.perf_counter() - began:.1f} s")
            found: list[list[float]] = []
            until = time.perf_counter() + seconds
            while time.perf_counter() < until:
                for press in (page.keyboard.down, page.keyboard.up):
                    press("d")
                    page.wait_for_timeout(_HELD_MS)
                values = "[app.rate, app.busy, app.input.lag?.ticks, app.input.lag?.ms, app.stats?.ticks_s]"
                found.append([float("nan") if one is None else one for one in ask(page, values)])
            rates, costs, ticks, late, speeds = zip(*found, strict=True)
            print(f"{median(rates):.0f} pictures/s ({min(rates):.0f} to {max(rates):.0f})")
            print(f"{median(costs):.2f} ms of JavaScript a picture (worst second {max(costs):.2f})")
            print(
                f"key to car {median(ticks):g} ticks (worst {max(ticks):g}), to picture {median(late):.0f} ms"
            )
            print(f"{median(speeds):.1f} ticks/s (slowest second {min(speeds):.1f})")
            print(f"drawn at {ask(page, 'app.renderer.scale'):.2f} of the points a side")
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores")


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 20.0)
