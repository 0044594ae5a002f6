"""Whole matches in one process, for tests of policies: RocketSim without a server, and two simple bots."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import RocketSim as rsim
from rlgym.rocket_league.action_parsers import LookupTableAction

from rlgym_bridge.game import (
    BALL_REST_Z,
    BLUE,
    KICKOFF_BOOST,
    KICKOFF_SPAWNS,
    ORANGE,
    TICKS_PER_SECOND,
    Phase,
)
from rlgym_bridge.sim.arena import ArenaReader, control_of, make_arena, place_cars
from rlgym_bridge.sim.touches import TOUCH_GAP_TICKS, is_new_touch
from rlgym_bridge.state import MatchState

TICK_SKIP = 8
TABLE = LookupTableAction.make_lookup_table()
_CONTROLS = [control_of([float(value) for value in row]) for row in TABLE]


def action_index(throttle: int, steer: int, *, boost: int = 0, jump: int = 0, handbrake: int = 0) -> int:
    """Return the row of the table with these controls on the ground."""
    row = [throttle, steer, 0, steer, 0, jump, boost, handbrake]
    return int(np.flatnonzero((row == TABLE).all(1))[0])


class StandStill:
    """Does nothing."""

    def reset(self, seats: Sequence[int], seed: int | None = None) -> None:
        """Remember how many cars stand still."""
        self._cars = len(seats)

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        """Return the row of neutral controls for every car."""
        return np.full((state.matches, self._cars), action_index(0, 0), np.int64)


class DriveAtBall:
    """Always full throttle, steers at the ball, boosts when it faces it; stays on its wheels."""

    DEAD_ZONE = 0.05  # rad: less than half of what one step of full steering turns
    BOOST_ZONE = 0.3  # rad

    def __init__(self) -> None:
        self._drive = {
            (steer, boost): action_index(1, steer, boost=boost) for steer in (-1, 0, 1) for boost in (0, 1)
        }

    def reset(self, seats: Sequence[int], seed: int | None = None) -> None:
        """Remember the rows to play."""
        self._seats = list(seats)

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        """Steer every car by the sign of the angle to the ball in its own plane."""
        actions = np.empty((state.matches, len(self._seats)), np.int64)
        for match in range(state.matches):
            for column, seat in enumerate(self._seats):
                to_ball = state.ball_position[match] - state.car_position[match, seat]
                front, right, _ = (to_ball @ state.car_rotation[match, seat]).tolist()
                angle = math.atan2(right, front)
                steer = 0 if abs(angle) < self.DEAD_ZONE else int(math.copysign(1, angle))
                actions[match, column] = self._drive[steer, int(abs(angle) < self.BOOST_ZONE)]
        return actions


@dataclass
class MatchResult:
    """Goals of both teams, touches of each car, and length in game time with overtime."""

    score: list[int]
    touches: list[int]
    seconds: float = 0.0
    overtime: bool = False


class Match:
    """One arena and its cars, stepped by the decisions of a blue and an orange policy."""

    def __init__(self, players: tuple[Any, Any], team_size: int, seed: int) -> None:
        self.players = players
        self.team_size = team_size
        self.teams = [BLUE] * team_size + [ORANGE] * team_size
        self.result = MatchResult([0, 0], [0] * (2 * team_size))
        self.ticks = 0
        self.scored = False
        self.state = MatchState(team_size, team_size)
        self._random = random.Random(seed)
        self._last_touch = [-TOUCH_GAP_TICKS] * (2 * team_size)
        self.arena, self.cars = make_arena(self.teams)
        self.arena.set_goal_score_callback(self._on_goal)
        self._touched: set[int] = set()
        self.arena.set_ball_touch_callback(lambda arena, car, data: self._touched.add(car.id))

    def _on_goal(self, arena: rsim.Arena, team: int, data: object) -> None:
        if not self.scored:
            self.result.score[int(team)] += 1
        self.scored = True

    def kickoff(self) -> None:
        """Put ball, pads and fresh cars on a seeded kickoff and reset the players."""
        self.arena.reset_kickoff(0)
        self.cars = place_cars(self.arena, self.teams)
        ball = rsim.BallState()
        ball.pos = rsim.Vec(0, 0, BALL_REST_Z)
        self.arena.ball.set_state(ball)
        spots = self._random.sample(KICKOFF_SPAWNS, self.team_size)
        for row, car in enumerate(self.cars):
            self._spawn(car, *spots[row % self.team_size], turned=self.teams[row] == ORANGE)
        self.reader = ArenaReader(self.arena, self.cars)
        seed = self._random.randrange(2**31)
        rows = list(range(2 * self.team_size))
        self.players[BLUE].reset(rows[: self.team_size], seed)
        self.players[ORANGE].reset(rows[self.team_size :], seed + 1)
        self.scored = False
        self.phase = Phase.KICKOFF

    @staticmethod
    def _spawn(car: rsim.Car, x: float, y: float, yaw: float, turned: bool) -> None:
        state = rsim.CarState()
        sign = -1 if turned else 1
        state.pos = rsim.Vec(sign * x, sign * y, 17)
        state.rot_mat = rsim.Angle(yaw * math.pi + (math.pi if turned else 0.0), 0, 0).as_rot_mat()
        state.boost = KICKOFF_BOOST
        car.set_state(state)

    def step(self) -> None:
        """Let both players decide on the state of now and play 8 ticks, the first with old inputs."""
        self.reader.read_into(self.state)
        self.state.phase[:] = self.phase
        self._respawn()
        actions = [player.act(None, self.state)[0].tolist() for player in self.players]
        self._touched.clear()
        self.arena.step(1)
        for car, action in zip(self.cars, actions[0] + actions[1], strict=True):
            car.set_controls(_CONTROLS[action])
        self.arena.step(TICK_SKIP - 1)
        self.ticks += TICK_SKIP
        for row, car in enumerate(self.cars):
            if car.id in self._touched:
                self.phase = Phase.ACTIVE
                self.result.touches[row] += is_new_touch(self.ticks - self._last_touch[row])
                self._last_touch[row] = self.ticks

    def _respawn(self) -> None:
        """Bring demolished cars back by our seed, up to 8 ticks early: RocketSim's own spot is random."""
        for row, timer in enumerate(self.state.car_demo_respawn_timer[0].tolist()):
            if 0 < timer <= TICK_SKIP / TICKS_PER_SECOND:
                self.cars[row].respawn(self._random.randrange(1, 2**31))


def play_match(
    blue: Any,
    orange: Any,
    seed: int,
    seconds: float = 60.0,
    overtime: float = 0.0,
) -> MatchResult:
    """Play one match without countdowns and replays; `overtime` follows a draw up to its first goal."""
    match = Match((blue, orange), 1, seed)
    result = match.result
    match.kickoff()
    end = seconds * TICKS_PER_SECOND
    while match.ticks < end:
        match.step()
        if match.scored:
            if result.overtime:
                break
            match.kickoff()
        level = result.score[BLUE] == result.score[ORANGE]
        if match.ticks >= end and level and overtime and not result.overtime:
            result.overtime = True
            end += overtime * TICKS_PER_SECOND
            match.kickoff()
    result.seconds = match.ticks / TICKS_PER_SECOND
    return result
