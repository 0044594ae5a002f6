"""Draw plots of a comparison as SVG."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.verdict import Situation
from rlgym_bridge.compare.fit.input_lag import LagFit

_WIDTH: Final = 320
_HEIGHT: Final = 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 24, 34
_LEAST: Final = 1e-3  # uu: smaller errors are drawn there
COLOURS: Final = {
    "p50": "var(--median)", "band": "var(--band)", "tolerance": "var(--bad)", "floor": "var(--faint)"
}  # fmt: skip
"""Colours of a plot's parts, which the page defines for light and dark."""

_LINES: Final = {"tolerance": ' stroke-dasharray="4 3"', "floor": ' stroke-dasharray="2 2"', "p50": ""}


def drift_plot(name: str, rows: Sequence[Situation]) -> str:
    """Return the error of a situation over the horizon: median, its band up to p90, floor and tolerance.

    Args:
        name: Of the situation.
        rows: Its rows, by horizon.
    """
    ticks = [row.horizon_ticks for row in rows]
    series = {
        "p50": [row.p50 for row in rows], "p90": [row.p90 for row in rows],
        "floor": [row.floor for row in rows], "tolerance": [row.tolerance for row in rows],
    }  # fmt: skip
    low = max(_LEAST, min(min(values) for values in series.values()))
    high = max(10 * low, max(max(values) for values in series.values()))
    across = _scale(ticks, min(ticks), max(ticks), _LEFT, _WIDTH - _RIGHT)
    up = {key: _scale(values, low, high, _HEIGHT - _BOTTOM, _TOP) for key, values in series.items()}
    band = [*zip(across, up["p50"], strict=True), *reversed(list(zip(across, up["p90"], strict=True)))]
    parts = [
        f'<polygon points="{_points(band)}" fill="{COLOURS["band"]}" fill-opacity="0.5"/>',
        *(
            f'<polyline points="{_points(list(zip(across, up[key], strict=True)))}" fill="none" '
            f'stroke="{COLOURS[key]}" stroke-width="1.6"{dashes}/>'
            for key, dashes in _LINES.items()
        ),
        *(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{COLOURS["p50"]}"/>'
            for x, y in zip(across, up["p50"], strict=True)
        ),
        _ticks_below(dict(zip(map(str, ticks), across, strict=True)), "ticks"),
        _decades(low, high),
    ]  # fmt: skip
    return _frame(f"{name}: position error, uu", parts)


def lag_plot(source: str, lag: LagFit) -> str:
    """Return the typical error for each lag that was tried; the one that was taken is marked."""
    lags, errors = list(lag.curve), list(lag.curve.values())
    low = max(_LEAST, min(errors))
    high = max(10 * low, max(errors))
    across = _linear(lags, min(lags), max(lags), _LEFT, _WIDTH - _RIGHT)
    up = _scale(errors, low, high, _HEIGHT - _BOTTOM, _TOP)
    line = list(zip(across, up, strict=True))
    taken = lags.index(lag.ticks)
    parts = [
        f'<polyline points="{_points(line)}" fill="none" stroke="{COLOURS["p50"]}" stroke-width="1.6"/>',
        f'<circle cx="{line[taken][0]:.1f}" cy="{line[taken][1]:.1f}" r="5" fill="none" '
        f'stroke="{COLOURS["tolerance"]}" stroke-width="2"/>',
        _ticks_below(dict(zip(map(str, lags), across, strict=True)), "ticks of input latency"),
        _decades(low, high),
    ]
    return _frame(f"{source}: typical error by lag, uu/s", parts)


def _scale(values: Sequence[float], low: float, high: float, start: float, stop: float) -> list[float]:
    """Return places on a logarithmic axis."""
    clipped = np.log10(np.clip(np.asarray(values, float), max(low, _LEAST), None))
    return _linear(clipped, np.log10(max(low, _LEAST)), np.log10(max(high, _LEAST)), start, stop)


def _linear(
    values: Sequence[float] | np.ndarray, low: float, high: float, start: float, stop: float
) -> list[float]:
    share = (np.asarray(values, float) - low) / max(high - low, 1e-9)
    return list((start + share * (stop - start)).tolist())


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _ticks_below(places: Mapping[str, float], title: str) -> str:
    base = _HEIGHT - _BOTTOM
    marks = "".join(
        f'<text x="{x:.1f}" y="{base + 13}" text-anchor="middle">{escape(text)}</text>'
        for text, x in places.items()
    )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return f'{marks}<text x="{middle:.0f}" y="{base + 28}" text-anchor="middle">{escape(title)}</text>'


def _decades(low: float, high: float) -> str:
    """Return lines and labels at the powers of ten."""
    found = []
    for power in range(int(np.floor(np.log10(max(low, _LEAST)))), int(np.ceil(np.log10(high))) + 1):
        (place,) = _scale([10.0**power], low, high, _HEIGHT - _BOTTOM, _TOP)
        if _TOP - 1 <= place <= _HEIGHT - _BOTTOM + 1 and 10.0**power >= low * 0.999:
            found.append(
                f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{place:.1f}" y2="{place:.1f}" '
                'stroke="var(--line)"/>'
                f'<text x="{_LEFT - 5}" y="{place + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
            )
    return "".join(found)


def _frame(title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img">'
        f'<text x="4" y="14" class="title">{escape(title)}</text>{"".join(reversed(parts))}</svg>'
    )
