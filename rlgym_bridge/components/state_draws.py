"""Draw the places, directions and rotations that beginnings of episodes are made of."""

from typing import Final

import numpy as np

TURN: Final = np.array([-1.0, -1.0, 1.0])
"""Factors of x, y and z that turn the field by 180 degrees about z."""

FLAT_X, FLAT_Y, FLAT_CORNER = 3700.0, 4700.0, 7400.0
"""Limits of |x|, |y| and |x| + |y| of cars on their wheels, uu: 100 further in than others."""

APART: Final = 250.0  # uu between centres: two cars reach 190, a car and the ball 187

_REACH_X, _REACH_Y, _REACH_CORNER = 3800.0, 4800.0, 7600.0
"""Limits of |x|, |y| and |x| + |y| of random centres, uu; ramps begin 40 further out, walls stand 296."""
_AIR_LOWEST, _AIR_HIGHEST = 150.0, 1800.0  # uu; a car's corners reach 95 uu from its centre


def make_rotations(pitch: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Return the matrices `(..., 3, 3)` of cars without roll; angles in rad, nose up is positive."""
    sp, cp, sy, cy, zero = np.sin(pitch), np.cos(pitch), np.sin(yaw), np.cos(yaw), np.zeros_like(yaw)
    rows = ((cp * cy, -sy, -sp * cy), (cp * sy, cy, -sp * sy), (sp, zero, cp))
    return np.stack([np.stack(row, -1) for row in rows], -2)


def draw_rotations(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return rotations, evenly spread over all: `(*shape, 3, 3)`."""
    forward, other = draw_directions(shape, rng), draw_directions(shape, rng)
    right = np.cross(other, forward)
    right /= np.linalg.norm(right, axis=-1, keepdims=True)
    return np.stack((forward, right, np.cross(forward, right)), -1)


def draw_directions(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return unit vectors, evenly spread over all directions: `(*shape, 3)`."""
    vectors = rng.normal(size=(*shape, 3))
    directions: np.ndarray = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return directions


def level_directions(directions: np.ndarray) -> np.ndarray:
    """Return unit vectors `(..., 3)` with the same bearing and no z."""
    flat = directions * (1, 1, 0)
    level: np.ndarray = flat / np.linalg.norm(flat, axis=-1, keepdims=True)
    return level


def draw_places(grounded: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return random centres that are clear of the field's walls and of each other.

    Args:
        grounded: `(N, things)` bool: on the ground, its height 0 here.
        rng: Where they are drawn from.

    Returns:
        `(N, things, 3)` uu.
    """
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
