"""Write a comparison as one self-contained HTML page."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Any, Final

from rlgym_bridge.compare.findings.comparison_result import Comparison, RefusedFile
from rlgym_bridge.compare.findings.sentences import explain_difference, told_fit, told_unexplained
from rlgym_bridge.compare.findings.two_sets import LEVEL, Against
from rlgym_bridge.compare.findings.verdict import GapVerdict, Situation
from rlgym_bridge.compare.output.plots import COLOURS, drift_plot, lag_plot

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1130px; padding: 0 1em }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse }
th, td { padding: 2px 9px; text-align: right; border-bottom: 1px solid #eee }
th:first-child, td:first-child { text-align: left } td { white-space: nowrap }
th { font-weight: 600 }
svg { margin: 4px } svg text { font: 11px system-ui, sans-serif; fill: #444 }
svg .title { font-weight: 600; fill: #222 }
.physics, .missing, .wrong { color: #b71c1c; font-weight: 600 }
.timing { color: #a15c00 } .agrees { color: #1b7a2f }
.hidden, .too { color: #777 }
.key span { display: inline-block; width: 22px; height: 3px; margin: 0 5px 3px 14px }
"""


_MEANINGS: Final = {"p50": "median", "band": "up to p90", "tolerance": "tolerance", "floor": "noise floor"}
_KEY: Final = "".join(
    f'<span style="background:{colour}"></span>{_MEANINGS[part]}' for part, colour in COLOURS.items()
)


def report(found: Comparison) -> str:
    """Return the page: what was fitted and found, tables, plots, worst windows, and all of it as JSON."""
    verdict = "Physics and inputs agree" if found.agrees else "Physics or inputs differ"
    if found.tells_nothing:
        verdict = "Too little was recorded"
    situations = [row for row in found.situations if row.name not in ("ball", "car")]
    overall = [row for row in found.situations if row.name in ("ball", "car")]
    sections = [
        f"<h1>{verdict}</h1>",
        f"<p><strong>{escape(explain_difference(found))}</strong></p>",
        _list(f"{fit.source}: {told_fit(fit)}; {fit.rules.told()}" for fit in found.fits),
        *_refused(found.refused),
        "<h2>What was found</h2>",
        _gaps(found),
        "<h2>Errors after 1 to 240 ticks</h2>",
        "<p>RocketSim is put in the recorded state, over and over, and let go with the recorded inputs. "
        "Position errors in uu; from, to: the interval that holds the median with 99 %; floor: RocketSim "
        "against itself on the same way.</p>",
        _situations([*overall, *situations]),
        "<h2>How errors grow</h2>",
        f'<p class="key">{_KEY}</p>',
        "".join(drift_plot(name, list(rows)) for name, rows in groupby(situations, lambda row: row.name)),
        "<h2>Which input lag fits</h2>",
        "".join(lag_plot(fit.source, fit.lag) for fit in found.fits if fit.lag.curve)
        or "<p>No input tells.</p>",
        "<h2>Worst windows</h2>",
        "<p>The windows of a second that are most tolerances off.</p>",
        _table(
            ("recording", "body", "row", "tick", "s", "situation", "uu off", "tolerances"),
            [
                (one.source, one.body, str(one.row), f"{one.tick:,}", f"{one.seconds:.2f}", one.situation,
                 f"{one.error:.3g}", f"{one.tolerances:.3g}")
                for one in found.worst
            ],
        ),
        *(("<h2>Notes</h2>", _list(found.notes)) if found.notes else ()),
        f'<script type="application/json" id="comparison">{_json(found.as_json())}</script>',
    ]  # fmt: skip
    return _page("Simulator against recording", sections)


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
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(sections)}</body></html>\n"
    )


def _refused(refused: Sequence[RefusedFile]) -> list[str]:
    """Return a section that names what could not be compared; none where everything could."""
    if not refused:
        return []
    return ["<h2>Not compared</h2>", _list(f"{one.source}: {one.reason}" for one in refused)]


def _gaps(found: Comparison) -> str:
    told = [(gap.kind, gap.text) for gap in found.gaps]
    told += [(row.verdict, told_unexplained(row)) for row in found.unexplained]
    if not told:
        return f"<p>{'Too little to tell anything.' if found.tells_nothing else 'No gap.'}</p>"
    items = "".join(
        f'<li><span class="{_class(kind)}">{escape(kind.value)}</span>: {escape(text)}</li>'
        for kind, text in told
    )
    return f"<ul>{items}</ul>"


def _situations(rows: Sequence[Situation]) -> str:
    heads = ("situation", "ticks", "verdict", "windows", "p50", "from", "to", "p90", "p99", "floor",
             "tolerance", "uu/s", "rad", "rad/s")  # fmt: skip
    lines = []
    for row in rows:
        numbers = (
            row.p50,
            row.low,
            row.high,
            row.p90,
            row.p99,
            row.floor,
            row.tolerance,
            row.velocity,
            row.angle,
            row.spin,
        )
        cells = (f"{row.windows:,}", *(f"{one:.3g}" if one >= 0.001 else "<0.001" for one in numbers))
        lines.append(
            f"<tr><td>{escape(row.name)}</td><td>{row.horizon_ticks}</td>"
            f'<td class="{_class(row.verdict)}">{escape(row.verdict.value)}</td>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        )  # fmt: skip
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def _class(verdict: GapVerdict) -> str:
    return verdict.value.split()[0]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(one)}</td>" for one in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(one)}</li>" for one in lines) + "</ul>"


def _json(values: Any) -> str:
    return json.dumps(values).replace("<", "\\u003c")  # it stands in a page
