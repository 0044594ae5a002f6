"""Write a comparison as one self-contained HTML page."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Any, Final

from rlgym_bridge.compare.findings.block_bootstrap import LEAST_BLOCKS
from rlgym_bridge.compare.findings.comparison_result import Comparison, RefusedFile
from rlgym_bridge.compare.findings.phrases import listed
from rlgym_bridge.compare.findings.sentences import begin_with, told_fit, told_unexplained
from rlgym_bridge.compare.findings.two_sets import LEVEL, Against
from rlgym_bridge.compare.findings.verdict import GapVerdict, Situation
from rlgym_bridge.compare.output.plots import COLOURS, drift_plot, lag_plot

_STYLE: Final = """
:root { color-scheme: light dark; --text: #222; --faint: #666; --line: #e0e0e0; --back: #fff;
  --bad: #b71c1c; --time: #a15c00; --good: #1b7a2f; --median: #1565c0; --band: #90caf9 }
@media (prefers-color-scheme: dark) { :root { --text: #e4e4e4; --faint: #a0a0a0; --line: #3a3a3a;
  --back: #171717; --bad: #ff8a80; --time: #ffb74d; --good: #81c784; --median: #64b5f6; --band: #1e5a94 } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1130px; padding: 0 1em;
  color: var(--text); background: var(--back) }
h1 { font-size: 1.4em } li, h1, p { overflow-wrap: anywhere } .wide { overflow-x: auto }
h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; font-size: 14px }
th, td { padding: 2px 6px; text-align: right; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child, .words th, .words td { text-align: left } td { white-space: nowrap }
th { font-weight: 600 }
svg { margin: 4px } svg text { font: 11px system-ui, sans-serif; fill: var(--text) }
svg .title { font-weight: 600 } svg { max-width: 100% }
.physics, .missing, .wrong, .offset { color: var(--bad); font-weight: 600 }
.timing { color: var(--time) } .agrees { color: var(--good) }
.hidden, .too { color: var(--faint) }
.key span { display: inline-block; width: 22px; height: 3px; margin: 0 5px 3px 14px }
"""


_MEANINGS: Final = {"p50": "median", "band": "up to p90", "tolerance": "tolerance", "floor": "noise floor"}
_KEY: Final = "".join(
    f'<span style="background:{colour}"></span>{_MEANINGS[part]}' for part, colour in COLOURS.items()
)


def report(found: Comparison, note: str = "") -> str:
    """Return the page: what was fitted and found, tables, plots, worst windows, and all of it as JSON.

    Args:
        found: The comparison.
        note: Where the recordings come from, a sentence to stand below the heading; empty for none.
    """
    first, *others = begin_with(found)
    situations = [row for row in found.situations if row.name not in ("ball", "car")]
    overall = [row for row in found.situations if row.name in ("ball", "car")]
    sections = [
        f"<h1>{escape(first)}</h1>",
        f"<p><strong>{escape(note)}</strong></p>" if note else "",
        f"<p>{escape(' '.join(others))}</p>" if others else "",
        f"<p>Recorded: {escape(listed([fit.source for fit in found.fits]))}</p>",
        *_refused(found.refused),
        *_gaps(found),
        "<h2>Errors after 1 to 240 ticks</h2>",
        "<p>RocketSim is put in the recorded state, over and over, and let go with the recorded inputs. "
        "120 ticks are a second. Position errors in uu: p50 is the median; from, to are its 99 % interval, "
        "where enough of the windows lie apart. "
        "The floor is the error of RocketSim against itself. Last come the medians of velocity (uu/s), "
        "orientation (rad) and spin (rad/s).</p>",
        _situations([*overall, *situations]),
        "<h2>How errors grow</h2>",
        f'<p class="key">{_KEY}</p>',
        "".join(drift_plot(name, list(rows)) for name, rows in groupby(situations, lambda row: row.name)),
        "<h2>Worst windows</h2>",
        "<p>The windows of a second that are the most tolerances off.</p>",
        _table(
            ("recording", "body", "row", "tick", "s", "situation", "uu off", "tolerances"),
            [
                (one.source, one.body, str(one.row), f"{one.tick:,}", f"{one.seconds:.2f}", one.situation,
                 f"{one.error:.3g}", f"{one.tolerances:.3g}")
                for one in found.worst
            ],
        ),
        "<h2>How it was found</h2>",
        _list(text for fit in found.fits for text in (f"{fit.source}: {told_fit(fit)}",
                                                      f"{fit.source}: {fit.rules.told()}")),
        *_rules(found),
        *_lags(found),
        *(("<h2>Notes</h2>", _list(found.notes)) if found.notes else ()),
        f'<script type="application/json" id="comparison">{_json(found.as_json())}</script>',
    ]  # fmt: skip
    return _page(f"{found.fits[0].source} against RocketSim", sections)


def report_against(found: Against) -> str:
    """Return the page of two sets of matches: what differs, all features, and all of it as JSON."""
    differing = [one for one in found.differences if one.differs]
    heads = ("feature", "mean", "mean of --against", "95 % from", "to", "distance", "chance", "")
    rows = [
        (
            one.name, *(f"{value:.4g}" for value in (one.here, one.there, one.low, one.high)),
            f"{one.distance:.3f}", f"{one.chance:.4f}", "differs" if one.differs else "",
        )
        for one in found.differences
    ]  # fmt: skip
    sections = [
        f"<h1>{'The matches are alike' if found.alike else 'The matches differ'}</h1>",
        f"<p>{len(differing):,} of {len(found.differences):,} features differ, over {found.pieces[0]} and "
        f"{found.pieces[1]} pieces of play. Chance of any false alarm: {100 * LEVEL:g} %.</p>",
        _table(heads, rows),
        f'<script type="application/json" id="against">{_json(found.as_json())}</script>',
    ]
    return _page("Two sets of matches", sections)


def _page(title: str, sections: Sequence[str]) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(sections)}</body></html>\n"
    )


def _refused(refused: Sequence[RefusedFile]) -> list[str]:
    """Return a section that names what could not be compared; none where everything could."""
    if not refused:
        return []
    return ["<h2>Not compared</h2>", _list(one.describe() for one in refused)]


def _gaps(found: Comparison) -> list[str]:
    """Return a section of what differs; none where nothing was found."""
    told = [(gap.kind, gap.text) for gap in found.gaps]
    told += [(row.verdict, told_unexplained(row)) for row in found.unexplained]
    items = "".join(
        f'<li><span class="{_class(kind)}">{escape(kind.value)}</span>: {escape(text)}</li>'
        for kind, text in told
    )
    return ["<h2>What differs</h2>", f"<ul>{items}</ul>"] if told else []


def _rules(found: Comparison) -> list[str]:
    """Return a table of how each rule of the game was tested; nothing where none was."""
    rows = [
        (fit.source, test.rule, test.shown.value, "used" if test.rule in fit.rules.rules else "", test.text)
        for fit in found.fits
        for test in fit.rules.tests
    ]
    if not rows:
        return []
    heads = ("recording", "rule", "is", "", "test")
    return [
        "<h2>Which rules of the game the recordings show</h2>",
        f'<div class="words">{_table(heads, rows)}</div>',
    ]


def _lags(found: Comparison) -> list[str]:
    """Return the plots of how well each input latency fits; nothing where none was fitted."""
    plots = [lag_plot(fit.source, fit.lag) for fit in found.fits if fit.lag.curve]
    return ["<h2>Which input latency fits</h2>", *plots] if plots else []


def _situations(rows: Sequence[Situation]) -> str:
    heads = ("situation", "ticks", "verdict", "windows", "p50", "from", "to", "p90", "p99", "floor",
             "tolerance", "uu/s", "rad", "rad/s")  # fmt: skip
    lines = []
    for row in rows:
        interval = (row.low, row.high) if row.blocks >= LEAST_BLOCKS else (None, None)
        numbers = (
            row.p50, *interval, row.p90, row.p99, row.floor, row.tolerance, row.velocity, row.angle, row.spin
        )  # fmt: skip
        cells = (f"{row.windows:,}", *map(_three_digits, numbers))
        lines.append(
            f"<tr><td>{escape(row.name)}</td><td>{row.horizon_ticks}</td>"
            f'<td class="{_class(row.verdict)}">{escape(row.verdict.value)}</td>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        )  # fmt: skip
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


def _three_digits(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if value >= 0.001 else "<0.001"


def _class(verdict: GapVerdict) -> str:
    return verdict.value.split()[0]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(one)}</td>" for one in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(one)}</li>" for one in lines) + "</ul>"


def _json(values: Any) -> str:
    return json.dumps(values).replace("<", "\\u003c")  # it stands in a page
