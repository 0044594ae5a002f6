"""Three scripted bots that judge a policy in matches: none of them plays in training.

MatchState -> a place to drive to, for each car -> control vectors of all eight inputs
"""

from typing import Final

import numpy as np

from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.game import BACK_WALL_Y, CAR_MAX_SPEED, CONTROL_NAMES, TICK_SKIP, Phase
from rlgym_bridge.state import MatchState
from rlgym_bridge.training.scenes import RammingDriver, StandingDriver, scripted_player

_DRIVING: Final = 1800.0  # uu/s, the speed that its bots count with
_LOOK_AHEAD: Final = 0.7  # s, at most
_FIELD_X: Final = 3900.0  # uu, where a place to drive to is at most
_FIELD_Y: Final = 5000.0


class PlaceDriver(StandingDriver):
    """Drives each car to a place, with boost where the way is straight; a car on its roof jumps."""

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        """Return control vectors, `(matches, cars, 8)`."""
        rows = super().act(obs, state)
        for column, car in enumerate(self._cars):
            place, hurry = self.choose(state, car, 1.0 if car < state.layout.blue else -1.0)
            for name, values in _drive(state, car, place, hurry).items():
                rows[:, column, CONTROL_NAMES.index(name)] = values
        return rows

    def choose(self, state: MatchState, car: int, side: float) -> tuple[np.ndarray, np.ndarray]:
        """Return where a car drives to, `(matches, 2)` uu, and whether it drives through, `(matches,)` bool.

        Its team's own goal lies at -y times `side`.
        """
        raise NotImplementedError


class Keeper(PlaceDriver):
    """Stays between the ball and its own goal, and drives at a ball that comes near either."""

    def choose(self, state: MatchState, car: int, side: float) -> tuple[np.ndarray, np.ndarray]:
        """Return a place on the line from the goal to the ball, or where the ball will be."""
        ball = _ball_to_come(state, car)
        goal, me = np.array((0.0, -BACK_WALL_Y * side)), state.car_position[:, car, :2]
        behind = (ball - me)[:, 1] * side > 100
        near = behind & (np.linalg.norm(ball - me, axis=1) < 1200)
        near |= np.linalg.norm(ball - goal, axis=1) < 2500
        return np.where(near[:, None], ball, goal + 0.45 * (ball - goal)), near


class Striker(PlaceDriver):
    """Drives through the ball towards the opponents' goal, from behind it; at a kickoff straight at it."""

    def choose(self, state: MatchState, car: int, side: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the ball where the way leads on to the goal, else a place behind the ball."""
        ball, me = _ball_to_come(state, car), state.car_position[:, car, :2]
        to_goal = np.array((0.0, BACK_WALL_Y * side)) - ball
        to_goal /= np.linalg.norm(to_goal, axis=1)[:, None]
        gap = np.linalg.norm(ball - me, axis=1)
        straight = np.einsum("ni,ni->n", ball - me, to_goal) > 0.5 * gap
        straight |= (state.phase == Phase.KICKOFF) | ((ball - me)[:, 1] * side > 0) & (gap < 700)
        beside = np.sign(me[:, 0] - ball[:, 0])[:, None] * np.array((500.0, 0.0))  # not through the ball
        ahead = ((me - ball)[:, 1] * side > -300)[:, None]
        behind = ball - to_goal * np.clip(0.6 * gap, 300, 1200)[:, None] + np.where(ahead, beside, 0)
        return np.where(straight[:, None], ball, behind), straight


def _ball_to_come(state: MatchState, car: int) -> np.ndarray:
    """Return where the ball is when a car reaches it, `(matches, 2)` uu, without bounces."""
    gap = np.linalg.norm(state.ball_position - state.car_position[:, car], axis=1)
    seconds = np.minimum(gap / _DRIVING, _LOOK_AHEAD)[:, None]
    place = state.ball_position[:, :2] + state.ball_linear_velocity[:, :2] * seconds
    return np.clip(place, (-_FIELD_X, -_FIELD_Y), (_FIELD_X, _FIELD_Y))


def _drive(state: MatchState, car: int, place: np.ndarray, hurry: np.ndarray) -> dict[str, np.ndarray]:
    """Return inputs by name, `(matches,)` each, that take a car to a place `(matches, 2)` on the ground."""
    gap = np.zeros((len(place), 3))
    gap[:, :2] = place - state.car_position[:, car, :2]
    front, right, _ = np.einsum("nij,ni->jn", state.car_rotation[:, car], gap)
    yaw, far = np.arctan2(right, front), np.hypot(right, front)
    speed = np.linalg.norm(state.car_linear_velocity[:, car], axis=1)
    wanted = np.where(hurry, CAR_MAX_SPEED, np.clip(1.5 * (far - 150), 0, CAR_MAX_SPEED))
    roof_up = state.car_rotation[:, car, 2, 2]
    lies = (state.car_on_ground[:, car] == 0) & (state.car_position[:, car, 2] < 60) & (roof_up < 0.3)
    return {
        "throttle": np.clip((wanted - speed) / 300, -1, 1), "steer": np.clip(2.5 * yaw, -1, 1),
        "boost": (np.abs(yaw) < 0.25) & (wanted > speed + 300) & (far > 700),
        "handbrake": (np.abs(yaw) > 1.8) & (speed > 500), "jump": lies, "roll": lies,
    }  # fmt: skip


def keeper() -> PlayerSpec:
    """Return the player that waits in its goal."""
    return scripted_player(Keeper, TICK_SKIP)


def striker() -> PlayerSpec:
    """Return the player that drives through the ball from behind."""
    return scripted_player(Striker, TICK_SKIP)


def rammer() -> PlayerSpec:
    """Return the player that drives at the first car of the other team."""
    return scripted_player(RammingDriver, TICK_SKIP)
