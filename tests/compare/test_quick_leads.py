"""A lead that RocketSim makes for the most part leaves what one by the game's rules leaves."""

import numpy as np
import pytest

import rlgym_bridge.compare.simulate.rollout as rollout
from rlgym_bridge.compare.findings.missing_inputs import choose_windows
from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.leads import needs_rules
from rlgym_bridge.compare.simulate.tracks import POSITION
from rlgym_bridge.compare.simulate.window_errors import simulate_end
from rlgym_bridge.sim.game_rules import GAME
from tests.support.fault_matches import plant

_LEAD = 180.0  # ticks, as before windows in the air


def ends_of(scene: TimedRecording) -> np.ndarray:
    """Return where the first car is at the ends of windows, `(windows, 3)` uu."""
    stage, drive = rollout.RolloutArena(scene.recording, (0,), rules=scene.rules), scene.drive(0)
    windows = choose_windows(scene, 0, 40)
    return np.stack([simulate_end(stage, *window, _LEAD, [drive])[0, POSITION] for window in windows])


def test_a_lead_needs_rules_at_presses_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = plant(3000, "nothing", seconds=8, rules="game").recording
    scene = TimedRecording(recording, fit_timeline(recording), rules=GAME)
    quick = ends_of(scene)
    monkeypatch.setattr(rollout, "needs_rules", lambda apart, presses: [True] * len(apart))
    off = np.linalg.norm(quick - ends_of(scene), axis=1)
    assert (off == 0).mean() > 0.9 and off.max() < 0.1


def test_presses_in_a_lead_are_made_by_rules() -> None:
    needed = needs_rules([4] * 6, [9])
    assert needed == [False, False, True, False, True, True]
