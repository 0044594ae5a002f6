"""Initial states: kickoffs as the game has them, random ones, those with a task, and mixes of them."""

import math
from typing import Any

import numpy as np
import pytest
from rlgym.api import RLGym, StateMutator
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import GoalReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence
from rlgym.rocket_league.state_mutators import KickoffMutator as RLGymKickoffMutator

from rlgym_bridge.components.batch_form import third_party_part
from rlgym_bridge.components.initial_states import INITIAL_STATES, mix_initial_states
from rlgym_bridge.components.mutators import (
    SETTLED,
    BatchMutator,
    KickoffMutator,
    RandomStateMutator,
    WeightedMutator,
    blank_state,
)
from rlgym_bridge.components.rlgym_state import from_rlgym
from rlgym_bridge.components.skill_mutators import AerialMutator, SkillMutator
from rlgym_bridge.game import HITBOXES, KICKOFF_BOOST, KICKOFF_SPAWNS, TICK_SECONDS, Phase
from rlgym_bridge.sim.arena import ArenaReader, make_arena, read_arena, write_arena
from rlgym_bridge.state import MatchState, derive
from tests.support.states import after_a_tick, mirrored

# Before any test makes RLGym's engine: it puts up with loaded meshes, `make_arena` does not.

TURN = np.array([-1, -1, 1], np.float32)
EACH: dict[str, BatchMutator] = {
    **INITIAL_STATES,
    "weighted": WeightedMutator([(KickoffMutator(), 1), (RandomStateMutator(), 2)]),
}
TASKS = {name: one for name, one in INITIAL_STATES.items() if isinstance(one, SkillMutator)}

every_mutator = pytest.mark.parametrize("mutator", EACH.values(), ids=EACH.keys())
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())


def filled(
    mutator: BatchMutator, blue: int = 3, orange: int = 3, matches: int = 500, seed: int = 0, hitbox: int = 0
) -> MatchState:
    state = blank_state(blue, orange, matches, hitbox)
    mutator.apply_batch(state, np.random.default_rng(seed))
    derive(state)
    return state


def spots_of(state: MatchState) -> np.ndarray:
    """Return `(N, cars)`: the number of the kickoff spot that each car is nearest to."""
    spawns = np.array(KICKOFF_SPAWNS)[:, :2]
    signs = np.where(state.car_team[0] == 0, 1, -1)
    gaps = np.linalg.norm(state.car_position[:, :, None, :2] * signs[:, None, None] - spawns, axis=-1)
    assert gaps.min(-1).max() < 1
    return gaps.argmin(-1)


# --- what holds for every mutator ------------------------------------------------------------------


@every_mutator
@pytest.mark.parametrize(("blue", "orange"), [(1, 1), (2, 2), (3, 3), (4, 4), (1, 3), (2, 0), (0, 1), (0, 0)])
def test_states_are_legal_in_all_team_sizes(mutator, blue, orange):
    rng = np.random.default_rng(0)
    state, blank = blank_state(blue, orange, 200), blank_state(blue, orange, 200)
    state.car_hitbox[:] = blank.car_hitbox[:] = rng.integers(0, 6, state.car_hitbox.shape)
    mutator.apply_batch(state, rng)
    derive(state)
    assert np.isfinite(state.buffer).all()
    for name in (
        "car_team", "car_player_id", "car_hitbox", "car_known", "gravity", "boost_consumption",
        "dodge_deadzone", "ball_known", "frame", "score", "car_bump_victim", "car_demo_respawn_timer",
        "goal_scored", "pad_timer",
    ):  # fmt: skip
        np.testing.assert_array_equal(getattr(state, name), getattr(blank, name), name)
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
    assert gaps_of(state).min() > 110  # a ball on a roof


def gaps_of(state: MatchState) -> np.ndarray:
    """Return the distances between the ball and all cars; those to themselves are infinite."""
    things = np.concatenate((state.ball_position[:, None], state.car_position), axis=1)
    gaps = np.linalg.norm(things[:, :, None] - things[:, None], axis=-1)
    gaps[:, np.arange(gaps.shape[1]), np.arange(gaps.shape[1])] = np.inf
    return gaps


