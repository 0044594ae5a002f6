"""Chaser and Charger: what they do in scenes, for both teams, alone and in batches."""

import sys
from typing import Any

import numpy as np
import pytest

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.mutators import KickoffMutator, blank_state
from rlgym_bridge.game import PAD_POSITIONS
from rlgym_bridge.policy.chaser import Charger, Chaser
from rlgym_bridge.rotations import rotation_of
from rlgym_bridge.sim.rocketsim2 import RocketSim2
from rlgym_bridge.state import MatchState, derive
from tests.support.processes import run_to_end
from tests.support.states import mirrored, random_state

TABLE = LookupTableAction.make_lookup_table()
FIRST_SEED = 2000  # none of these was used to tune the policy


class StandStill:
    """Does nothing."""

    def reset(self, cars: Any, seed: int | None = None) -> None:
        self.cars = list(cars)

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        return np.full((state.matches, len(self.cars)), np.flatnonzero(~TABLE.any(1))[0])


class DriveAtBall(StandStill):
    """Always full throttle, steers at the ball, boosts when it faces it; stays on its wheels."""

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        to_ball = state.ball_position[:, None] - state.car_position[:, self.cars]
        ahead = np.einsum("mci,mcij->mcj", to_ball, state.car_rotation[:, self.cars])
        angle = np.arctan2(ahead[..., 1], ahead[..., 0])
        steer, boost = np.where(np.abs(angle) < 0.05, 0, np.sign(angle)), np.abs(angle) < 0.3
        rows = np.stack([steer**0, steer, 0 * steer, steer, 0 * steer, 0 * steer, boost, 0 * steer], -1)
        return (rows[..., None, :] == TABLE).all(-1).argmax(-1)


def kickoffs(matches: int, team_size: int = 1, seed: int = 0) -> MatchState:
    state = blank_state(team_size, team_size, matches)
    KickoffMutator().apply_batch(state, np.random.default_rng(seed))
    derive(state)
    return state


def begin(state: MatchState, blue: Any, orange: Any) -> RocketSim2:
    """Begin matches from a state on."""
    blues, cars = state.layout.blue, state.layout.cars
    arenas = RocketSim2(state.matches, blues, cars - blues, thrust=False)
    arenas.put(range(state.matches), state)
    blue.reset(range(blues), 1)
    orange.reset(range(blues, cars), 2)
    return arenas


def decide(arenas: RocketSim2, blue: Any, orange: Any) -> None:
    actions = np.concatenate([player.act(None, arenas.state) for player in (blue, orange)], 1)
    arenas.step(np.repeat(TABLE[actions][:, :, None], 8, 2))


def play(state: MatchState, seconds: float, blue: Any, orange: Any) -> list[MatchState]:
    """Play matches from a state on; return the states that were decided on, and the last one."""
    arenas = begin(state, blue, orange)
    seen = [arenas.state.copy()]
    for _ in range(round(15 * seconds)):
        decide(arenas, blue, orange)
        seen.append(arenas.state.copy())
    return seen


def score(matches: int, blue: Any, orange: Any) -> np.ndarray:
    """Play matches of a minute with a new kickoff after each goal; return the goals, `(matches, 2)`."""
    goals, arenas = np.zeros((matches, 2), int), begin(kickoffs(matches, seed=FIRST_SEED), blue, orange)
    for _ in range(15 * 60):
        decide(arenas, blue, orange)
        scored = np.flatnonzero(arenas.state.goal_scored).tolist()
        if scored:
            goals[scored, (arenas.state.ball_position[scored, 1] < 0).astype(int)] += 1
            arenas.put(scored, kickoffs(len(scored), seed=FIRST_SEED + int(goals.sum())))
    return goals


def actions_of(chaser: Chaser, states: list[MatchState]) -> list[int]:
    return [int(chaser.act(None, state)[0, 0]) for state in states]


def chaser_for(seat: int, seed: int = 1) -> Chaser:
    chaser = Chaser()
    chaser.reset([seat], seed)
    return chaser


