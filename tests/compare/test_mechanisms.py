"""The explanation of a difference is chosen on one half of the time and judged on the other."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rlgym_bridge.compare.findings.boost_use import find_boost_use
from rlgym_bridge.compare.findings.claims import explain
from rlgym_bridge.compare.findings.explained_windows import Applied
from rlgym_bridge.compare.findings.explanations import Explanation
from rlgym_bridge.compare.findings.mechanisms import Mechanism, find_mechanisms
from rlgym_bridge.compare.fit.clock_fit import fit_timeline, raw_timeline
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.game import CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.state import MatchState
from tests.support.fault_matches import plant
from tests.support.planted_gaps import as_replay, as_table, play

GAIN = Explanation("gain", 0, "controls", (0.2, 2.0), "times", 1.0, 0.1, 0.03)
SWAP = Explanation("swap", 0, "controls")
TWIN = Explanation("twin of the swap", 0, "controls")


class MadeWindows:
    """Windows whose errors are the sum of planted effects and noise; nothing is simulated."""

    def __init__(self, blocks: int, planted: dict[str, float], noise: float = 0.1) -> None:
        random = np.random.default_rng(1)
        self.blocks = np.repeat(np.arange(blocks), 2)
        self._effects = {name: random.normal(0, 20, (2 * blocks, 6)) for name in ("gain", "swap")}
        self._effects["twin of the swap"] = self._effects["swap"]
        self._base = random.normal(0, noise, (2 * blocks, 6))
        for name, size in planted.items():
            self._base = self._base + size * self._effects[name]

    def __len__(self) -> int:
        return len(self.blocks)

    def leave(self, blocks: np.ndarray) -> None:
        """Let nothing happen in windows of other blocks."""
        there = np.isin(self.blocks, blocks)[:, None]
        self._base = self._base * there
        self._effects = {name: effect * there for name, effect in self._effects.items()}

    def errors(self, applied: Applied, which: Sequence[int]) -> np.ndarray:
        left = self._base.copy()
        for each, value in applied:
            left -= (value - each.neutral if each.unit else 1.0) * self._effects[each.name]
        return left[list(which)]


def search(windows: MadeWindows, *explanations: Explanation) -> list[Mechanism]:
    return find_mechanisms(windows, explanations or (GAIN, SWAP), 0.003, "made", 0)


def test_a_planted_gain_is_named_with_its_interval():
    (claim,) = search(MadeWindows(40, {"gain": -0.1}))
    assert (claim.name, claim.alike) == ("gain", [])
    assert claim.low <= claim.value <= claim.high
    assert claim.value == pytest.approx(0.9, abs=0.01)
    assert claim.share > 0.9 and claim.chance < 0.003


def test_two_mechanisms_are_found_one_after_the_other():
    assert {claim.name for claim in search(MadeWindows(40, {"gain": 0.4, "swap": 1.0}))} == {"gain", "swap"}


def test_events_of_even_blocks_alone_are_explained():
    windows = MadeWindows(40, {"swap": 1.0})
    windows.leave(np.arange(0, 40, 2))
    assert [claim.name for claim in search(windows)] == ["swap"]


def test_noise_has_no_explanation():
    assert search(MadeWindows(40, {}, noise=5.0)) == []


def test_few_blocks_prove_nothing():
    assert search(MadeWindows(8, {"swap": 1.0})) == []


def test_equal_explanations_are_not_told_apart():
    (claim,) = search(MadeWindows(40, {"swap": 1.0}), SWAP, TWIN)
    assert claim.alike == ["twin of the swap"] and not claim.certain


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"steer": -1.0}, "steer inverted"),
        ({"steer": -1.0, "yaw": -1.0, "roll": -1.0}, "mirrored axis"),
        ({"yaw": -1.0}, "yaw inverted"),
    ],
)
def test_turned_controls_of_a_match_are_named(change: dict[str, float], name: str) -> None:
    recording = as_table(play(seconds=48.0))
    state = recording.state.copy()
    for control, factor in change.items():
        state.car_controls[:, 0, CONTROL_NAMES.index(control)] *= factor
    turned = replace(recording, state=state)
    claims = explain([TimedRecording(turned, fit_timeline(turned))], 240)
    assert [(claim.name, claim.cars, claim.alike) for claim in claims] == [(name, [0], [])]


def drained(rate: float) -> TimedRecording:
    """Return a recording of 40 s whose car burns boost in every other second, from a full tank."""
    rows = 40 * TICKS_PER_SECOND
    state = MatchState(1, 0, rows)
    tick = np.arange(rows, dtype=np.int64)
    within = tick % (2 * TICKS_PER_SECOND)
    state.car_controls[:, 0, CONTROL_NAMES.index("boost")] = within < TICKS_PER_SECOND
    state.car_boost_amount[:, 0] = 100 - rate * np.minimum(within + 1, TICKS_PER_SECOND) / TICKS_PER_SECOND
    there = np.ones(rows, bool)
    recording = Recording(
        "made", state, tick, tick / TICKS_PER_SECOND, np.zeros(rows, np.int32), there, there[:, None]
    )
    return TimedRecording(recording, raw_timeline(recording))


def test_a_tank_that_empties_slower_is_named_with_its_rate():
    claim = find_boost_use(drained(0.95 * 33.333), 0, 0.003)
    assert claim is not None and claim.value == pytest.approx(0.95, abs=0.002)
    assert claim.phrase == "boost use -5.0 %" and claim.chance < 0.003


def test_a_tank_that_empties_as_rocketsims_is_no_claim():
    assert find_boost_use(drained(33.333), 0, 0.003) is None


def test_an_explanation_of_next_to_nothing_is_not_claimed():
    assert not search(MadeWindows(300, {"gain": -0.2}, noise=25.0), GAIN)  # 1.5 %, with a chance of 0.0007


def test_replays_lack_inputs_for_mechanisms_of_cars():
    recording = as_replay(play(seconds=16))
    recording.state.car_controls *= 0.5
    assert explain([TimedRecording(recording, fit_timeline(recording))], 40) == []


@pytest.mark.slow
def test_a_boost_that_is_another_control_is_no_boost_use():
    recording = plant(2016).recording  # jump and boost swapped
    claims = explain([TimedRecording(recording, fit_timeline(recording))], 240)
    assert [claim.name for claim in claims] == ["jump and boost swapped"]