@pytest.mark.parametrize("name", ["anywhere", *TASKS])
def test_states_hold_for_a_tick_of_rocketsim(name):
    """Nothing jumps, spins up or touches anything."""
    matches = 300 if name == "anywhere" else 40
    state = blank_state(3, 3, matches)
    state.car_hitbox[:] = np.arange(6 * matches).reshape(matches, 6) % 6
    INITIAL_STATES[name].apply_batch(state, np.random.default_rng(1))
    derive(state)
    later = after_a_tick(state)
    assert np.isfinite(later.buffer).all()
    np.testing.assert_array_equal(later.car_on_ground, state.car_on_ground)
    assert (later.car_bump_victim < 0).all()
    assert name == "dribble" or not later.car_ball_touches.any()
    grounded = state.car_on_ground > 0
    for field, change in (("car_linear", 6), ("ball_linear", 7), ("car_angular", 0.3)):
        before, after = (getattr(one, field + "_velocity") for one in (state, later))
        gap = np.linalg.norm(after - before, axis=-1)
        assert gap.max() < change  # gravity 5.4 uu/s; a rolling ball's friction; damping of the spin
        if name == "anywhere" and field.startswith("car"):
            assert gap[grounded].max() < 0.01
    for who in ("car", "ball"):
        speed = np.linalg.norm(getattr(state, who + "_linear_velocity"), axis=-1)
        moved = np.linalg.norm(getattr(later, who + "_position") - getattr(state, who + "_position"), axis=-1)
        assert (moved - speed * TICK_SECONDS).max() < 0.06  # gravity: 0.045 uu


@every_mutator
def test_a_seed_gives_the_same_states_and_another_one_others(mutator):
    one, two, other = (filled(mutator, matches=20, seed=seed).buffer.tobytes() for seed in (5, 5, 6))
    assert one == two != other


@every_mutator
def test_no_match_equals_another(mutator):
    state = filled(mutator, matches=20)
    assert len({row.tobytes() for row in state.buffer}) > (1 if isinstance(mutator, KickoffMutator) else 10)