@pytest.mark.parametrize(
    ("opponent", "matches", "share"),
    [
        (DriveAtBall, 6, 0.6),  # a sample
        pytest.param(DriveAtBall, 100, 0.6, marks=pytest.mark.slow),
        pytest.param(StandStill, 100, 0.95, marks=pytest.mark.slow),
    ],
)
def test_it_beats_the_simple_bots(opponent: type, matches: int, share: float) -> None:
    as_blue = score(matches // 2, Chaser(), opponent())
    as_orange = score(matches // 2, opponent(), Chaser())[:, ::-1]
    own, others = np.concatenate([as_blue, as_orange]).T
    assert (own > others).mean() >= share and (own < others).mean() <= 0.1


def test_equal_seeds_play_equally() -> None:
    states = play(kickoffs(1), 30.0, Chaser(), Chaser())
    assert actions_of(chaser_for(0), states) == actions_of(chaser_for(0), states)


def test_seats_and_kickoffs_differ() -> None:
    """Cars that see the same do not all do the same."""
    states = play(kickoffs(1), 2.6, Chaser(), Chaser())
    assert len({tuple(actions_of(chaser_for(0, seed), states)) for seed in range(8)}) > 1
    starts = {tuple(actions_of(chaser_for(0, seed), states[3:4] * 3)) for seed in range(8)}
    assert len(starts) >= 3  # it reacts at once, one, or two decisions late


def test_a_kickoff_without_a_reset_is_noticed() -> None:
    start = kickoffs(1)
    moving = start.copy()
    moving.ball_linear_velocity[:] = 500
    chaser = chaser_for(0)
    waits = set()
    for _ in range(12):
        waits.add(tuple(actions_of(chaser, [start] * 3)))
        chaser.act(None, moving)
    assert len(waits) > 1


def test_orange_plays_the_turned_field_as_blue_plays_it() -> None:
    for number in range(300):
        state = random_state(3, 0, number)
        blue, orange = Chaser(), Chaser()
        for chaser in (blue, orange):
            chaser.reset(range(3), 1)
        np.testing.assert_array_equal(blue.act(None, state), orange.act(None, mirrored(state)))


def test_matches_of_a_batch_do_not_mix() -> None:
    alone, batch = chaser_for(0), chaser_for(0)
    for number in range(100):
        state = random_state(1, 1, number, matches=3)
        first = MatchState(1, 1, 1, state.buffer[:1].copy())
        assert batch.act(None, state)[0] == alone.act(None, first)[0]


def test_cars_decided_together_decide_as_each_alone() -> None:
    together = Chaser()
    together.reset([4, 0, 2, 3, 1], 1)  # both teams, in any order
    alone = [chaser_for(car) for car in (4, 0, 2, 3, 1)]
    for number in range(100):
        state = random_state(2, 3, number)
        actions = together.act(None, state)[0].tolist()
        assert actions == [int(one.act(None, state)[0, 0]) for one in alone]


@pytest.mark.parametrize(("blue", "orange"), [(1, 0), (0, 1), (1, 1), (2, 3), (4, 4)])
def test_any_state_gives_an_action_of_the_table(blue: int, orange: int) -> None:
    chaser = Chaser()
    chaser.reset(range(blue + orange), 3)
    empty = MatchState(blue, orange, 2)  # no ball, no rotations, all at the origin
    for state in [empty, *(random_state(blue, orange, number, matches=2) for number in range(400))]:
        actions = chaser.act(None, state)
        assert actions.shape == (2, blue + orange)
        assert actions.dtype == np.int64
        assert actions.min() >= 0 and actions.max() < len(TABLE)


def test_a_demolished_car_keeps_still() -> None:
    state = play(kickoffs(1), 4.0, Chaser(), Chaser())[-1]
    state.car_demo_respawn_timer[:] = 2
    derive(state)
    assert not TABLE[chaser_for(0).act(None, state)[0, 0]].any()


def scene(matches: int) -> MatchState:
    """Return matches with the ball far away in a corner."""
    state = kickoffs(matches)
    state.ball_position[:] = (3000, 4500, 93)
    return state


def test_cars_in_the_air_or_on_their_roofs_get_on_their_wheels() -> None:
    state, random = scene(13), np.random.default_rng(0)
    state.car_position[:12, 0] = [(*random.uniform(-2500, 2500, 2), 900) for _ in range(12)]
    state.car_linear_velocity[:12, 0, :2] = random.uniform(-800, 800, (12, 2))
    turns = [*random.uniform(-3, 3, (12, 3)), (0, 0, np.pi)]
    state.car_rotation[:, 0] = [np.reshape(rotation_of(*turn), (3, 3)) for turn in turns]
    state.car_angular_velocity[:12, 0] = random.uniform(-3, 3, (12, 3))
    state.car_position[12, 0] = (-1500, -3000, 40)
    state.car_wheels_with_contact[:, 0] = 0
    derive(state)
    seen = play(state, 4.0, Chaser(), StandStill())
    stands = [(one.car_on_ground[:, 0] > 0) & (one.car_rotation[:, 0, 2, 2] > 0.9) for one in seen]
    assert np.any(stands, axis=0).all()


def test_it_fetches_a_big_pad_when_empty_and_far_away() -> None:
    state, (x, y) = scene(1), PAD_POSITIONS[15]
    state.car_position[0, 0], state.car_linear_velocity[0, 0] = (x, y - 1500, 17), (0, 800, 0)
    state.car_rotation[0, 0] = np.reshape(rotation_of(0, np.pi / 2, 0), (3, 3))
    state.car_boost_amount[:] = 0
    derive(state)
    seen = play(state, 2.0, Chaser(), StandStill())
    assert max(one.car_boost_amount[0, 0] for one in seen) > 80


def test_one_car_of_a_team_goes_and_the_others_stand_off() -> None:
    seen = play(kickoffs(1, 3), 5.0, Chaser(), Chaser())
    state = next(one for one in seen if one.ball_linear_velocity.any())
    gaps = np.linalg.norm(state.car_position[0] - state.ball_position[0], axis=1)
    for team in (gaps[:3], gaps[3:]):
        assert sorted(team)[1] > 1000


def test_it_needs_neither_the_simulator_nor_the_game() -> None:
    program = "import sys, rlgym_bridge.policy.chaser; print({'rlbot', 'RocketSim'} & set(sys.modules))"
    done = run_to_end([sys.executable, "-c", program], check=True)
    assert done.stdout.strip() == "set()"


def jumps_at_kickoffs(blue: Chaser, orange: Chaser) -> np.ndarray:
    """Return how often the cars of 20 kickoffs jump before the ball is hit, `(2,)`."""
    seen = play(kickoffs(20), 4.0, blue, orange)
    still = [np.abs(state.ball_position[:, :2]).max(1, keepdims=True) < 1 for state in seen]
    jumps = [(state.car_position[..., 2] > 40) & at for state, at in zip(seen, still, strict=True)]
    jumped: np.ndarray = np.any(jumps, axis=0).sum(0)
    return jumped


def test_charger_drives_at_every_kickoff() -> None:
    jumps = jumps_at_kickoffs(Charger(), Charger())
    assert jumps.max() <= 1, "cars that hit a ball at once, which then stays, lift each other"
    assert jumps_at_kickoffs(Charger(), Chaser())[1] > 10


@pytest.mark.parametrize("spots", [[2, 3], [4]])
def test_charger_shoots_at_a_goal_that_nobody_guards(spots: list[int]) -> None:
    state = blank_state(1, 1, 10)
    KickoffMutator(spots=spots).apply_batch(state, np.random.default_rng(0))
    state.car_position[:, 1] = (3500, 3000, 17)
    derive(state)
    seen = play(state, 5.0, Charger(), StandStill())
    scored = [(one.goal_scored > 0) & (one.ball_position[:, 1] > 0) for one in seen]
    assert np.any(scored, axis=0).sum() >= 8
