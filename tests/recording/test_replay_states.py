"""Beginnings in states of replays: which moments are taken, how bodies are completed, what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.engines.sim import SimEngine
from rlgym_bridge.game import Phase
from rlgym_bridge.recording import mutator as module
from rlgym_bridge.recording.mutator import RecordedStateMutator
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Recording, TimeBase
from rlgym_bridge.recording.replays.replay_states import states_of_replay
from rlgym_bridge.sim.rocketsim2 import RocketSim2
from rlgym_bridge.state import MatchState, derive
from tests.support.real_data import real
from tests.support.recorded_matches import chaser_and_policy

SPEED = 1200.0  # uu/s, 40 uu a frame of 4 ticks


def replay(rows: int = 30, way: float = 40.0, **changes: Any) -> Recording:
    """Return a replay of two blue players and an orange one, of whom the second blue leaves halfway.

    Blue drives along x from -2000; the ball is shown in every second frame and flies along y.
    """
    state, at = MatchState(2, 1, rows, most=64), np.arange(rows)
    state.phase[:] = Phase.ACTIVE
    state.ball_known[:] = 1
    state.ball_rotation[:] = np.eye(3)
    state.ball_position[:], state.ball_linear_velocity[:] = (0, 0, 500), (0, SPEED, 0)
    shown = at % 2 == 0
    state.ball_position[:, 1] = SPEED / 30 * (at - ~shown)
    state.car_team[:, 2] = 1
    state.car_rotation[:] = np.eye(3)
    state.car_position[:, :, 2] = 17.0
    state.car_position[:, 0, 0], state.car_position[:, 1, 1] = -2000 + way * at, 1000
    state.car_position[:, 2] = (2000, 0, 700)
    state.car_linear_velocity[:, 0, 0] = SPEED
    state.car_boost_amount[:] = 33
    present = np.ones((rows, 3), bool)
    present[rows // 3 :, 1] = False
    values: dict[str, Any] = {
        "source": "made.replay", "state": state, "tick": 4 * at, "seconds": at / 30,
        "segment": np.zeros(rows, np.int32), "ball_shown": shown, "car_shown": present.copy(),
        "car_present": present, "clock": TimeBase.FRAMES,
    }  # fmt: skip
    return Recording(**(values | changes))


def test_bodies_that_a_frame_leaves_out_are_moved_on() -> None:
    found = states_of_replay(replay(), 1)
    assert (found.layout.blue, found.layout.orange, found.matches) == (1, 1, 20)
    np.testing.assert_allclose(found.ball_position[:, 1], 40.0 * np.arange(10, 30), atol=1e-3)
    np.testing.assert_allclose(found.car_position[:, 0, 0], -2000 + 40.0 * np.arange(10, 30), atol=1e-3)
    assert found.car_position[:, 1].tolist() == [[2000, 0, 700]] * 20
    assert (found.car_boost_amount == 33).all() and (found.car_team == [0, 1]).all()
    assert found.car_on_ground[:, 0].all() and not found.car_on_ground[:, 1].any()
    assert found.car_can_flip[:, 1].all()


def test_states_are_as_far_apart_as_asked() -> None:
    assert states_of_replay(replay(), 12).matches == 7
    assert states_of_replay(replay(), 1000).matches == 1


@pytest.mark.parametrize("wrong", ["unshown", "beyond", "paused", "nan"])
def test_moments_that_are_no_beginning_are_left_out(wrong: str) -> None:
    one = replay()
    if wrong == "unshown":  # orange was shown last more than 8 ticks ago
        one.car_shown[15:20, 2] = False
        one.state.car_linear_velocity[:, 2] = (1, 0, 0)
    elif wrong == "beyond":
        one.state.ball_position[18:20, 0] = 4050
    elif wrong == "paused":
        one.state.phase[18:20] = Phase.PAUSED
    else:
        one.state.car_angular_velocity[18:20, 0] = np.nan
    left = 3 if wrong == "unshown" else 2
    assert states_of_replay(one, 1).matches == 20 - left


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"way": 300.0}, r"in 9\d% of its frames blue-0 is where its velocity cannot have brought it"),
        ({"mode": "Hoops"}, r"made.replay is a match of Hoops, expected Soccar"),
        ({"mutators": ["size of cars 2"]}, r"a match of Soccar with size of cars 2, expected Soccar without"),
        ({"car_present": np.zeros((30, 3), bool)}, r"no state of play to begin in"),
    ],
)
def test_replays_that_cannot_begin_anything_are_named(
    changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "open_recording", lambda path: replay(**changes))
    with pytest.raises(ValueError, match=message):
        RecordedStateMutator([Path("made.replay")])


def test_states_of_a_real_replay_stand_in_rocketsim() -> None:
    mutator = RecordedStateMutator([real("replays/1_AERIAL.replay")])
    assert mutator.states.matches > 100
    state = blank_state(1, 1, 30)
    mutator.apply_batch(state, np.random.default_rng(0))
    derive(state)
    arenas = RocketSim2(30, 1, 1)
    arenas.put(range(30), state)
    arenas.step(np.zeros((30, 2, 1, 8), np.float32))
    way = arenas.state.car_position - state.car_position - state.car_linear_velocity / 120
    assert np.abs(way).max() < 1  # nothing pushes a car out of floor, wall or ball


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chaser_and_policy(tmp_path_factory)


def test_episodes_begin_where_cars_and_ball_were(file: Path) -> None:
    mutator = RecordedStateMutator([file], every=5)
    assert mutator.states.matches > 50
    state = blank_state(1, 1, 200)
    mutator.apply_batch(state, np.random.default_rng(0))
    derive(state)
    known = {row.tobytes() for row in mutator.states.car_position}
    assert all(row.tobytes() in known for row in state.car_position)
    assert len({row.tobytes() for row in state.car_position}) > 30
    assert (state.car_controls == 0).all() and (state.phase == state.phase[0]).all()


def test_no_episode_begins_with_a_demolished_car(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, recording = RecordedStateMutator([file], every=1).states, open_recording(file)
    recording.state.car_is_demoed[::2, 1] = 1
    monkeypatch.setattr(module, "open_recording", lambda path: recording)
    found = RecordedStateMutator([file], every=1).states
    assert 0.4 < found.matches / whole.matches < 0.6
    assert not found.car_is_demoed.any() and np.isin(found.frame, recording.state.frame[1::2]).all()


def test_rlgyms_engine_begins_there_too(file: Path) -> None:
    from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator

    mutator, engine = RecordedStateMutator([file], seed=3), SimEngine()
    game = engine.create_base_state()
    FixedTeamSizeMutator(1, 1).apply(game, {})
    mutator.apply(game, {})
    shown = engine.set_state(game, {})
    places = np.stack([car.physics.position for car in shown.cars.values()])
    apart = np.abs(mutator.states.car_position - places).max((1, 2))
    assert apart.min() < 1e-3


def test_other_team_sizes_are_refused(file: Path) -> None:
    with pytest.raises(ValueError, match="have 1 blue and 1 orange cars, and the match 2 and 2"):
        RecordedStateMutator([file]).apply_batch(blank_state(2, 2, 1), np.random.default_rng(0))
    with pytest.raises(ValueError, match="got 0 files"):
        RecordedStateMutator([])


def test_arguments_of_another_kind_are_named(file: Path) -> None:
    with pytest.raises(ValueError, match=r"files is 'a.mcap', expected a list of recordings, such as "):
        RecordedStateMutator("a.mcap")
    for every in (0, -1, 2.5, "2"):
        with pytest.raises(ValueError, match=f"every is {every!r}, expected a whole number of ticks, 1 or"):
            RecordedStateMutator([file], every=every)  # type: ignore[arg-type]