@pytest.mark.parametrize("kind", [KickoffMutator, RandomStateMutator])
@pytest.mark.parametrize(("blue", "orange"), [(2, 2), (1, 3), (0, 2)])
def test_rlgyms_form_fills_the_cars_that_were_made_before(kind, blue, orange):
    games = []
    for _ in range(2):
        engine = RocketSimEngine()
        game = engine.create_base_state()
        FixedTeamSizeMutator(blue, orange).apply(game, {})
        game.cars = {agent: game.cars[agent] for agent in reversed(game.cars)}
        for number, car in enumerate(game.cars.values()):
            car.hitbox_type = number % 6
        game.tick_count, game.config.gravity = 77, 0.5
        order = list(game.cars)
        kind(seed=3).apply(game, {})
        assert list(game.cars) == order
        assert [car.hitbox_type for car in game.cars.values()] == [i % 6 for i in range(len(order))]
        assert (game.tick_count, game.config.gravity, game.config.boost_consumption) == (77, 0.5, 1)
        games.append(from_rlgym(engine.set_state(game, {})))
    state = games[0]
    assert state.buffer.tobytes() == games[1].buffer.tobytes()  # the same seed
    assert np.isfinite(state.buffer).all() and state.car_team[0].tolist() == [0] * blue + [1] * orange
    blank = blank_state(blue, orange, 1)
    blank.car_hitbox[:] = state.car_hitbox
    kind().apply_batch(blank, np.random.default_rng(3))
    for name in ("ball_position", "car_position", "car_linear_velocity", "car_boost_amount"):
        np.testing.assert_allclose(getattr(state, name), getattr(blank, name), rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(state.car_rotation, blank.car_rotation, atol=1e-6)
    np.testing.assert_array_equal(state.car_wheels_with_contact, blank.car_wheels_with_contact)


def test_an_rlgym_environment_begins_where_the_mutator_says():
    mutator = WeightedMutator([(KickoffMutator(), 1), (RandomStateMutator(), 1)], seed=1)
    env = RLGym(
        MutatorSequence(FixedTeamSizeMutator(2, 2), mutator),
        DefaultObs(None),
        RepeatAction(LookupTableAction()),
        GoalReward(),
        RocketSimEngine(),
    )
    starts = []
    for _ in range(12):
        observations = env.reset()
        assert all(np.isfinite(row).all() for row in observations.values())
        starts.append(tuple(env.state.ball.position.round(2)))
        env.step({agent: np.array([0]) for agent in env.agents})
    centred = [start[:2] == (0, 0) for start in starts]
    assert any(centred) and not all(centred)


# --- blank states ----------------------------------------------------------------------------------


def test_a_blank_state_is_what_a_reader_sees_but_for_the_places():
    arena, cars = make_arena([0, 0, 1], [2, 2, 2])
    seen, blank = read_arena(ArenaReader(arena, cars, [2, 2, 2])), blank_state(2, 1, 3, hitbox=2)
    derive(blank)
    for match in range(3):
        for name in (
            "phase", "gravity", "boost_consumption", "dodge_deadzone", "ball_known", "ball_position",
            "ball_linear_velocity", "ball_angular_velocity", "pad_timer", "goal_scored", "car_player_id",
            "car_team", "car_hitbox", "car_bump_victim", "car_known", "car_demo_respawn_timer",
            "car_has_flip",
        ):  # fmt: skip
            np.testing.assert_allclose(getattr(blank, name)[match], getattr(seen, name)[0], 1e-6, 0.01, name)
    np.testing.assert_array_equal(blank.car_rotation[1, 2], np.eye(3))


def test_blank_states_of_what_does_not_exist_are_refused():
    with pytest.raises(ValueError, match=r"hitbox is 6, expected a number 0\.\.5"):
        blank_state(1, 1, 1, hitbox=6)
    with pytest.raises(ValueError, match="team sizes are 5 and 1"):
        blank_state(5, 1, 1)


# --- kickoffs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("hitbox", range(6), ids=[box.name for box in HITBOXES])
def test_settled_is_what_rocketsim_settles_to(hitbox):
    state = blank_state(1, 0, 1, hitbox)
    state.car_position[0, 0] = (0, -3000, 17)
    derive(state)
    arena, _ = make_arena([0], [hitbox])
    reader = ArenaReader(arena, write_arena(arena, state), [hitbox])
    for _ in range(480):
        arena.step(1)
    seen = read_arena(reader)
    height, shift, pitch = SETTLED[hitbox]
    np.testing.assert_allclose(seen.car_position[0, 0], (shift, -3000, height), rtol=0, atol=2e-3)
    assert seen.car_position[0, 0, 2] == pytest.approx(height, abs=2e-5)
    assert math.asin(seen.car_rotation[0, 0, 2, 0]) == pytest.approx(pitch, abs=5e-7)
    np.testing.assert_allclose(seen.car_linear_velocity, 0, atol=1e-3)
    assert seen.car_wheels_with_contact.all()


@pytest.mark.parametrize("hitbox", range(6), ids=[box.name for box in HITBOXES])
def test_a_car_that_stands_at_a_kickoff_stays_where_it_is(hitbox):
    state = filled(KickoffMutator(), 3, 3, 1, hitbox=hitbox)
    arena, _ = make_arena([0, 0, 0, 1, 1, 1], [hitbox] * 6)
    reader = ArenaReader(arena, write_arena(arena, state), [hitbox] * 6)
    for _ in range(120):
        arena.step(1)
    later = read_arena(reader)
    np.testing.assert_allclose(later.car_position, state.car_position, rtol=0, atol=2e-3)
    np.testing.assert_allclose(later.car_rotation, state.car_rotation, rtol=0, atol=1e-5)
    np.testing.assert_allclose(later.ball_position, state.ball_position, rtol=0, atol=1e-3)
    assert later.car_wheels_with_contact.all()


def test_a_kickoff_has_everything_at_rest_and_a_third_of_a_tank():
    state = filled(KickoffMutator())
    assert (state.phase == Phase.KICKOFF).all()
    assert not state.car_linear_velocity.any() and not state.ball_linear_velocity.any()
    np.testing.assert_array_equal(state.car_boost_amount, np.float32(KICKOFF_BOOST))
    np.testing.assert_array_equal(state.ball_position[7], np.array([0, 0, 93.15], np.float32))
    assert state.car_on_ground.all()


@pytest.mark.parametrize(("blue", "orange"), [(3, 3), (4, 2), (1, 3)])
def test_no_spot_is_taken_twice_in_a_team_and_all_come_up_alike(blue, orange):
    spots = spots_of(filled(KickoffMutator(), blue, orange, 4000))
    for team in (spots[:, :blue], spots[:, blue:]):
        assert all(len(set(row)) == len(row) for row in team.tolist())
        for car in team.T:
            np.testing.assert_allclose(np.bincount(car, minlength=5) / 4000, 0.2, atol=0.03)


def test_both_teams_have_the_same_spots_turned():
    state = filled(KickoffMutator(), 4, 4, 50)
    np.testing.assert_array_equal(state.car_position[:, 4:], state.car_position[:, :4] * TURN)
    np.testing.assert_array_equal(state.car_rotation[:, 4:], state.car_rotation[:, :4] * TURN[:, None])
    other = mirrored(state)
    np.testing.assert_array_equal(other.car_position, state.car_position)
    np.testing.assert_array_equal(other.car_rotation, state.car_rotation)


def test_kickoff_cars_face_as_rlgyms_do():
    game = RocketSimEngine().create_base_state()
    FixedTeamSizeMutator(3, 3).apply(game, {})
    RLGymKickoffMutator().apply(game, {})
    theirs, ours = from_rlgym(game), filled(KickoffMutator(), matches=30)
    yaws = {}
    for state in (theirs, ours):
        forward = state.car_rotation[..., 0]
        for spot, team, nose in zip(
            spots_of(state).ravel(), state.car_team.ravel(), forward.reshape(-1, 3), strict=True
        ):
            yaws.setdefault((spot, team), []).append(nose[:2] / np.linalg.norm(nose[:2]))
    for noses in yaws.values():
        np.testing.assert_allclose(noses, np.broadcast_to(noses[0], np.shape(noses)), atol=1e-6)


# --- random states ---------------------------------------------------------------------------------


def test_random_things_are_clear_of_walls_goals_and_each_other():
    state = filled(RandomStateMutator(), 4, 4, 3000)
    things = np.concatenate((state.ball_position[:, None], state.car_position), axis=1)
    x, y = np.abs(things[..., 0]), np.abs(things[..., 1])
    assert x.max() <= 3800 and y.max() <= 4800 and (x + y).max() <= 7601
    assert state.ball_position[:, 2].min() >= 93.15 - 1e-4 and state.ball_position[:, 2].max() <= 1800
    height = state.car_position[..., 2]
    assert (height[state.car_on_ground == 0] >= 150).all() and height.max() <= 1800
    assert gaps_of(state).min() > 200


@pytest.mark.parametrize("hitbox", range(6), ids=[box.name for box in HITBOXES])
def test_random_grounded_cars_stand_and_drive_forwards(hitbox):
    state = filled(RandomStateMutator(ground_share=1), hitbox=hitbox)
    assert state.car_on_ground.all()
    np.testing.assert_allclose(state.car_position[..., 2], SETTLED[hitbox][0], rtol=1e-6)
    np.testing.assert_allclose(state.ball_position[:, 2], 93.15, rtol=1e-6)
    assert (np.abs(state.car_rotation[..., 2, 0] - np.sin(SETTLED[hitbox][2])) < 1e-6).all()
    assert not state.car_angular_velocity.any() and not state.car_linear_velocity[..., 2].any()
    forwards = (state.car_linear_velocity * state.car_rotation[..., 0]).sum(-1)
    np.testing.assert_allclose(forwards, np.linalg.norm(state.car_linear_velocity, axis=-1), rtol=3e-4)


def test_the_share_on_the_ground_is_what_was_asked_for():
    for share in (0, 0.25, 1):
        state = filled(RandomStateMutator(ground_share=share), matches=2000)
        assert state.car_on_ground.mean() == pytest.approx(share, abs=0.02)
        assert (state.ball_position[:, 2] < 94).mean() == pytest.approx(share, abs=0.04)


def test_random_states_reach_all_places_speeds_directions():
    state = filled(RandomStateMutator(), matches=3000)
    for sign in (1, -1):
        assert (state.car_position * sign)[..., 0].max() > 3700
        assert (state.ball_position * sign)[..., 1].max() > 4700
    for axis in range(3):
        np.testing.assert_allclose(
            state.car_rotation[state.car_on_ground == 0][..., axis].mean(0), 0, atol=0.04
        )
    assert np.abs(state.car_linear_velocity.mean((0, 1))).max() < 40
    speed, spin = (np.linalg.norm(getattr(state, "car_" + name), axis=-1) for name in
                   ("linear_velocity", "angular_velocity"))  # fmt: skip
    assert 2295 < speed.max() <= 2300.01 and 5.45 < spin.max() <= 5.5001
    assert 2990 < np.linalg.norm(state.ball_linear_velocity, axis=-1).max() <= 3000.01
    assert 0 <= state.car_boost_amount.min() < 0.1 and 99.9 < state.car_boost_amount.max() <= 100
    assert state.car_boost_amount.mean() == pytest.approx(50, abs=1)


def test_random_flags_fit_together():
    state = filled(RandomStateMutator(), matches=2000)
    grounded = state.car_on_ground > 0
    assert not state.car_has_jumped[grounded].any() and state.car_has_flip[grounded].all()
    assert state.car_can_flip[~grounded].mean() == pytest.approx(0.5, abs=0.02)
    speed = np.linalg.norm(state.car_linear_velocity, axis=-1)
    sure = np.abs(speed - 2200) > 0.01
    np.testing.assert_array_equal((state.car_is_supersonic > 0)[sure], (speed > 2200)[sure])


def test_slower_random_states_can_be_asked_for():
    state = filled(RandomStateMutator(car_speed=500, ball_speed=0))
    assert np.linalg.norm(state.car_linear_velocity, axis=-1).max() <= 500.01
    assert not state.ball_linear_velocity.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ground_share": 1.1}, "ground_share is 1.1, expected 0 to 1"),
        ({"ground_share": math.nan}, "ground_share is nan"),
        ({"car_speed": 2301}, "car_speed is 2301, expected 0 to 2300"),
        ({"ball_speed": -1}, "ball_speed is -1, expected 0 to 6000"),
    ],
)
def test_random_states_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RandomStateMutator(**arguments)


