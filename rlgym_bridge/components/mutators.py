"""Mutators that begin episodes at kickoffs, random states, or a mix, for one match or for many at once.

blank_state -> apply_batch(state, generator) -> derive -> the arenas
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from rlgym_bridge import game
from rlgym_bridge.components.mutator_base import BatchMutator, WeightedMutator, blank_state, rest_ball
from rlgym_bridge.rotations import from_euler
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.arguments import check_number, show_value

__all__ = [
    "SETTLED", "BatchMutator", "KickoffMutator", "RandomStateMutator", "WeightedMutator", "blank_state",
]  # fmt: skip

SETTLED: Final = np.array(
    [
        (17.03199, 0.1623, -0.0095863),  # octane
        (17.07449, 0.3060, -0.0178969),  # dominus
        (18.66959, 0.1369, -0.0077044),  # plank
        (18.36119, 0.3231, -0.0183348),  # breakout
        (17.03050, 0.1666, -0.0097289),  # hybrid
        (18.80895, -0.0843, 0.0048174),  # merc
    ]
)
"""Resting pose of a car of each hitbox: height uu, shift along its nose uu, pitch rad (nose up is positive).

Measured in RocketSim 2.2.1 with cars put level at z 17, 480 ticks of neutral inputs later; mean of four spots
and facings, which differ by 0.002 uu in the shift (float32 far from the centre), 1e-5 uu in the height and
2e-7 rad. The cars stand from tick 120 on, slower than 1e-4 uu/s, on all four wheels. A test measures again.
"""

_FULL_BOOST: Final = 100.0


class KickoffMutator(BatchMutator):
    """A kickoff: the ball rests in the centre, the cars stand on kickoff spots, settled on their wheels.

    Each team's spots are drawn without repetition; both teams have the same ones, turned by 180 degrees.
    RLGym's own kickoff drops the cars from a little higher, wheels off; in a match they stand when it says
    GO. Boost is a third of a tank.

    Args:
        seed: Of the generator that RLGym's form draws from.
        spots: Numbers in `game.KICKOFF_SPAWNS` of which each team's first car has one; all when None.

    Raises:
        ValueError: `spots` is empty, or a spot does not exist.
    """

    def __init__(self, seed: int | None = None, spots: Sequence[int] | None = None) -> None:
        super().__init__(seed)
        known = range(len(game.KICKOFF_SPAWNS))
        if spots is not None and (not spots or not all(spot in known for spot in spots)):
            raise ValueError(f"spots is {show_value(spots)}, expected numbers 0..{known[-1]}, one at least")
        self._spots = None if spots is None else np.array(spots)

    def apply_batch(self, state: MatchState, rng: np.random.Generator) -> None:
        """Fill all matches of `state`; the phase is Kickoff."""
        blue, orange = state.layout.blue, state.layout.orange
        spots = np.broadcast_to(
            np.arange(len(game.KICKOFF_SPAWNS)), (state.matches, len(game.KICKOFF_SPAWNS))
        )
        spots = rng.permuted(spots, axis=1)
        if self._spots is not None:  # the first car takes one of them, and who had it takes the first car's
            first = rng.choice(self._spots, state.matches)[:, None]
            spots = np.where(spots == first, spots[:, :1], spots)
            spots[:, :1] = first
        spots = np.concatenate((spots[:, :blue], spots[:, :orange]), axis=1)  # of each car
        positions, rotations = _kickoff_places()
        hitboxes = state.car_hitbox.astype(np.intp)
        state.car_position[:] = positions[hitboxes, spots]
        state.car_rotation[:] = rotations[hitboxes, spots]
        state.car_position[:, blue:] *= TURN
        state.car_rotation[:, blue:] *= TURN[:, None]
        state.car_linear_velocity[:] = state.car_angular_velocity[:] = 0
        state.car_wheels_with_contact[:] = 1
        state.car_boost_amount[:] = game.KICKOFF_BOOST
        state.phase[:] = game.Phase.KICKOFF
        state.pad_timer[:] = 0
        rest_ball(state)


class RandomStateMutator(BatchMutator):
    """Ball and cars anywhere in the field, clear of walls, ramps, goals and each other; pads all there.

    Cars on the ground stand on their wheels, face anywhere and drive forwards. Cars in the air are turned,
    move and spin in any direction; half of them have jumped twice and have no dodge left. A ball on the
    ground rolls, any other flies. Speeds and boost are spread evenly from 0 to their largest, directions
    evenly over all.

    Args:
        ground_share: Share of the cars, and of the balls, on the ground, 0..1.
        car_speed: Largest speed of a car, uu/s.
        ball_speed: Largest speed of the ball, uu/s.
        seed: Of the generator that RLGym's form draws from.

    Raises:
        ValueError: The share is not within 0..1, or a speed is above what the game allows.
    """

    def __init__(
        self,
        ground_share: float = 0.5,
        car_speed: float = game.CAR_MAX_SPEED,
        ball_speed: float = game.BALL_MAX_SPEED / 2,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        for name, value, most in (
            ("ground_share", ground_share, 1.0),
            ("car_speed", car_speed, game.CAR_MAX_SPEED),
            ("ball_speed", ball_speed, game.BALL_MAX_SPEED),
        ):
            check_number(name, value, most=most, unit="uu/s" if name.endswith("speed") else "")
        self.ground_share, self.car_speed, self.ball_speed = ground_share, car_speed, ball_speed

    def apply_batch(self, state: MatchState, rng: np.random.Generator) -> None:
        """Fill all matches of `state`."""
        shape = (state.matches, state.layout.cars)
        ball_rolls = rng.random(state.matches) < self.ground_share
        stands = rng.random(shape) < self.ground_share
        places = draw_places(np.column_stack((ball_rolls, stands)), rng)
        self._fill_ball(state, ball_rolls, places[:, 0], rng)
        self._fill_cars(state, stands, places[:, 1:], rng)
        state.phase[:] = game.Phase.ACTIVE
        state.pad_timer[:] = 0

    def _fill_ball(
        self, state: MatchState, rolls: np.ndarray, places: np.ndarray, rng: np.random.Generator
    ) -> None:
        rest_ball(state)
        state.ball_position[:] = places
        state.ball_position[rolls, 2] = game.BALL_REST_Z
        direction = draw_directions(rolls.shape, rng)
        direction[rolls] = level_directions(direction[rolls])
        state.ball_linear_velocity[:] = direction * rng.uniform(0, self.ball_speed, (*rolls.shape, 1))

    def _fill_cars(
        self, state: MatchState, stands: np.ndarray, places: np.ndarray, rng: np.random.Generator
    ) -> None:
        flies, shape = ~stands, stands.shape
        height, _, pitch = SETTLED[state.car_hitbox.astype(np.intp)][stands].T
        state.car_position[:] = places
        state.car_position[stands, 2] = height
        yaw = rng.uniform(-math.pi, math.pi, shape)
        state.car_rotation[:] = draw_rotations(shape, rng)
        state.car_rotation[stands] = make_rotations(pitch, yaw[stands])
        direction = draw_directions(shape, rng)
        direction[stands] = level_directions(state.car_rotation[stands][:, :, 0])
        speed = rng.uniform(0, self.car_speed, shape)
        state.car_linear_velocity[:] = direction * speed[..., None]
        spin = rng.uniform(0, game.CAR_MAX_ANGULAR_SPEED, shape) * flies
        state.car_angular_velocity[:] = draw_directions(shape, rng) * spin[..., None]
        state.car_supersonic_time[:] = (speed >= game.SUPERSONIC_START_SPEED) * game.TICK_SECONDS
        state.car_boost_amount[:] = rng.uniform(0, _FULL_BOOST, shape)
        state.car_wheels_with_contact[:] = stands[..., None]
        spent = flies & (rng.random(shape) < 0.5)
        state.car_has_jumped[:] = state.car_has_double_jumped[:] = spent
        state.car_jump_time[:] = spent * game.JUMP_MAX_SECONDS
        state.car_air_time_since_jump[:] = spent * rng.uniform(game.TICK_SECONDS, 1.0, shape)


# --- what they are made of --------------------------------------------------------------------------


@cache
def _kickoff_places() -> tuple[np.ndarray, np.ndarray]:
    """Return blue's cars settled on their spots: (hitboxes, spots, 3) positions, (..., 3, 3) rotations."""
    x, y, half_turns = np.array(game.KICKOFF_SPAWNS).T
    height, shift, pitch = SETTLED.T[:, :, None]
    yaw = np.broadcast_to(half_turns * math.pi, (len(game.HITBOXES), len(game.KICKOFF_SPAWNS)))
    positions = np.stack((x + shift * np.cos(yaw), y + shift * np.sin(yaw), height + 0 * yaw), -1)
    return positions, make_rotations(np.broadcast_to(pitch, yaw.shape), yaw)


