"""Write a comparison as one self-contained HTML page."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any, Final

import numpy as np

from rlgym_bridge.compare.comparison_result import (
    Comparison,
    Fit,
    Gap,
    GapVerdict,
    Situation,
    Size,
    Untried,
    begin_with,
    listed,
    name_simulator,
    said_once,
    short_verdict,
    sources_to_show,
    told_fit,
    told_untried,
)
from rlgym_bridge.compare.two_sets import LEVEL, Against

_STYLE: Final = """
:root { color-scheme: light dark; --text: #222; --line: #e0e0e0; --back: #fff;
  --bad: #b71c1c; --time: #a15c00; --good: #1b7a2f; --median: #1565c0; --band: #90caf9 }
@media (prefers-color-scheme: dark) { :root { --text: #e4e4e4; --line: #3a3a3a; --back: #171717;
  --bad: #ff8a80; --time: #ffb74d; --good: #81c784; --median: #64b5f6; --band: #1e5a94 } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1180px; padding: 0 1em;
  color: var(--text); background: var(--back) }
a { color: var(--median) } h1 { font-size: 1.4em } li, h1, h3, p { overflow-wrap: anywhere }
h2 { font-size: 1.15em; margin-top: 2em } h3 { font-size: 1em } .wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 14px }
th, td { padding: 2px 6px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { font-weight: 600 }
svg { margin: 4px; max-width: 100% } svg text { font: 11px system-ui, sans-serif; fill: var(--text) }
svg .title { font-weight: 600 }
.physics, .wrong, .offset, .untried { color: var(--bad); font-weight: 600 }
.timing { color: var(--time) } .agrees { color: var(--good) }
.key span { display: inline-block; width: 22px; height: 3px; margin: 0 5px 3px 14px }
"""

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
_GROWTH: Final = {MEDIAN: "p50", WORST: "worst", BOUND: "tolerance", OTHER: "rocketsim2"}
_DASHES: Final = {BOUND: ' stroke-dasharray="4 3"', OTHER: ' stroke-dasharray="2 2"'}

_ERRORS: Final = ("p50", "p90", "worst", "tolerance", "rocketsim2", "velocity", "angle", "spin")
_LOOKS: Final = {short_verdict(kind): f' class="{kind.name.lower()}"' for kind in GapVerdict}
_KEY: Final = "".join(f'<span style="background:{colour}"></span>{name}' for name, colour in COLOURS.items())


def report(found: Comparison, note: str = "") -> str:
    """Return the page: what differs, what could not be judged, tables, plots, and all of it as JSON.

    Args:
        found: The comparison.
        note: Where the recordings come from, a sentence to stand below the heading; empty for none.
    """
    first, *others = begin_with(found)
    shown, every = sources_to_show(found), [fit.source for fit in found.fits]
    agreeing = [source for source in every if source not in shown]
    fits = [(number, fit) for number, fit in enumerate(found.fits) if fit.source in shown]
    claims = [_claim(gap.kind, gap.text, _links(found, gap)) for gap in found.gaps]
    claims += [_claim(GapVerdict.UNTRIED, told_untried(one), _links(found, one)) for one in found.untried]
    sections = [
        f"<h1>{escape(first)}</h1>",
        f"<p><strong>{escape(note)}</strong></p>" if note else "",
        f"<p>{escape(' '.join(others))}</p>",
        *_section("Not compared", [escape(one.describe()) for one in found.refused]),
        *_section("What differs", claims),
        *_section("What could not be judged", map(escape, said_once(found.unjudged, every))),
        "<h2>Errors after 1 to 240 ticks</h2>",
        f"<p>{name_simulator(found)} is put in the recorded state, over and over, and let go with the "
        "recorded inputs. 120 ticks are a second. Position errors are in uu. The bound is what the recording "
        "leaves open, in the median: its digits, noise and inputs. 2.2.1 is the median of RocketSim 2.2.1, "
        "in which RLGym trains. Last come the medians of velocity (uu/s), orientation (rad) and spin "
        "(rad/s).</p>",
        f"<p>Left out, since nothing differs: {escape(listed(agreeing))}</p>" if agreeing else "",
        _situations(row for row in found.situations if row.source in shown),
        "<h2>How errors grow</h2>",
        f'<p class="key">{_KEY}</p>',
        *(_plots(found, number, fit) for number, fit in fits),
        "<h2>What each parameter can be</h2>",
        "<p>With a parameter in its interval all windows that agree stay within their bounds.</p>",
        _sizes(size for size in found.sizes if size.source in shown),
        *_section(
            "How it was found",
            map(escape, said_once([f"{fit.source}: {told_fit(fit)}" for fit in found.fits], every)),
        ),
        *_section("Notes", map(escape, said_once(found.notes, every))),
        f'<script type="application/json" id="comparison">{_json(found.as_json())}</script>',
    ]  # fmt: skip
    return _page(f"{found.fits[0].source} against {name_simulator(found)}", sections)


def report_against(found: Against) -> str:
    """Return the page of two sets of matches: what differs, all features, and all of it as JSON."""
    heads = ("feature", "mean", "mean of --against", "95 % from", "to", "distance", "chance", "")
    rows = [
        (one.name, *(f"{value:.4g}" for value in (one.here, one.there, one.low, one.high)),
         f"{one.distance:.3f}", f"{one.chance:.4f}", "differs" if one.differs else "")
        for one in found.differences
    ]  # fmt: skip
    sections = [
        f"<h1>{'The matches are alike' if found.alike else 'The matches differ'}</h1>",
        f"<p>{sum(one.differs for one in found.differences):,} of {len(rows):,} features differ, over "
        f"{found.pieces[0]} and {found.pieces[1]} pieces of play. Chance of any false alarm: "
        f"{100 * LEVEL:g} %.</p>",
        _table(heads, rows),
        f'<script type="application/json" id="against">{_json(found.as_json())}</script>',
    ]  # fmt: skip
    return _page("Two sets of matches", sections)


def _page(title: str, sections: Sequence[str]) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(sections)}</body></html>\n"
    )


def _section(title: str, items: Iterable[str]) -> list[str]:
    """Return a heading and a list of HTML; nothing where the list is empty."""
    lines = "".join(f"<li>{one}</li>" for one in items)
    return [f"<h2>{title}</h2>", f"<ul>{lines}</ul>"] if lines else []


def _claim(kind: GapVerdict, text: str, links: dict[str, str]) -> str:
    ways = ", ".join(f'<a href="#{place}">{name}</a>' for place, name in links.items())
    return f"<span{_LOOKS[short_verdict(kind)]}>{kind.value}</span>: {escape(text)} ({ways})"


def _links(found: Comparison, claim: Gap | Untried) -> dict[str, str]:
    """Return the plots that show what a gap, or an untried difference, rests on: names by anchors."""
    number, fit = next((at, fit) for at, fit in enumerate(found.fits) if fit.source == claim.source)
    if isinstance(claim, Gap) and claim.name == "tick offset":
        return {f"r{number}-ages": "ages"}
    late = isinstance(claim, Gap) and claim.name == "input latency" and claim.size == fit.lag.ticks
    if late and fit.lag.curve:
        return {f"r{number}-lag": "errors by input latency"}
    worst = {f"r{number}-worst": "worst windows"} if _worst(found, fit) else {}
    return {f"r{number}-growth": "growth of errors"} | worst


def _worst(found: Comparison, fit: Fit) -> dict[str, float]:
    """Return the worst windows of a recording, as multiples of their bounds."""
    own = [one for one in found.worst if one.source == fit.source]
    return {f"{one.body}, {one.situation}, row {one.row:,}": one.tolerances for one in own}


def _plots(found: Comparison, number: int, fit: Fit) -> str:
    """Return all plots of a recording, with the anchors that claims link to."""
    plots = {"growth": ""}
    own = (row for row in found.situations if row.source == fit.source)
    for name, group in groupby(own, lambda row: row.name):
        rows = list(group)
        series = {part: [getattr(row, column) for row in rows] for part, column in _GROWTH.items()}
        ticks = [row.horizon_ticks for row in rows]
        plots["growth"] += curves(f"{name}: position error, uu", ticks, series)
    if worst := _worst(found, fit):
        plots["worst"] = bars("Worst windows: error as a multiple of its bound", worst, 1.0)
    if curve := fit.lag.curve:
        series = {MEDIAN: [*curve.values()]}
        marked = list(curve).index(fit.lag.ticks)
        plots["lag"] = curves("Typical error by input latency, uu/s", [*curve], series, marked)
    if any(fit.offset.ages[1:]):
        ages = {f"{age} ticks": float(count) for age, count in enumerate(fit.offset.ages)}
        plots["ages"] = bars("Steps by the age of their states", ages)
    drawn = "".join(f'<div id="r{number}-{place}">{plot}</div>' for place, plot in plots.items())
    return f"<h3>{escape(fit.source)}</h3>{drawn}"


def _situations(rows: Iterable[Situation]) -> str:
    """Return a table of errors by recording, situation and horizon."""
    heads = "situation|recording|ticks|verdict|windows|beyond|p50|p90|worst|bound|2.2.1|uu/s|rad|rad/s"
    lines = [
        (one.name, one.source, str(one.horizon_ticks), short_verdict(one.verdict), str(one.windows),
         str(one.beyond), *(_three_digits(getattr(one, column)) for column in _ERRORS))
        for one in rows
    ]  # fmt: skip
    return _table(heads.split("|"), lines)


def _sizes(sizes: Iterable[Size]) -> str:
    """Return a table of parameters with their intervals."""
    rows = []
    for one in sizes:
        numbers = [f"{value:.6g}" for value in (one.value, one.low, one.high)]
        rows.append((one.name, one.source, *numbers, one.unit, str(one.windows)))
    return _table(("parameter", "recording", "value", "from", "to", "unit", "windows"), rows)


def _three_digits(value: float) -> str:
    return "-" if value != value else f"{value:.3g}" if value >= 0.001 else "<0.001"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; verdicts in it have their colours."""
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    body = "".join(
        "<tr>" + "".join(f"<td{_LOOKS.get(one, '')}>{escape(one)}</td>" for one in row) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _json(values: Any) -> str:
    return json.dumps(values).replace("<", "\\u003c")  # it stands in a page


# --- plots, as SVG --------------------------------------------------------------------------------


def curves(
    title: str, at: Sequence[int], series: Mapping[str, Sequence[float]], marked: int | None = None
) -> str:
    """Return curves on a logarithmic upright axis; between `MEDIAN` and `WORST` is a band.

    Args:
        title: Of the plot.
        at: Where the values are, rising, in ticks.
        series: Values by name, of `COLOURS`; nan where there is none. `MEDIAN` has all.
        marked: Which value of `MEDIAN` has a ring.
    """
    every = np.array([*series.values()], float)
    low = max(_LEAST, float(np.nanmin(every)))
    high = max(10 * low, float(np.nanmax(every)))
    shares = np.linspace(0, 1, len(at)) if len(at) > 1 else [0.5]
    across = [_LEFT + 8 + share * (_WIDTH - _RIGHT - _LEFT - 16) for share in shares]
    lines = {
        name: [
            (x, _height(value, low, high)) for x, value in zip(across, values, strict=True) if value == value
        ]
        for name, values in series.items()
    }
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
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _BASE + 28, "ticks", "middle"))
    return _frame(title, parts, _WIDTH, _HEIGHT)


def bars(title: str, values: Mapping[str, float], bound: float | None = None) -> str:
    """Return horizontal bars with their names and values, 0 or more; with a bound they are logarithms.

    Those beyond the bound, which is in the same unit, stand out, and it is a line.
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
        parts.append(_text(_NAMES - 6, top + 13, name, "end"))
        parts.append(_text(_NAMES + length + 5, top + 13, f"{value:.3g}"))
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
        across = f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}"'
        found.append(f'<line {across} y1="{y:.1f}" y2="{y:.1f}" stroke="var(--line)"/>')
        found.append(_text(_LEFT - 5, y + 4, f"{10.0**power:g}", "end"))
    return "".join(found)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _frame(title: str, parts: Sequence[str], width: int, height: int) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
        f'<text x="4" y="14" class="title">{escape(title)}</text>{"".join(parts)}</svg>'
    )