# --- states with a task ----------------------------------------------------------------------------


@every_task
def test_orange_has_the_same_task_as_blue(task):
    states = []
    for acting in (0, 1):
        state = blank_state(1, 1, 100)
        task.begin(state, np.full(100, acting), np.random.default_rng(3))
        states.append(state)
    blue, orange = states[0], mirrored(states[1])
    for field in ("ball_position", "ball_linear_velocity", "car_position", "car_rotation",
                  "car_linear_velocity", "car_angular_velocity", "car_boost_amount"):  # fmt: skip
        np.testing.assert_allclose(getattr(blue, field), getattr(orange, field), atol=1e-4, err_msg=field)


def test_both_teams_have_tasks_equally_often():
    state = filled(INITIAL_STATES["save"], 3, 3, 4000)
    assert (state.ball_linear_velocity[:, 1] < 0).mean() == pytest.approx(0.5, abs=0.03)
    state = filled(INITIAL_STATES["wall"], 3, 3, 4000)
    on_wall = np.abs(state.car_position[..., 0]) > 4000
    assert (on_wall.sum(1) == 1).all()
    np.testing.assert_allclose(on_wall.mean(0), 1 / 6, atol=0.02)


def test_heights_beyond_the_field_are_refused():
    with pytest.raises(ValueError, match=r"highest is 1500, expected 300 to 1,?100 uu"):
        AerialMutator(highest=1500)


