"""Beginnings with a task: legal states, the same for both teams, drawn by shares."""

import math

import numpy as np
import pytest

from rlgym_bridge.components.beginnings import BEGINNINGS, mix_beginnings
from rlgym_bridge.components.mutators import BatchMutator, blank_state
from rlgym_bridge.components.skill_mutators import AerialMutator, SkillMutator
from rlgym_bridge.derived_fields import derive
from rlgym_bridge.game import Phase
from rlgym_bridge.sim.arena import make_arena
from rlgym_bridge.sim.arena_reader import ArenaReader, write_arena
from rlgym_bridge.state import MatchState
from tests.support.states import mirrored

TASKS = {name: one for name, one in BEGINNINGS.items() if isinstance(one, SkillMutator)}
every_beginning = pytest.mark.parametrize("name", BEGINNINGS)
every_task = pytest.mark.parametrize("name", TASKS)


def filled(mutator: BatchMutator, blue: int, orange: int, matches: int, seed: int = 0) -> MatchState:
    state, rng = blank_state(blue, orange, matches), np.random.default_rng(seed)
    state.car_hitbox[:] = rng.integers(0, 6, state.car_hitbox.shape)
    mutator.apply_batch(state, rng)
    derive(state)
    return state


@every_beginning
@pytest.mark.parametrize(("blue", "orange"), [(1, 1), (2, 2), (3, 3), (4, 4), (1, 3), (2, 0), (0, 1), (0, 0)])
def test_states_are_legal_in_all_team_sizes(name: str, blue: int, orange: int) -> None:
    state = filled(BEGINNINGS[name], blue, orange, 200)
    assert np.isfinite(state.buffer).all()
    axes = state.car_rotation
    np.testing.assert_allclose(
        axes.swapaxes(-1, -2) @ axes, np.broadcast_to(np.eye(3), axes.shape), atol=2e-6
    )
    np.testing.assert_allclose(np.linalg.det(axes), 1, atol=2e-6)
    for who, radius, speed, spin in (("ball", 91.2, 6000, 6), ("car", 12, 2300.01, 5.501)):
        x, y, z = np.moveaxis(np.abs(getattr(state, who + "_position")), -1, 0)
        assert (x <= 4096 - radius).all() and (y <= 5120 - radius).all() and (x + y <= 8064 - radius).all()
        assert (z >= radius).all() and (z <= 2044 - radius).all()
        assert (np.linalg.norm(getattr(state, who + "_linear_velocity"), axis=-1) <= speed).all()
        assert (np.linalg.norm(getattr(state, who + "_angular_velocity"), axis=-1) <= spin).all()
    assert ((state.car_boost_amount >= 0) & (state.car_boost_amount <= 100)).all()
    things = np.concatenate((state.ball_position[:, None], state.car_position), axis=1)
    gaps = np.linalg.norm(things[:, :, None] - things[:, None], axis=-1)
    gaps[:, np.arange(gaps.shape[1]), np.arange(gaps.shape[1])] = np.inf
    assert gaps.min() > 110  # a ball on a roof


@every_task
def test_states_with_a_task_hold_for_a_tick(name: str) -> None:
    arena, _ = make_arena([0, 0, 1, 1])
    state, matches = filled(TASKS[name], 2, 2, 40, seed=1), 40
    later = MatchState(2, 2, matches)
    for match in range(matches):
        reader = ArenaReader(arena, write_arena(arena, state, match))
        arena.step(1)
        reader.read_into(later, match)
    derive(later)
    np.testing.assert_array_equal(later.car_on_ground, state.car_on_ground)
    assert (later.car_bump_victim < 0).all()
    assert name == "dribble" or not later.car_ball_touches.any()
    for field, change in (("car_linear", 6), ("ball_linear", 7), ("car_angular", 0.3)):
        before, after = (getattr(one, field + "_velocity") for one in (state, later))
        assert np.linalg.norm(after - before, axis=-1).max() < change, "gravity, friction and damping"


@every_task
def test_orange_has_the_same_task_as_blue(name: str) -> None:
    states = []
    for acting in (0, 1):
        state = blank_state(1, 1, 100)
        TASKS[name].begin(state, np.full(100, acting), np.random.default_rng(3))
        states.append(state)
    blue, orange = states[0], mirrored(states[1])
    for field in ("ball_position", "ball_linear_velocity", "car_position", "car_rotation",
                  "car_linear_velocity", "car_angular_velocity", "car_boost_amount"):  # fmt: skip
        np.testing.assert_allclose(getattr(blue, field), getattr(orange, field), atol=1e-4, err_msg=field)


def test_both_teams_have_tasks_equally_often() -> None:
    state = filled(BEGINNINGS["save"], 3, 3, 4000)
    assert (state.ball_linear_velocity[:, 1] < 0).mean() == pytest.approx(0.5, abs=0.03)
    state = filled(BEGINNINGS["wall"], 3, 3, 4000)
    on_wall = np.abs(state.car_position[..., 0]) > 4000
    assert (on_wall.sum(1) == 1).all()
    np.testing.assert_allclose(on_wall.mean(0), 1 / 6, atol=0.02)


def test_beginnings_are_drawn_by_their_shares() -> None:
    mixed = mix_beginnings({"kickoff": 0.5, "save": 0.2, "recovery": 0.3, "shot": 0})
    state = filled(mixed, 2, 2, 4000)
    assert (state.phase == Phase.KICKOFF).mean() == pytest.approx(0.5, abs=0.03)
    assert (np.abs(state.ball_linear_velocity[:, 1]) > 1000).mean() == pytest.approx(0.2, abs=0.02)
    assert (state.car_on_ground == 0).any(1).mean() == pytest.approx(0.3, abs=0.03)


@every_task
def test_a_seed_gives_the_same_beginnings(name: str) -> None:
    one, same, other = (filled(TASKS[name], 2, 2, 5, seed).buffer.tobytes() for seed in (5, 5, 6))
    assert one == same != other


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"kickoff": 0.5}, r"the shares in \[beginnings\] are 0.5 together, expected 1"),
        ({"kickoff": 0.5, "save": 0.6}, r"the shares in \[beginnings\] are 1.1 together"),
        (
            {"kickof": 1.0},
            r"kickof in \[beginnings\] is unknown; the nearest is kickoff; expected",
        ),
        ({"kickoff": 1.5, "save": -0.5}, r"kickoff in \[beginnings\] is 1.5, expected a share, 0 to 1"),
        ({"save": -0.5, "kickoff": 1.5}, r"save in \[beginnings\] is -0.5, expected a share, 0 to 1"),
        ({"kickoff": True}, r"kickoff in \[beginnings\] is True, expected a share"),
        ({"kickoff": math.nan}, r"kickoff in \[beginnings\] is nan, expected a share"),
        ("kickoff", r"beginnings is 'kickoff', expected a table \[beginnings\] of kickoff, anywhere"),
    ],
)
def test_shares_of_nonsense_are_refused(table: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mix_beginnings(table)


def test_heights_beyond_the_field_are_refused() -> None:
    with pytest.raises(ValueError, match=r"highest is 1500, expected 300 to 1,?100 uu"):
        AerialMutator(highest=1500)
