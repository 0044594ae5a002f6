"""The state's buffer, its views, and the way to RLGym's objects and back."""

import copy
import pickle
import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlgym.rocket_league.api import GameState

from rlgym_bridge.components.rlgym_state import from_rlgym, to_rlgym
from rlgym_bridge.state import CAR_FIELDS, MATCH_FIELDS, MatchState, derive, layout_of


def random_state(seed: int, blue: int, orange: int, matches: int = 1) -> MatchState:
    """A state with every number drawn at random, flags 0 or 1, rotations orthonormal."""
    rng = np.random.default_rng(seed)
    state = MatchState(blue, orange, matches)
    state.buffer[:] = rng.normal(0, 100, state.buffer.shape)
    state.frame[:] = rng.integers(0, 2**31 - 1, matches)
    state.gravity[:] = state.boost_consumption[:] = 1
    state.dodge_deadzone[:] = 0.5
    state.ball_known[:] = 1
    state.ball_position[:, 1] = rng.uniform(-5400, 5400, matches)
    cars = (matches, blue + orange)
    state.car_player_id[:] = np.arange(blue + orange)
    state.car_team[:] = [0] * blue + [1] * orange
    state.car_hitbox[:] = rng.integers(0, 6, cars)
    flags = "has_jumped is_holding_jump is_jumping has_flipped has_double_jumped is_autoflipping"
    for name in flags.split():
        getattr(state, "car_" + name)[:] = rng.integers(0, 2, cars)
    state.car_wheels_with_contact[:] = rng.integers(0, 2, (*cars, 4))
    state.car_flip_time[:] = rng.choice([0, 0.3, 0.64999, 0.65, 0.66, 2], cars)
    state.car_air_time_since_jump[:] = rng.choice([0, 1, 1.2499992, 1.25, 1.2501, 3], cars)
    state.car_demo_respawn_timer[:] = rng.choice([0, 0.5, 3], cars)
    state.car_bump_victim[:] = rng.integers(-1, blue + orange, cars)
    state.car_ball_touches[:] = rng.integers(0, 5, cars)
    state.car_controls[:] = 0
    state.car_controls[..., 5] = state.car_is_holding_jump
    state.car_known[:] = 1
    state.phase[:] = state.clock[:] = state.overtime[:] = 0
    state.score[:] = 0
    derive(state)
    return state


@pytest.mark.parametrize(
    "copied", [MatchState.copy, copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))]
)
def test_views_of_a_copy_show_the_copys_buffer(copied: Callable[[MatchState], MatchState]) -> None:
    state = random_state(0, 2, 1)
    before = state.buffer.tobytes()
    other = copied(state)
    assert other.buffer.tobytes() == before
    other.car_position[:], other.frame[:] = 5, 7
    column = other.layout.column("position", car=2)
    assert other.buffer[0, column] == 5 and other.buffer.view(np.int32)[0, other.layout.column("frame")] == 7
    assert state.buffer.tobytes() == before


def test_a_state_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match="'MatchState' object has no attribute 'car_speed'"):
        _ = MatchState(1, 1).car_speed  # type: ignore[attr-defined]


@given(st.integers(0, 10**6), st.integers(0, 4), st.integers(0, 4))
@settings(max_examples=40, deadline=None)
def test_a_state_survives_the_way_to_rlgym_and_back_to_the_bit(seed: int, blue: int, orange: int) -> None:
    state = random_state(seed, blue, orange)
    assert from_rlgym(to_rlgym(state)).buffer.tobytes() == state.buffer.tobytes()


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_derived_fields_equal_rlgyms_properties(seed: int) -> None:
    state = random_state(seed, 2, 2)
    game = to_rlgym(state)
    for row, car in enumerate(game.cars.values()):
        names = "on_ground is_demoed is_boosting is_supersonic is_flipping has_flip can_flip"
        for name in names.split():
            assert bool(getattr(state, "car_" + name)[0, row]) == bool(getattr(car, name)), name


def test_every_field_is_a_view_into_the_one_buffer() -> None:
    state = MatchState(2, 1, matches=3)
    for field in MATCH_FIELDS:
        view = getattr(state, field.name)
        assert view.shape == (3, *field.shape) and np.shares_memory(view, state.buffer)
    for field in CAR_FIELDS:
        view = getattr(state, "car_" + field.name)
        assert view.shape == (3, 3, *field.shape) and np.shares_memory(view, state.buffer)


def test_columns_and_struct_name_the_places_of_the_views() -> None:
    state = MatchState(1, 2)
    layout = state.layout
    values: list[float] = list(range(layout.size))
    struct.pack_into(layout.format, state.buffer, 0, *values)
    assert state.frame[0] == layout.column("frame")
    assert state.ball_rotation[0, 1, 2] == layout.column("ball_rotation", element=5)
    assert state.car_player_id[0, 2] == layout.column("player_id", car=2)
    assert state.car_controls[0, 1, 7] == layout.column("controls", element=7, car=1)
    with pytest.raises(KeyError, match="nonsense"):
        layout.column("nonsense")


def test_large_frame_numbers_and_identifiers_are_exact() -> None:
    state = MatchState(1, 1)
    state.frame[0], state.car_player_id[0] = 2**31 - 1, (-(2**31), 123456789)
    assert state.copy().frame[0] == 2**31 - 1
    assert state.copy().car_player_id[0].tolist() == [-(2**31), 123456789]


def test_agents_are_named_as_rlgym_names_them() -> None:
    assert MatchState(2, 1).agents == ("blue-0", "blue-1", "orange-0")
    assert list(to_rlgym(random_state(0, 2, 1)).cars) == ["blue-0", "blue-1", "orange-0"]


def test_cars_of_an_rlgym_state_are_put_blue_first() -> None:
    game = to_rlgym(random_state(1, 2, 2))
    game.cars = {name: game.cars[name] for name in ("orange-1", "blue-1", "orange-0", "blue-0")}
    state = from_rlgym(game)
    assert state.car_team[0].tolist() == [0, 0, 1, 1]
    np.testing.assert_array_equal(state.car_position[0, 0], game.cars["blue-1"].physics.position)


def test_several_game_states_become_one_batch() -> None:
    games = [to_rlgym(random_state(seed, 1, 1)) for seed in range(3)]
    batch = from_rlgym(games)
    assert batch.matches == 3
    for match, game in enumerate(games):
        assert batch.buffer[match].tobytes() == from_rlgym(game).buffer.tobytes()


def test_game_states_of_different_team_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"team sizes \[\(1, 1\), \(2, 1\)\], expected one pair"):
        from_rlgym([to_rlgym(random_state(0, 1, 1)), to_rlgym(random_state(0, 2, 1))])


def test_impossible_team_sizes_and_buffers_are_refused() -> None:
    with pytest.raises(ValueError, match="team sizes are 5 and 1, expected 0 to 4"):
        layout_of(5, 1)
    with pytest.raises(ValueError, match=r"buffer is float64.*expected contiguous float32\(2, "):
        MatchState(1, 1, 2, np.zeros((2, layout_of(1, 1).size)))
    with pytest.raises(ValueError, match="1 agent ids for 2 cars"):
        to_rlgym(MatchState(1, 1), agents=["a"])


def test_what_comes_out_is_rlgyms_own_class() -> None:
    assert isinstance(to_rlgym(random_state(3, 1, 1)), GameState)