TURN: Final = np.array([-1.0, -1.0, 1.0])  # factors of x, y and z that turn the field by 180 degrees about z

FLAT_X, FLAT_Y, FLAT_CORNER = 3700.0, 4700.0, 7400.0
"""Limits of |x|, |y| and |x| + |y| of cars on their wheels, uu: 100 further in than others."""

APART: Final = 250.0  # uu between centres: two cars reach 190, a car and the ball 187

_REACH_X, _REACH_Y, _REACH_CORNER = 3800.0, 4800.0, 7600.0
"""Limits of |x|, |y| and |x| + |y| of random centres, uu; ramps begin 40 further out, walls stand 296."""
_AIR_LOWEST, _AIR_HIGHEST = 150.0, 1800.0  # uu; a car's corners reach 95 uu from its centre


def make_rotations(pitch: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Return the matrices `(..., 3, 3)` of cars without roll; angles in rad, nose up is positive."""
    return from_euler(np.stack((pitch, yaw, np.zeros_like(yaw)), -1))


def draw_rotations(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return rotations, evenly spread over all: `(*shape, 3, 3)`."""
    forward, other = draw_directions(shape, rng), draw_directions(shape, rng)
    right = np.cross(other, forward)
    right /= np.linalg.norm(right, axis=-1, keepdims=True)
    return np.stack((forward, right, np.cross(forward, right)), -1)


def draw_directions(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return unit vectors, evenly spread over all directions: `(*shape, 3)`."""
    vectors = rng.normal(size=(*shape, 3))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def level_directions(directions: np.ndarray) -> np.ndarray:
    """Return unit vectors `(..., 3)` with the same bearing and no z."""
    flat = directions * (1, 1, 0)
    return np.asarray(flat / np.linalg.norm(flat, axis=-1, keepdims=True))


def draw_places(grounded: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return random centres `(N, things, 3)` uu, clear of walls and each other; height 0 where `grounded`."""
    places = np.empty((*grounded.shape, 3))
    for thing in range(grounded.shape[1]):
        missing = np.arange(len(grounded))
        while len(missing):  # one in ten on the ground, in the air one in thirty, is drawn again
            low = grounded[missing, thing]
            place = rng.uniform(-1, 1, (len(missing), 3)) * (_REACH_X, _REACH_Y, 0)
            place[:, 2] = np.where(low, 0, rng.uniform(_AIR_LOWEST, _AIR_HIGHEST, len(missing)))
            places[missing, thing] = place
            x, y = np.abs(place[:, :2]).T
            corner = np.where(low, FLAT_CORNER, _REACH_CORNER)
            outside = (x + y > corner) | (low & ((x > FLAT_X) | (y > FLAT_Y)))
            gaps = np.linalg.norm(places[missing, :thing] - place[:, None], axis=-1)
            missing = missing[outside | (gaps < APART).any(1)]
    return places
