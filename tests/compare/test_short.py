"""Captures of two seconds are judged, by windows that overlap and intervals that know it."""

from functools import cache

import numpy as np
import pytest
import RocketSim as rsim

from rlgym_bridge.compare.comparison import Comparison, compare_recordings
from rlgym_bridge.compare.findings.block_bootstrap import LEAST_BLOCKS, blocks_of, median_interval
from rlgym_bridge.compare.findings.tolerances import TOLERANCES
from rlgym_bridge.compare.findings.verdict import Doubts, GapVerdict, judge
from rlgym_bridge.compare.simulate.window_errors import Errors
from rlgym_bridge.compare.simulate.windows import BALL_AIR, HORIZONS
from tests.support.short_captures import capture, errors


@cache
def clean() -> Comparison:
    return compare_recordings(capture(), windows=60)


@pytest.mark.parametrize("body", ["ball", "car"])
def test_two_seconds_give_verdicts(body: str) -> None:
    rows = {row.horizon_ticks: row for row in clean().situations if row.name == body}
    assert [rows[ticks].verdict for ticks in (1, 12, 30, 60)] == [GapVerdict.AGREES] * 4
    assert rows[30].windows > 30 and rows[30].apart < 8 and rows[30].blocks == LEAST_BLOCKS
    assert clean().agrees and not clean().tells_nothing


def test_two_seconds_show_a_gap_after_a_quarter_of_one() -> None:
    def lighter(config: rsim.MutatorConfig) -> None:
        config.gravity = rsim.Vec(0, 0, -600)

    found = compare_recordings(capture(lighter, driven=False), windows=60)
    rows = {row.horizon_ticks: row for row in found.situations if row.name == BALL_AIR}
    assert rows[30].verdict is GapVerdict.PHYSICS and rows[30].low > rows[30].tolerance
    assert not found.agrees


@pytest.mark.parametrize(
    ("windows", "bad", "verdict"),
    [
        (7 * 6, 7 * 6, GapVerdict.PHYSICS),  # all of seven blocks
        (5 * 6, 5 * 6, GapVerdict.FEW),  # five blocks may be so by chance
        (7 * 6, 4 * 6, GapVerdict.FEW),  # four blocks of seven: the interval holds the tolerance
        (7 * 6, 2 * 6, GapVerdict.AGREES),
    ],
)
def test_few_blocks_prove_no_gap(windows: int, bad: int, verdict: GapVerdict) -> None:
    values = np.where(np.arange(windows) < bad, 5.0, 0.01)
    row = next(
        row for row in judge(errors(values, 5), Errors.empty(0), [], [], [], Doubts()) if row.name == BALL_AIR
    )
    assert row.verdict is verdict and row.apart < 8


def test_an_interval_counts_blocks_and_not_windows() -> None:
    random = np.random.default_rng(0)
    levels = random.uniform(0, 1, 8)
    values = np.repeat(levels, 50) + random.normal(0, 0.01, 400)
    blocks = np.repeat(np.arange(8), 50)
    low, high = median_interval(values, blocks)
    alone = median_interval(random.permutation(values), np.arange(400))
    assert high - low > 2 * (alone[1] - alone[0])
    assert low <= np.median(values) <= high


def test_windows_that_begin_within_a_horizon_are_one_block() -> None:
    found = errors(np.zeros(24), 5)
    assert blocks_of(found, HORIZONS.index(30), np.ones(24, bool)).tolist() == sorted([*range(4)] * 6)


def test_tolerances_grow_with_each_horizon() -> None:
    assert 30 in HORIZONS
    for allowed in TOLERANCES.values():
        assert len(allowed) == len(HORIZONS) and (np.diff(allowed) > 0).all()
