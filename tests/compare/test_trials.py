"""Tables of trials, which show a car at its start and its end alone, tell as much as tables of rows."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import RocketSim as rsim

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.findings.comparison_result import Comparison
from rlgym_bridge.compare.findings.missing_inputs import explain_one_by_one
from rlgym_bridge.compare.findings.verdict import GapVerdict
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.arena import make_arena
from rlgym_bridge.sim.arena_reader import control_of

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
def _rows() -> np.ndarray:
    """Return trials of RocketSim: ticks, first speed, last place, yaw, and speed along the nose."""
    arena, (car,) = make_arena([0])
    rows = []
    for ticks in range(4, 164, 4):
        for speed in (0.0, 600.0, 1200.0):
            start = rsim.CarState()
            start.pos, start.vel = rsim.Vec(0, -3000, 17.01), rsim.Vec(0, speed, 0)
            start.rot_mat = rsim.Angle(np.pi / 2, -0.0096, 0).as_rot_mat()
            car.set_state(start)
            car.set_controls(control_of([1, 0.6, 0, 0, 0, 0, 0, 0]))
            arena.step(ticks)
            end = car.get_state()
            nose, speeds = ((one.x, one.y, one.z) for one in (end.rot_mat.forward, end.vel))
            place = (end.pos.x, end.pos.y, end.pos.z)
            rows.append([ticks, speed, *place, np.arctan2(nose[1], nose[0]), np.dot(nose, speeds)])
    return np.array(rows)


def _trials(folder: Path, inputs: str) -> Recording:
    table, columns = folder / "turns.csv", folder / "turns.toml"
    np.savetxt(table, _rows(), delimiter=",")
    columns.write_text(MAP.format(inputs=inputs))
    return open_recording(table, columns)


@cache
def _boosted() -> np.ndarray:
    """Return trials of RocketSim that boost from a full tank, without steering; columns as of `_rows`."""
    arena, (car,) = make_arena([0])
    rows = []
    for ticks in range(20, 68, 4):
        for speed in (0.0, 500.0):
            start = rsim.CarState()
            start.pos, start.vel, start.boost = rsim.Vec(0, -3000, 17.01), rsim.Vec(0, speed, 0), 100.0
            start.rot_mat = rsim.Angle(np.pi / 2, -0.0096, 0).as_rot_mat()
            car.set_state(start)
            car.set_controls(control_of([1, 0, 0, 0, 0, 0, 1, 0]))
            arena.step(ticks)
            end = car.get_state()
            rows.append([ticks, speed, *end.pos.as_tuple(), np.pi / 2, end.vel.y])
    return np.array(rows)


@pytest.mark.parametrize(
    "ends", [*(pytest.param(one, marks=pytest.mark.slow) for one in ("start", "end")), "both"]
)
def test_a_tank_that_a_trial_map_names_lasts_through_it(ends: str, tmp_path: Path) -> None:
    columns = MAP.format(inputs="always = { throttle = 1, boost = 1 }")
    first, last = columns.split("[trial.end]")
    tank = "state = { on_ground = { value = 1 }, boost_amount = { value = 100 } }"
    plain = "state = { on_ground = { value = 1 } }"
    first = first.replace(plain, tank) if ends != "end" else first
    last = last.replace(plain, tank) if ends != "start" else last
    np.savetxt(tmp_path / "boosts.csv", _boosted(), delimiter=",")
    (tmp_path / "boosts.toml").write_text(first + "[trial.end]" + last)
    recording = open_recording(tmp_path / "boosts.csv", tmp_path / "boosts.toml")
    assert (recording.state.car_boost_amount > 0).all()
    found = compare_recordings(recording, windows=24)
    assert max(row.p90 for row in found.situations if row.name == "car") < 15  # 150 with an empty tank


def test_a_tank_is_burnt_as_far_as_a_trial_boosts(tmp_path: Path) -> None:
    columns = MAP.format(inputs="while_held = { boost = 1 }").replace("held = 0", "held = 1", 1)
    state = "state = { on_ground = { value = 1 } }"
    columns = columns.replace(state, "state = { boost_amount = { value = 50 } }", 1).replace("1.5707963", "0")
    (tmp_path / "one.toml").write_text(columns.replace("velocity = [{ value = 0 }, 1,", "velocity = [1, 1,"))
    (tmp_path / "one.csv").write_text("240,240,0,0,17,0,100\n")
    tank = open_recording(tmp_path / "one.csv", tmp_path / "one.toml").state.car_boost_amount[:, 0]
    np.testing.assert_allclose(tank[[0, 60, 120, 180, 239]], [50, 33.33, 16.67, 0, 0], atol=0.01)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """The comparison of trials whose inputs are all there."""
    inputs = "always = { throttle = 1, steer = 0.6 }"
    return compare_recordings(_trials(tmp_path_factory.mktemp("trials"), inputs))


def test_trials_of_rocketsim_agree_with_it(found: Comparison) -> None:
    assert found.agrees and not found.gaps
    verdicts = {row.verdict for row in found.situations if row.name == "car" and row.horizon_ticks >= 60}
    assert verdicts == {GapVerdict.AGREES}


@pytest.mark.parametrize(
    ("inputs", "lacking"),
    [
        ("always = { throttle = 1 }", "steer"),
        pytest.param("always = { steer = 0.6 }", "throttle", marks=pytest.mark.slow),
    ],
)
def test_an_input_that_trials_do_not_name_is_missing(inputs: str, lacking: str, tmp_path: Path) -> None:
    found = compare_recordings(_trials(tmp_path, inputs))
    assert [gap.name for gap in found.gaps if gap.kind is GapVerdict.MISSING] == [lacking]
    assert not found.agrees and not found.tells_nothing


def test_where_one_input_is_missing_no_other_is_blamed() -> None:
    explains = np.array([[1, 1, 0]] * 9 + [[1, 0, 0]] * 2 + [[0, 0, 1]] * 5, bool)
    assert explain_one_by_one(explains) == [11, 0, 5]


def test_controls_that_trials_do_not_name_could_not_be_swapped(found: Comparison) -> None:
    assert not found.untold


def test_trials_do_not_overlap(found: Comparison) -> None:
    assert all(row.apart == row.windows for row in found.situations)
