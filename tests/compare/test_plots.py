"""Plots stand where their labels say, and the page links each claim to one."""

import json
import re
from dataclasses import replace

import pytest

from rlgym_bridge.compare.clock_fit import OffsetFit
from rlgym_bridge.compare.comparison_result import GapVerdict, WorstWindow
from rlgym_bridge.compare.input_lag import LagFit
from rlgym_bridge.compare.report import BOUND, MEDIAN, bars, curves, report
from tests.support.made_comparisons import NAN, comparison, fit, gap, row, untried


def labels(svg: str) -> dict[float, float]:
    """Return the height of each label of the upright axis, by its value."""
    found = re.findall(r'y="([\d.]+)" text-anchor="end">([\d.e-]+)<', svg)
    return {float(value): float(height) - 4 for height, value in found}


def points(svg: str) -> list[float]:
    """Return the heights of the points, from left to right."""
    found = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="2.2"', svg)
    return [float(height) for _, height in sorted(found, key=lambda one: float(one[0]))]


@pytest.mark.parametrize("values", [(0.05, 0.1, 0.2), (0.01, 0.1, 10.0), (0.1, 0.1, 0.1)])
def test_a_point_stands_at_the_label_of_its_value(values: tuple[float, ...]) -> None:
    svg = curves("x", (12, 60, 120), {MEDIAN: values, BOUND: (NAN, 0.1, 0.1)})
    assert points(svg)[1] == pytest.approx(labels(svg)[0.1], abs=0.2)
    assert "nan" not in svg


def test_the_lag_that_was_taken_is_marked_at_its_error() -> None:
    svg = curves("x", (0, 1, 2), {MEDIAN: (20.0, 10.0, 30.0)}, 1)
    (marked,) = re.findall(r'cy="([\d.]+)" r="5"', svg)
    assert float(marked) == pytest.approx(labels(svg)[10.0], abs=0.2)


def test_bars_beyond_the_bound_stand_out_and_pass_its_line() -> None:
    svg = bars("x", {"near": 0.5, "far": 300.0}, 1.0)
    widths = [float(one) for one in re.findall(r'<rect [^>]*width="([\d.]+)"', svg)]
    starts = [float(one) for one in re.findall(r'<rect x="([\d.]+)"', svg)]
    (line,) = (float(one) for one in re.findall(r'<line x1="([\d.]+)"', svg))
    assert starts[0] + widths[0] < line < starts[1] + widths[1]
    assert svg.count('fill="var(--bad)"') == 1


def test_each_claim_of_the_page_links_to_a_plot_that_is_there() -> None:
    ages = OffsetFit(1, 0.9, (3, 4, 2))
    found = comparison(
        row("car on a wall", 60, 3.5, GapVerdict.UNTRIED, rocketsim2=3.6), row("ball in the air", 1, 0.0)
    )
    found.fits = [fit(lag=LagFit(2, 1.0, 44, {0: 5.0, 2: 1.0}), offset=ages)]
    found.gaps = [gap(name, GapVerdict.TIMING) for name in ("input latency", "tick offset", "clock")]
    found.untried = [untried("car on a wall")]
    found.worst = [WorstWindow("a.csv", "blue-0", 7, 7, 0.1, "car on a wall", 60, 3.5, 70.0)]
    page = report(found)
    links, anchors = re.findall(r'href="#([^"]+)"', page), re.findall(r'id="(r[^"]+)"', page)
    assert len(links) >= 4 and set(links) <= set(anchors)
    assert {"r0-lag", "r0-ages", "r0-growth", "r0-worst"} <= set(links)
    assert "blue-0, car on a wall, row 7" in page and "http" not in page


def test_the_page_has_the_sentences_and_all_as_json() -> None:
    found = comparison(row("car on a wall", 120, 0.012))
    found.unjudged = ["cars of <b>: no inputs"]
    page = report(found)
    assert "<h1>No gap was found.</h1>" in page and "<td>0.012</td>" in page
    inside = page.partition('id="comparison">')[2].partition("</script>")[0]
    assert json.loads(inside) == json.loads(json.dumps(found.as_json()))
    places = [
        page.index(title) for title in ("Measured:", "What could not be judged", "Errors after", "How it was")
    ]
    assert places == sorted(places) and "cars of &lt;b&gt;: no inputs" in page


def test_of_many_recordings_those_that_agree_are_not_drawn() -> None:
    rows = [row("car on a wall", 60, 0.01, source=f"{name}.csv") for name in "abcdef"]
    rows[1] = replace(rows[1], beyond=4, verdict=GapVerdict.UNTRIED)
    found = comparison(*rows)
    found.fits = [fit(source=f"{name}.csv") for name in "abcdef"]
    found.untried = [untried("car on a wall", source="b.csv")]
    page = report(found)
    assert "nothing differs: a.csv, c.csv, d.csv, e.csv and f.csv" in page
    assert page.count("<svg") == 1 and 'href="#r1-growth"' in page
