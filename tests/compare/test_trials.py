"""Tables of trials, which show a car at its start and its end alone, tell as much as tables of rows."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.comparison_result import Comparison
from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.simulator import ROCKETSIM3, make_simulator
from rlgym_bridge.state import derive
from tests.support.simulators import needs_native

pytestmark = needs_native

MAP = """
inputs = "applied"
[trial]
ticks = 0
held = 0
{inputs}
[trial.start]
position = [{{ value = 0 }}, {{ value = -3000 }}, {{ value = 17.01 }}]
velocity = [{{ value = 0 }}, 1, {{ value = 0 }}]
euler = [{{ value = -0.0096 }}, {{ value = 1.5707963 }}, {{ value = 0 }}]
state = {{ on_ground = {{ value = 1 }} }}
[trial.end]
position = [2, 3, 4]
euler = [{{ value = -0.0096 }}, 5, {{ value = 0 }}]
forward_speed = 6
state = {{ on_ground = {{ value = 1 }} }}
"""


@cache
def rows() -> np.ndarray:
    """Return trials that steer by 0.6: ticks, first speed, last place, yaw, and speed along the nose."""
    ticks, speeds = np.repeat(np.arange(8, 164, 16), 3), np.tile([0.0, 600.0, 1200.0], 10)
    start = blank_state(1, 0, len(ticks))
    start.car_position[:, 0], start.car_linear_velocity[:, 0, 1] = (0, -3000, 17.01), speeds
    cosine, sine = np.cos(-0.0096), np.sin(-0.0096)
    start.car_rotation[:, 0] = np.stack([(0, cosine, sine), (-1, 0, 0), (0, -sine, cosine)], -1)
    start.car_wheels_with_contact[:] = 1
    derive(start)
    simulator = make_simulator(ROCKETSIM3, len(ticks), 1, 0)
    simulator.put(range(len(ticks)), start)
    given = np.zeros((len(ticks), 1, 160, 8), np.float32)
    given[..., :2] = 1, 0.6
    simulator.play(given, ticks.tolist())
    nose, end = simulator.state.car_rotation[:, 0, :, 0], simulator.state.car_position[:, 0]
    along = (nose * simulator.state.car_linear_velocity[:, 0]).sum(1)
    return np.column_stack([ticks, speeds, end, np.arctan2(nose[:, 1], nose[:, 0]), along])


def trials(folder: Path, inputs: str) -> Recording:
    np.savetxt(folder / "turns.csv", rows(), delimiter=",")
    (folder / "turns.toml").write_text(MAP.format(inputs=inputs))
    return open_recording(folder / "turns.csv", folder / "turns.toml")


def compared(folder: Path, inputs: str) -> Comparison:
    return compare_recordings(trials(folder, inputs))


def test_trials_of_the_simulator_agree_with_it(tmp_path: Path) -> None:
    found = compared(tmp_path, "always = { throttle = 1, steer = 0.6 }")
    assert found.agrees and not found.gaps and found.fits[0].windows == 30
    assert max(row.p50 for row in found.situations) < 0.01
    assert any("how late inputs act" in one for one in found.unjudged)


@pytest.mark.parametrize(
    "inputs", ["{ throttle = 1 }", pytest.param("{ steer = 0.6 }", marks=pytest.mark.slow)]
)
def test_a_control_that_a_map_leaves_out_is_a_gap(inputs: str, tmp_path: Path) -> None:
    found = compared(tmp_path, f"always = {inputs}")
    assert not found.agrees and sum(row.beyond for row in found.situations) == 30


def test_a_control_that_a_map_says_too_small_has_a_gain(tmp_path: Path) -> None:
    (cause,) = compared(tmp_path, "always = { throttle = 1, steer = 0.5 }").causes
    assert cause.name == "gain of steer" and cause.certain
    assert cause.value == pytest.approx(1.2, abs=0.02)