# --- mixes -----------------------------------------------------------------------------------------


def test_each_match_of_a_mix_is_drawn_by_weight():
    mutator = WeightedMutator([(KickoffMutator(), 3), (RandomStateMutator(), 1), (RandomStateMutator(), 0)])
    np.testing.assert_array_equal(mutator.shares, [0.75, 0.25, 0])
    state = filled(mutator, matches=4000)
    assert (state.phase == Phase.KICKOFF).mean() == pytest.approx(0.75, abs=0.03)
    assert (np.abs(state.ball_position[:, 0]) > 0).mean() == pytest.approx(0.25, abs=0.03)


class ThirdParty(StateMutator):
    """A mutator of somebody else."""

    calls = 0

    def apply(self, state: Any, shared_info: dict[str, Any]) -> None:
        self.calls += 1
        RLGymKickoffMutator().apply(state, shared_info)


def test_a_third_party_mutator_works_in_rlgyms_form_alone():
    third_party = ThirdParty()
    mutator = WeightedMutator([(third_party, 1), (WeightedMutator([(KickoffMutator(), 1)]), 1)], seed=0)
    assert third_party_part(mutator) is third_party
    with pytest.raises(TypeError, match="WeightedMutator holds ThirdParty, which has no apply_batch"):
        filled(mutator)
    engine = RocketSimEngine()
    for _ in range(20):
        game = engine.create_base_state()
        FixedTeamSizeMutator(1, 1).apply(game, {})
        mutator.apply(game, {})
        assert np.isfinite(from_rlgym(engine.set_state(game, {})).buffer).all()
    assert 4 <= third_party.calls <= 16


