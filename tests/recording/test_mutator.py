"""Episodes begin in states of recorded matches."""

from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.engines.sim import SimEngine
from rlgym_bridge.recording import mutator as module
from rlgym_bridge.recording.mutator import RecordedStateMutator
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.state import derive
from tests.support.recorded_matches import chaser_and_policy


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
