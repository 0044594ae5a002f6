"""Draw how both simulators follow captures of the game.

    python -m tests.support.captures FOLDER --json captures.json
    python -m tools.flight_years match.replay ... --json years.json
    python -m tools.physics_plots captures.json years.json docs/pictures

The first two commands measure captures and other recordings of one's own, see `capture_files` and
`flight_years`; the last writes physics-exact.svg, physics-error.svg and physics-years.svg from their numbers.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3

_SETS: Final = {
    ROCKETSIM2: ("RocketSim 2.2.1", "#c62828"),
    ROCKETSIM3: ("RocketSim 3", "#1565c0"),
}
_SITUATIONS: Final = (
    "ball in flight", "ball through a bounce", "ball through a hit", "car on the ground",
    "car through a jump", "car through a dodge", "car in a powerslide", "car through a bump",
    "car through a hit",
)  # fmt: skip
_LEAST: Final = 0.005  # uu: positions are printed to 0.01, smaller medians are drawn here
_MOST: Final = 20.0  # uu
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 240, 170, 40, 26, 24
_STYLE: Final = "<style>text{font:11px system-ui,sans-serif;fill:#444}.t{font-weight:600;fill:#222}</style>"


def draw_exactness(summaries: Mapping[str, Any]) -> str:
    """Return bars of the share of components that the next tick has to all printed digits."""
    names = list(summaries[ROCKETSIM2]["exact"])
    parts, height = [_key(150)], 34
    for name in names:
        parts.append(f'<text x="140" y="{height + 14}" text-anchor="end">{escape(name)}</text>')
        for rules, (_, colour) in _SETS.items():
            hits, count = summaries[rules]["exact"][name]
            share = hits / count
            parts.append(
                f'<rect x="150" y="{height}" width="{360 * share:.1f}" height="10" fill="{colour}"/>'
                f'<text x="{156 + 360 * share:.1f}" y="{height + 9}">{100 * share:.1f} % of {count:,}</text>'
            )
            height += 12
        height += 8
    return _svg(620, height, parts)


def draw_errors(summaries: Mapping[str, Any]) -> str:
    """Return the median error by horizon of each situation, on logarithmic axes."""
    columns = 3
    parts = [_key(_LEFT)]
    for number, name in enumerate(_SITUATIONS):
        x, y = number % columns * _WIDTH, 20 + number // columns * _HEIGHT
        inside = [
            _axes(name),
            *(_line(summaries[rules], name, colour) for rules, (_, colour) in _SETS.items()),
        ]
        parts.append(f'<g transform="translate({x},{y})">{"".join(inside)}</g>')
    return _svg(columns * _WIDTH, 24 + -(-len(_SITUATIONS) // columns) * _HEIGHT, parts)


def draw_years(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the median error of a ball in the air after a second, of each recording by its time."""
    base, width = _HEIGHT + 20, _LEFT + 20 + 92 * len(rows)
    parts = [_key(_LEFT), '<text class="t" x="4" y="34">ball in the air after a second, uu</text>']
    for value in (0.01, 0.1, 1.0):
        y = _up_years(value)
        parts.append(
            f'<line x1="{_LEFT}" x2="{width - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="{_LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
        )
    for number, row in enumerate(rows):
        x = _LEFT + 56 + 92 * number
        for rules, (_, colour) in _SETS.items():
            at = row["errors"][rules]
            y = _up_years(at["p50"])
            parts.append(
                f'<circle cx="{x}" cy="{y:.1f}" r="4" fill="{colour}"/>'
                f'<text x="{x + 8}" y="{y + 4:.1f}">{at["p50"]:.2f}</text>'
            )
        windows = row["errors"][ROCKETSIM2]["windows"]
        parts.append(
            f'<text class="t" x="{x}" y="{base}" text-anchor="middle">{escape(row["when"])}</text>'
            f'<text x="{x}" y="{base + 15}" text-anchor="middle">{windows} windows</text>'
        )
    return _svg(width, base + 24, parts)


def _up_years(error: float) -> float:
    share = np.log(np.clip(error, _LEAST, 1.0) / _LEAST) / np.log(1.0 / _LEAST)
    return float(_HEIGHT - (_HEIGHT - 48) * share)


def _line(summary: Mapping[str, Any], name: str, colour: str) -> str:
    at = {int(horizon): row["p50"] for horizon, row in summary["errors"].get(name, {}).items()}
    places = [(_across(horizon), _up(error)) for horizon, error in at.items()]
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.4" fill="{colour}"/>' for x, y in places)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>{dots}'


def _axes(title: str) -> str:
    lines = [f'<text class="t" x="4" y="16">{escape(title)}, uu</text>']
    for value in (0.01, 0.1, 1.0, 10.0):
        y = _up(value)
        lines.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="{_LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
        )
    for ticks, text in ((30, "0.25"), (60, "0.5"), (120, "1"), (240, "2 s")):
        lines.append(f'<text x="{_across(ticks):.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{text}</text>')
    return "".join(lines)


def _across(ticks: float) -> float:
    return float(_LEFT + 10 + (_WIDTH - _LEFT - 30) * np.log2(ticks / 30) / 3)


def _up(error: float) -> float:
    share = np.log(np.clip(error, _LEAST, _MOST) / _LEAST) / np.log(_MOST / _LEAST)
    return float(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share)


def _key(x: float) -> str:
    parts = []
    for text, colour in _SETS.values():
        parts.append(f'<rect x="{x:.0f}" y="6" width="18" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{x + 24:.0f}" y="13">{escape(text)}</text>')
        x += 110
    return "".join(parts)


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">{_STYLE}<rect width="100%" height="100%" fill="#fff"/>'
        f"{''.join(parts)}</svg>\n"
    )


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("numbers", type=Path, help="what tests.support.captures --json wrote")
    parser.add_argument("years", type=Path, help="what tools.flight_years --json wrote")
    parser.add_argument("folder", type=Path, help="where the plots are written")
    options = parser.parse_args()
    summaries = json.loads(options.numbers.read_text())
    if lacking := set(_SETS).difference(summaries):
        raise SystemExit(f"{options.numbers} lacks {', '.join(sorted(lacking))}: measure with both")
    plots = {
        "exact": draw_exactness(summaries),
        "error": draw_errors(summaries),
        "years": draw_years(json.loads(options.years.read_text())),
    }
    for name, text in plots.items():
        (options.folder / f"physics-{name}.svg").write_text(text)


if __name__ == "__main__":
    main()
