"""Draw plots of a comparison as SVG."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

import numpy as np

_WIDTH, _HEIGHT = 320, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 24, 34
_BASE: Final = _HEIGHT - _BOTTOM
_LEAST: Final = 1e-3  # smaller values are drawn there
_BAR, _NAMES = 18, 230  # height of a bar with its gap, and width of the names of bars
COLOURS: Final = {
    "median": "var(--median)", "up to the worst": "var(--band)", "bound, in the median": "var(--bad)",
    "RocketSim 2.2.1, median": "var(--time)",
}  # fmt: skip
"""Colours of the parts of a plot, which the page defines for light and dark."""
MEDIAN, WORST, BOUND, OTHER = COLOURS
_DASHES: Final = {BOUND: ' stroke-dasharray="4 3"', OTHER: ' stroke-dasharray="2 2"'}


def curves(
    title: str, unit: str, at: Sequence[int], series: Mapping[str, Sequence[float]], marked: int | None = None
) -> str:
    """Return curves on a logarithmic upright axis; between `MEDIAN` and `WORST` is a band.

    Args:
        title: Of the plot.
        unit: Of `at`.
        at: Where the values are, rising.
        series: Values by name, of `COLOURS`; nan where there is none. `MEDIAN` has all.
        marked: Which value of `MEDIAN` has a ring.
    """
    every = np.array([*series.values()], float)
    low = max(_LEAST, float(np.nanmin(every)))
    high = max(10 * low, float(np.nanmax(every)))
    shares = np.linspace(0, 1, len(at)) if len(at) > 1 else [0.5]
    across = [_LEFT + 8 + share * (_WIDTH - _RIGHT - _LEFT - 16) for share in shares]
    lines = {}
    for name, values in series.items():
        up = [_height(value, low, high) for value in values]
        lines[name] = [(x, y) for x, y in zip(across, up, strict=True) if y == y]
    parts = [_decades(low, high)]
    if WORST in lines:
        band = [*lines[MEDIAN], *reversed(lines.pop(WORST))]
        parts.append(f'<polygon points="{_points(band)}" fill="{COLOURS[WORST]}" fill-opacity="0.5"/>')
    parts += [
        f'<polyline points="{_points(line)}" fill="none" stroke="{COLOURS[name]}" '
        f'stroke-width="1.6"{_DASHES.get(name, "")}/>'
        for name, line in lines.items()
    ]
    dot = f'r="2.2" fill="{COLOURS[MEDIAN]}"'
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" {dot}/>' for x, y in lines[MEDIAN]]
    if marked is not None:
        x, y = lines[MEDIAN][marked]
        ring = f'r="5" fill="none" stroke="{COLOURS[BOUND]}" stroke-width="2"'
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" {ring}/>')
    parts += [_text(x, _BASE + 13, str(value), "middle") for x, value in zip(across, at, strict=True)]
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _BASE + 28, unit, "middle"))
    return _frame(title, parts, _WIDTH, _HEIGHT)


def bars(title: str, values: Mapping[str, float], bound: float | None = None) -> str:
    """Return horizontal bars with their names and values; with a bound they are logarithms.

    Those beyond the bound stand out, and it is a line.

    Args:
        title: Of the plot.
        values: By name, 0 or more.
        bound: In the unit of the values.
    """
    bend = float if bound is None else np.log1p
    room = (2 * _WIDTH - _NAMES - 60) / bend(max(*values.values(), bound or 0.0, 1e-9))
    height = _TOP + _BAR * len(values) + 6
    parts = []
    for number, (name, value) in enumerate(values.items()):
        top, length = _TOP + _BAR * number, room * bend(value)
        colour = COLOURS[BOUND if bound is not None and value > bound else MEDIAN]
        size = f'width="{length:.1f}" height="{_BAR - 5}"'
        parts.append(f'<rect x="{_NAMES}" y="{top + 3}" {size} fill="{colour}"/>')
        parts += [
            _text(_NAMES - 6, top + 13, name, "end"),
            _text(_NAMES + length + 5, top + 13, f"{value:.3g}"),
        ]
    if bound is not None:
        x = _NAMES + room * bend(bound)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{height - 4}" stroke="var(--text)"/>')
    return _frame(title, parts, 2 * _WIDTH, height)


def _height(value: float, low: float, high: float) -> float:
    """Return where a value stands on the upright axis."""
    share = np.log10(max(value, low) / low) / np.log10(high / low)
    return float(_BASE + share * (_TOP - _BASE))


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _decades(low: float, high: float) -> str:
    """Return lines and labels at the powers of ten."""
    found = []
    for power in range(int(np.ceil(np.log10(low) - 1e-9)), int(np.floor(np.log10(high) + 1e-9)) + 1):
        y = _height(10.0**power, low, high)
        found.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--line)"/>'
        )
        found.append(_text(_LEFT - 5, y + 4, f"{10.0**power:g}", "end"))
    return "".join(found)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _frame(title: str, parts: Sequence[str], width: int, height: int) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
        f'<text x="4" y="14" class="title">{escape(title)}</text>{"".join(parts)}</svg>'
    )
