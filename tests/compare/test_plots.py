"""A plot's labels stand where its curves have these values."""

import re

import pytest

from rlgym_bridge.compare.findings.verdict import GapVerdict, Situation
from rlgym_bridge.compare.fit.input_lag import LagFit
from rlgym_bridge.compare.output.plots import drift_plot, lag_plot


def row(horizon: int, p50: float) -> Situation:
    return Situation("x", horizon, 9, 9, 9, *[p50] * 8, 0.0, 0.0, 0.0, GapVerdict.AGREES)


def labels(svg: str) -> dict[float, float]:
    """Height of each label of the upright axis, by its value."""
    found = re.findall(r'y="([\d.]+)" text-anchor="end">([\d.e-]+)<', svg)
    return {float(value): float(height) - 4 for height, value in found}


@pytest.mark.parametrize("values", [(0.05, 0.1, 0.2), (0.01, 0.1, 10.0), (0.1, 0.1, 0.1)])
def test_a_point_stands_at_the_label_of_its_value(values: tuple[float, ...]) -> None:
    svg = drift_plot("x", [row(ticks, one) for ticks, one in zip((12, 60, 120), values, strict=True)])
    circles = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', svg)
    points = [float(height) for _, height in sorted(circles, key=lambda one: float(one[0]))]
    assert points[1] == pytest.approx(labels(svg)[0.1], abs=0.2)


def test_the_lag_that_was_taken_is_marked_at_its_error() -> None:
    svg = lag_plot("x", LagFit(1, 1.0, 9, {0: 20.0, 1: 10.0, 2: 30.0}))
    (marked,) = re.findall(r'cy="([\d.]+)" r="5"', svg)
    assert float(marked) == pytest.approx(labels(svg)[10.0], abs=0.2)
