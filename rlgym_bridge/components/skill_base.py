"""The base of beginnings in which one car, the acting one, has something to do.

own goal at -y: ball and acting car -> the others out of their way -> turned where the acting car is orange
"""

import math
from typing import Final

import numpy as np

from rlgym_bridge.components.mutator_base import BatchMutator, rest_ball
from rlgym_bridge.components.mutators import SETTLED
from rlgym_bridge.components.state_draws import APART, FLAT_CORNER, FLAT_X, FLAT_Y, TURN, make_rotations
from rlgym_bridge.game import SUPERSONIC_START_SPEED, TICK_SECONDS, Phase
from rlgym_bridge.state import MatchState

At = tuple[np.ndarray, np.ndarray]
"""One car of some matches, `(n,)` each: numbers of the matches, and of their cars."""

OTHERS_CLEAR: Final = 1200.0  # uu from the acting car and from the ball to all others, seen from above
_OTHERS_SPEED: Final = 1400.0  # uu/s, the speed that throttle alone reaches


class SkillMutator(BatchMutator):
    """A beginning with something to do for one car of each match, the acting one.

    The acting car is drawn: both teams have it equally often, and so have all cars of a team. All other cars
    drive on the ground, out of its way. All pads are there.

    Args:
        seed: Of the generator that RLGym's form draws from.
    """

    def apply_batch(self, state: MatchState, rng: np.random.Generator) -> None:
        """Fill all matches of `state`."""
        layout = state.layout
        teams = np.array([team for team, cars in enumerate((layout.blue, layout.orange)) if cars], np.intp)
        if not len(teams):
            return
        orange = rng.choice(teams, state.matches)
        acting = rng.integers(np.where(orange, layout.orange, layout.blue)) + orange * layout.blue
        self.begin(state, acting, rng)

    def begin(self, state: MatchState, acting: np.ndarray, rng: np.random.Generator) -> None:
        """Fill all matches of `state`, for given acting cars.

        Args:
            state: Matches as `blank_state` makes them.
            acting: `(matches,)` int, the acting car of each.
            rng: Generator of all that is random.
        """
        rest_ball(state)
        state.phase[:] = Phase.ACTIVE
        state.pad_timer[:] = 0
        at = np.arange(state.matches), acting
        placed = np.zeros((state.matches, state.layout.cars), bool)
        placed[at] = True
        bounds = self.fill(state, at, placed, rng)
        _place_others(state, placed, bounds, rng)
        turn_field(state, np.flatnonzero(acting >= state.layout.blue))

    def fill(self, state: MatchState, at: At, placed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Set ball and acting car, with the acting car's own goal at -y.

        Args:
            state: Matches whose ball rests in the centre.
            at: The acting cars.
            placed: `(matches, cars)` bool, the cars that are set; one more that is set here is marked in it.
            rng: Generator of all that is random.

        Returns:
            `(2, matches)` uu: least and largest y of all other cars.
        """
        raise NotImplementedError


def turn_field(state: MatchState, matches: np.ndarray) -> None:
    """Turn ball and cars of some matches, `(n,)` int, by 180 degrees about the field's centre."""
    for who in ("ball", "car"):
        for name in ("position", "linear_velocity", "angular_velocity"):
            getattr(state, f"{who}_{name}")[matches] *= TURN
        getattr(state, f"{who}_rotation")[matches] *= TURN[:, None]


def stand_cars(
    state: MatchState, at: At, place: np.ndarray, yaw: np.ndarray, speed: np.ndarray, boost: np.ndarray
) -> None:
    """Put cars on their wheels, driving forwards.

    Args:
        state: Matches.
        at: The cars, n of them.
        place: `(n, 2)` uu, x and y.
        yaw: `(n,)` rad.
        speed: `(n,)` uu/s.
        boost: `(n,)` 0..100.
    """
    height, _, pitch = SETTLED[state.car_hitbox[at].astype(np.intp)].T
    state.car_position[at] = np.column_stack((place, height))
    state.car_rotation[at] = make_rotations(pitch, yaw)
    state.car_linear_velocity[at] = heading(yaw) * speed[:, None]
    state.car_supersonic_time[at] = (speed >= SUPERSONIC_START_SPEED) * TICK_SECONDS
    state.car_wheels_with_contact[at] = 1
    state.car_boost_amount[at] = boost


def heading(yaw: np.ndarray) -> np.ndarray:
    """Return level unit vectors `(n, 3)` of bearings in rad, `(n,)`."""
    return np.column_stack((np.cos(yaw), np.sin(yaw), np.zeros_like(yaw)))


def bearing(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the bearing in rad, `(n,)`, from places to others, `(n, 2)` or more coordinates each."""
    found: np.ndarray = np.arctan2(end[:, 1] - start[:, 1], end[:, 0] - start[:, 0])
    return found


def draw_bearings(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return bearings in rad, `(count,)`, evenly spread over all."""
    return rng.uniform(-math.pi, math.pi, count)


def _place_others(
    state: MatchState, placed: np.ndarray, bounds: np.ndarray, rng: np.random.Generator
) -> None:
    """Put the cars that are not placed on the ground, clear of the others and of the ball."""
    important = placed.copy()  # what the others keep away from by more than their size
    ball = state.ball_position[:, :2]
    for car in range(placed.shape[1]):
        missing = np.flatnonzero(~placed[:, car])
        while len(missing):
            low, high = np.clip(bounds[:, missing], -FLAT_Y, FLAT_Y)
            x, y = rng.uniform(-FLAT_X, FLAT_X, len(missing)), rng.uniform(low, high)
            place = np.column_stack((x, y))
            gaps = np.linalg.norm(state.car_position[missing, :, :2] - place[:, None], axis=-1)
            least = np.where(important[missing], OTHERS_CLEAR, APART) * placed[missing]
            bad = (np.abs(x) + np.abs(y) > FLAT_CORNER) | (gaps < least).any(1)
            bad |= np.linalg.norm(ball[missing] - place, axis=-1) < OTHERS_CLEAR
            good = missing[~bad]
            at = good, np.full(len(good), car)
            stand_cars(
                state, at, place[~bad], draw_bearings(len(good), rng),
                rng.uniform(0, _OTHERS_SPEED, len(good)), rng.uniform(0, 100, len(good)),
            )  # fmt: skip
            placed[good, car] = True
            missing = missing[bad]
