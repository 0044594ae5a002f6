"""Forecast the ball: where it will be if nobody touches it.

The answer follows from gravity, place, velocity and spin alone, to the bit: training and a match get the
same. RocketSim 3 gives it, or `ball_flights` where its module or the collision meshes are not installed.
"""

import logging
import threading
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.ball_flights import BallFlights
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.state import CAR_COLUMNS, Layout, MatchState
from rlgym_bridge.user_input.arguments import show_value
from rlgym_bridge.user_input.extras import load_native, meshes_folder

_LOG = logging.getLogger("rlgym_bridge.components")
MOST_SECONDS: Final = 10.0
SECONDS: Final = (0.25, 0.5, 1.0, 2.0)  # times ahead when none are named, s

_TICK: Final = 1 / TICKS_PER_SECOND
_FORECAST: Final = "relative/ball_in_"  # begins names of forecast numbers
_MOVING: Final = 6  # numbers of a forecast that are a place and a velocity; the spin comes after them
_own = (
    threading.local()
)  # forecasts of each thread, by their ticks: they remember the flights of earlier calls


def check_seconds(name: str, seconds: Any) -> tuple[float, ...]:
    """Return rising times, a tick to 10 s; raises ValueError for others."""
    given = list(seconds) if isinstance(seconds, list | tuple) else []
    numbers = [one for one in given if isinstance(one, int | float) and not isinstance(one, bool)]
    ordered = sorted({one for one in numbers if 0.5 / TICKS_PER_SECOND < one <= MOST_SECONDS})
    if not given or given != ordered:
        raise ValueError(
            f"{name} is {show_value(seconds)}, expected rising seconds from {_TICK:.4f} (a tick) to "
            f"{MOST_SECONDS:g}, such as {[*SECONDS]}"
        )
    return tuple(map(float, numbers))


def forecast_ball(state: MatchState, seconds: Sequence[float] = SECONDS) -> np.ndarray:
    """Return where the ball of each match will be, and how fast, while nobody touches it.

    It is the ball of Soccar under the game's own rules, with the gravity of the state. A ball without any
    speed stays where it is. Equal balls give equal bits, whichever match, process or world they come from.

    Args:
        state: N matches.
        seconds: Times ahead, rounded to ticks.

    Returns:
        `(N, times, 6)` float32: position x, y, z (uu), then velocity (uu/s), in the field's frame.

    Raises:
        ValueError: A time is out of range, or a ball has numbers that are not finite or absurd.
        ImportError: The installed `rocketsim_batch` has another interface.
    """
    return forecast_times(state, check_seconds("seconds", seconds))


def forecast_times(state: MatchState, seconds: tuple[float, ...]) -> np.ndarray:
    """Return what `forecast_ball` does, `(N, times, 6)`, for times that `check_seconds` has returned."""
    balls = state.buffer.take(_columns(state.layout), 1)
    return np.asarray(_flights(seconds).forecast(balls)[:, :, :_MOVING])


@lru_cache
def _columns(layout: Layout) -> np.ndarray:
    """Return the columns of gravity and of the ball's motion, `(10,)` int."""
    names = ("ball_position", "ball_linear_velocity", "ball_angular_velocity")
    vectors = [layout.column(name, axis) for name in names for axis in range(3)]
    return np.array([layout.column("gravity"), *vectors], np.intp)


def _flights(seconds: tuple[float, ...]) -> Any:
    made: dict[tuple[float, ...], Any] = _own.__dict__.setdefault("made", {})
    if seconds not in made:
        made[seconds] = _make_flights([max(1, round(one * TICKS_PER_SECOND)) for one in seconds])
    return made[seconds]


def _make_flights(ticks: list[int]) -> Any:
    if find_spec("rocketsim_batch") is not None:
        native = load_native()
        try:
            native.load_meshes(meshes_folder())
            return native.BallFlights(ticks)
        except FileNotFoundError as error:
            _LOG.warning("the ball to come is less exact than in training: %s", error)
    return BallFlights(ticks)


@lru_cache
def columns_of_cars(layout: Layout, cars: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of cars' places and velocities, `(cars, 6)`, and of rotations, `(cars, 3, 3)`."""
    place, speed, rotation = (CAR_COLUMNS[name] for name in ("position", "linear_velocity", "rotation"))
    begins = np.array([layout.car_start + car * layout.car_stride for car in cars], np.intp)[:, None]
    moving = np.concatenate([begins + place + np.arange(3), begins + speed + np.arange(3)], 1)
    return moving, (begins + rotation + np.arange(9)).reshape(-1, 3, 3)


def see_ball_ahead(
    state: MatchState, cars: tuple[int, ...], seconds: tuple[float, ...], pos_coef: float,
    lin_vel_coef: float,
) -> np.ndarray:  # fmt: skip
    """Return the ball to come as some cars see it, relative to them, in their own frame, scaled.

    For each of `seconds` position (forward, right, up), then velocity: `(N, cars, times * 6)` float32.
    """
    moving, rotations = columns_of_cars(state.layout, cars)
    vectors = forecast_times(state, seconds)[:, None] - state.buffer.take(moving, 1)[:, :, None]
    vectors *= np.repeat(np.array((pos_coef, lin_vel_coef), np.float32), 3)
    vectors = vectors.reshape(*vectors.shape[:2], -1, 3)
    seen: np.ndarray = np.einsum("mcvi,mcij->mcvj", vectors, state.buffer.take(rotations, 1))
    return seen.reshape(*seen.shape[:2], -1)


def ball_ahead_names(seconds: Sequence[float]) -> list[str]:
    """Return the names of what `see_ball_ahead` gives a car."""
    return [
        f"{_FORECAST}{one:g}_s/{name}/{axis}"
        for one in seconds
        for name in ("position", "linear_velocity")
        for axis in ("forward", "right", "up")
    ]


def is_forecast(name: str) -> bool:
    """Tell whether a number of an observation is of the ball to come, by its name."""
    return name.startswith(_FORECAST)