@pytest.mark.parametrize(
    ("mutators", "error", "message"),
    [
        ([], ValueError, r"weights of mutators are \[\], expected numbers of 0 or more, one above 0"),
        ([(KickoffMutator(), 0)], ValueError, r"weights of mutators are \[0.0\]"),
        (
            [(KickoffMutator(), -1), (KickoffMutator(), 2)],
            ValueError,
            r"weights of mutators are \[-1.0, 2.0\]",
        ),
        ([(KickoffMutator(), math.inf)], ValueError, r"weights of mutators are \[inf\]"),
        ([KickoffMutator()], TypeError, "expected pairs of an RLGym mutator and its weight"),
        ([(max, 1)], TypeError, "mutators hold .*max"),
    ],
)
def test_mixes_of_nonsense_are_refused(mutators, error, message):
    with pytest.raises(error, match=message):
        WeightedMutator(mutators)


def test_initial_states_are_drawn_by_their_shares():
    mixed = mix_initial_states({"kickoff": 0.5, "save": 0.2, "recovery": 0.3, "shot": 0})
    state = filled(mixed, 2, 2, 4000)
    assert (state.phase == Phase.KICKOFF).mean() == pytest.approx(0.5, abs=0.03)
    assert (np.abs(state.ball_linear_velocity[:, 1]) > 1000).mean() == pytest.approx(0.2, abs=0.02)
    assert (state.car_on_ground == 0).any(1).mean() == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"kickoff": 0.5}, r"the shares in \[initial_states\] are 0.5 together, expected 1"),
        ({"kickoff": 0.5, "save": 0.6}, r"the shares in \[initial_states\] are 1.1 together"),
        (
            {"kickof": 1.0},
            r"kickof in \[initial_states\] is unknown; the nearest is kickoff; expected",
        ),
        ({"kickoff": 1.5, "save": -0.5}, r"kickoff in \[initial_states\] is 1.5, expected a share, 0 to 1"),
        ({"save": -0.5, "kickoff": 1.5}, r"save in \[initial_states\] is -0.5, expected a share, 0 to 1"),
        ({"kickoff": True}, r"kickoff in \[initial_states\] is True, expected a share"),
        ({"kickoff": math.nan}, r"kickoff in \[initial_states\] is nan, expected a share"),
        ("kickoff", r"initial_states is 'kickoff', expected a table of kickoff, anywhere"),
    ],
)
def test_shares_of_nonsense_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        mix_initial_states(table)
