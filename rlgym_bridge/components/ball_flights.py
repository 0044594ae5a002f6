"""Follow balls that nobody touches, in Python alone: for `ball_ahead` where `rocketsim_batch` is missing.

The arena is planes and quarter circles, and a tick is RocketSim's: damping, gravity, and at most one contact
with restitution and Coulomb friction. In free space and where it rolls, many ticks are taken at once.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from rlgym_bridge.game import (
    BACK_WALL_Y,
    BALL_RADIUS,
    BALL_REST_Z,
    GOAL_BACK_Y,
    GRAVITY,
    SIDE_WALL_X,
    TICK_SECONDS,
)
from rlgym_bridge.physics import CONSTANTS
from rlgym_bridge.user_input.arguments import show_value

# --- RocketSim's numbers [RS]

_KEPT: Final = (1 - CONSTANTS["ball_drag"]) ** TICK_SECONDS  # share of its velocity after a tick
_BOUNCE: Final = 0.6  # restitution
_FRICTION: Final = 0.35
_INERTIA: Final = 0.4  # of a full sphere, times mass and radius squared
_GRIP: Final = 2 / 7  # share of its slip that a sphere loses at most: 1 / (1 + 1 / inertia)
_LIFT: Final = 0.8  # share of what the ball is too deep in a surface by which a tick lifts it
_MOST_SPEED: Final = 6000.0  # uu/s
_MOST_SPIN: Final = 6.0  # rad/s

# --- the standard arena, measured in its collision meshes, uu

_CEILING: Final = 2048.0
_CORNER: Final = 8064.0  # |x| + |y| on a corner's wall
_UPRIGHT: Final = 874.0  # radius of the edge of two walls
_RAMP: Final = 256.0  # radius of the edge of floor and wall
_BACK_RAMP: Final = 160.0  # the same at the back walls
_VAULT: Final = 512.0  # radius of the edge of ceiling and wall
_MOUTH_X: Final = 893.0  # from the middle of a goal to its post
_MOUTH_Z: Final = 640.0
_CONTACT: Final = BALL_REST_Z + 0.005

_TANGENT: Final = _UPRIGHT * math.tan(math.pi / 8)  # from an edge of two walls to where it begins to turn
_SIDE_EDGE: Final = (SIDE_WALL_X - _UPRIGHT, _CORNER - SIDE_WALL_X - _TANGENT)  # axes of the edges: x, y
_BACK_EDGE: Final = (_CORNER - BACK_WALL_Y - _TANGENT, BACK_WALL_Y - _UPRIGHT)
_EIGHTH: Final = math.pi / 4
_OPEN: Final = (SIDE_WALL_X - _VAULT, BACK_WALL_Y - _VAULT, _CORNER - _VAULT * math.sqrt(2))
"""Largest |x|, |y| and |x| + |y| where floor and ceiling alone are near."""

_MOST_TICKS: Final = 1200  # 10 s
_DAMPED: Final = _KEPT ** np.arange(_MOST_TICKS + 1)
_SUMS: Final = _DAMPED.cumsum()
_FALLEN: Final = np.concatenate([[0.0], _SUMS[:-1].cumsum()])
_FREE: Final = np.stack([_DAMPED, _SUMS - 1, np.append(0.0, _SUMS[:-1]), _FALLEN], 1).tolist()
"""After `n` free ticks: what is left of the velocity, its sum over them, and both of a pull of 1 a tick."""

_MOST: Final = np.repeat((1e3, 2e4, 1e5, 1e3), (1, 3, 3, 3))
_NAMES: Final = ("gravity", *("position",) * 3, *("velocity",) * 3, *("spin",) * 3)


class _Ball(NamedTuple):
    """A moving ball: uu, uu/s, rad/s."""

    x: float
    y: float
    z: float
    vx: float
    vy: float
    vz: float
    wx: float
    wy: float
    wz: float


class _Surface(NamedTuple):
    """The nearest surface: how far away, and its normal."""

    distance: float  # uu, below 0 outside
    nx: float
    ny: float
    nz: float


class BallFlights:
    """Forecasts of balls from their numbers, as `rocketsim_batch.BallFlights` makes them to a few uu.

    Of 1,000 balls all over the field half are within 2 uu of RocketSim 3's after 2 s, nine of ten within 40;
    ramps, posts and corners are facets there. Equal balls give equal bits. Raises ValueError
    unless there are `ticks`, whole numbers from 1 to 1200.
    """

    def __init__(self, ticks: Sequence[int]) -> None:
        self._ticks = list(ticks)
        if not self._ticks or not all(tick in range(1, _MOST_TICKS + 1) for tick in self._ticks):
            raise ValueError(f"ticks are {show_value(ticks)}, expected whole numbers from 1 to {_MOST_TICKS}")

    def forecast(self, balls: np.ndarray) -> np.ndarray:
        """Return where untouched balls will be: float32 `(n, len(ticks), 9)`.

        `balls` is float32 `(n, 10)`: times the game's gravity, position (uu), velocity (uu/s), spin (rad/s).
        A ball without any speed stays where it is. Raises ValueError where a number is not finite or absurd.
        """
        _check(balls)
        found = np.empty((len(balls), len(self._ticks), 9), np.float32)
        for row, ball in zip(found, balls.tolist(), strict=True):
            row[:] = self._follow(_Ball(*ball[1:]), -GRAVITY * ball[0]) if any(ball[4:]) else ball[1:]
        return found

    def _follow(self, ball: _Ball, gravity: float) -> list[_Ball]:
        """Return a ball after each of the ticks, `(len(ticks), 9)` numbers; gravity is upwards, uu/s^2."""
        seen, now = {}, 0
        for end in sorted(set(self._ticks)):
            while now < end:
                surface = _nearest_surface(ball.x, ball.y, ball.z)
                ticks = min(_free_ticks(ball, surface, gravity), end - now)
                if ticks > 1:
                    ball = _fly(ball, ticks, gravity)
                elif (ticks := min(_rolling_ticks(ball, gravity), end - now)) > 1:
                    ball = _roll(ball, ticks, gravity)
                else:
                    ball, ticks = _tick(ball, surface, gravity), 1
                now += ticks
            seen[end] = ball
        return [seen[tick] for tick in self._ticks]


def _check(balls: np.ndarray) -> None:
    wrong = np.argwhere(~(np.abs(balls) <= _MOST))
    if len(wrong):
        (ball, number), value = wrong[0].tolist(), balls[tuple(wrong[0])]
        shown, most = "NaN" if np.isnan(value) else f"{value:g}", int(_MOST[number])
        raise ValueError(
            f"{_NAMES[number]} of ball {ball} has {shown}, expected numbers from -{most} to {most}"
        )


def _open_by(x: float, y: float) -> float:
    """Return how far a place is inside the part of the field where floor and ceiling alone are near, uu."""
    x, y = abs(x), abs(y)
    return min(_OPEN[0] - x, _OPEN[1] - y, _OPEN[2] - x - y)


def _free_ticks(ball: _Ball, surface: _Surface, gravity: float) -> int:
    """Return a number of ticks in which the ball meets nothing."""
    room = surface.distance - _CONTACT
    if room <= 0 or gravity >= 0:
        return 1
    open_by, sideways, upward = _open_by(ball.x, ball.y), abs(ball.vx) + abs(ball.vy), ball.vz
    if open_by > 0:
        above, below = _CEILING - ball.z - _CONTACT, ball.z - _CONTACT
        landing = (upward + math.sqrt(upward * upward - 2 * gravity * below)) / -gravity
        seconds = min(
            open_by / max(sideways, 1.0),
            above / max(upward, 1.0),
            0.9 * landing,  # drag brings it down earlier
        )
    else:
        speed = math.sqrt(ball.vx * ball.vx + ball.vy * ball.vy + upward * upward)
        seconds = (math.sqrt(speed * speed - 2 * gravity * room) - speed) / -gravity
    return int(min(seconds / TICK_SECONDS, _MOST_TICKS))


def _fly(ball: _Ball, ticks: int, gravity: float) -> _Ball:
    """Return the ball after some free ticks."""
    left, covered, pulled, fallen = _FREE[ticks]
    x, y, z, vx, vy, vz, *spin = ball
    pull = gravity * TICK_SECONDS
    return _Ball(
        x + vx * covered * TICK_SECONDS,
        y + vy * covered * TICK_SECONDS,
        z + (vz * covered + pull * fallen) * TICK_SECONDS,
        vx * left, vy * left, vz * left + pull * pulled,
        *spin,
    )  # fmt: skip


def _rolling_ticks(ball: _Ball, gravity: float) -> int:
    """Return a number of ticks in which the ball stays on open floor, 0 where it is not on it."""
    if ball.vz or gravity >= 0 or not BALL_RADIUS <= ball.z < _CONTACT:
        return 0
    open_by, speed = _open_by(ball.x, ball.y), abs(ball.vx) + abs(ball.vy)
    return int(min(open_by / (speed + _MOST_SPIN * BALL_RADIUS) / TICK_SECONDS, _MOST_TICKS))


def _roll(ball: _Ball, ticks: int, gravity: float) -> _Ball:
    """Return the ball after it has rolled or slid over the floor for some ticks."""
    x, y, z, vx, vy, vz, wx, wy, wz = ball
    most, turn = -_FRICTION * gravity * TICK_SECONDS, 1 / (_INERTIA * BALL_RADIUS)
    for _ in range(ticks):
        vx, vy = vx * _KEPT, vy * _KEPT
        slip_x, slip_y = vx - wy * BALL_RADIUS, vy + wx * BALL_RADIUS
        slip = math.sqrt(slip_x * slip_x + slip_y * slip_y)
        rub = min(_GRIP, most / slip) if slip > 0 else 0.0
        rub_x, rub_y = rub * slip_x, rub * slip_y
        vx, vy, wx, wy = vx - rub_x, vy - rub_y, wx - rub_y * turn, wy + rub_x * turn
        spin = math.sqrt(wx * wx + wy * wy + wz * wz)
        if spin > _MOST_SPIN:
            share = _MOST_SPIN / spin
            wx, wy, wz = wx * share, wy * share, wz * share
        x, y = x + vx * TICK_SECONDS, y + vy * TICK_SECONDS
    return _Ball(x, y, z, vx, vy, vz, wx, wy, wz)


def _tick(ball: _Ball, surface: _Surface, gravity: float) -> _Ball:
    """Return the ball after a tick, in which it may meet the surface."""
    x, y, z, *velocity, wx, wy, wz = ball
    distance, nx, ny, nz = surface
    slow_x, slow_y, slow_z = (_KEPT * part for part in velocity)
    vx, vy, vz = slow_x, slow_y, slow_z + gravity * TICK_SECONDS
    if distance < _CONTACT:
        out = vx * nx + vy * ny + vz * nz
        push = max(0.0, -_BOUNCE * (slow_x * nx + slow_y * ny + slow_z * nz)) - out
        if push > 0:
            slip_x = vx - out * nx - (wy * nz - wz * ny) * BALL_RADIUS
            slip_y = vy - out * ny - (wz * nx - wx * nz) * BALL_RADIUS
            slip_z = vz - out * nz - (wx * ny - wy * nx) * BALL_RADIUS
            slip = math.sqrt(slip_x * slip_x + slip_y * slip_y + slip_z * slip_z)
            rub = -min(_GRIP, _FRICTION * push / slip) if slip > 0 else 0.0
            rub_x, rub_y, rub_z = rub * slip_x, rub * slip_y, rub * slip_z
            vx, vy, vz = vx + push * nx + rub_x, vy + push * ny + rub_y, vz + push * nz + rub_z
            turn = 1 / (_INERTIA * BALL_RADIUS)
            wx -= (ny * rub_z - nz * rub_y) * turn
            wy -= (nz * rub_x - nx * rub_z) * turn
            wz -= (nx * rub_y - ny * rub_x) * turn
        if distance < BALL_RADIUS:
            lift = _LIFT * (BALL_RADIUS - distance)
            x, y, z = x + lift * nx, y + lift * ny, z + lift * nz
    speed, spin = math.sqrt(vx * vx + vy * vy + vz * vz), math.sqrt(wx * wx + wy * wy + wz * wz)
    if speed > _MOST_SPEED:
        vx, vy, vz = (part * _MOST_SPEED / speed for part in (vx, vy, vz))
    if spin > _MOST_SPIN:
        wx, wy, wz = (part * _MOST_SPIN / spin for part in (wx, wy, wz))
    return _Ball(x + vx * TICK_SECONDS, y + vy * TICK_SECONDS, z + vz * TICK_SECONDS, vx, vy, vz, wx, wy, wz)


def _nearest_surface(x: float, y: float, z: float) -> _Surface:
    """Return the surface that is nearest to a point."""
    right, ahead = 1.0 if x > 0 else -1.0, 1.0 if y > 0 else -1.0
    x, y = abs(x), abs(y)
    if _open_by(x, y) > 0:
        return _Surface(z, 0.0, 0.0, 1.0) if z < _CEILING / 2 else _Surface(_CEILING - z, 0.0, 0.0, -1.0)
    if x < _MOUTH_X and z < _MOUTH_Z and y > BACK_WALL_Y - 2 * BALL_RADIUS:
        distance, nx, ny, nz = _goal_surface(x, y, z)
        return _Surface(distance, right * nx, ahead * ny, nz)
    away, nx, ny, ramp = _wall(x, y)
    nx, ny = right * nx, ahead * ny
    if z < ramp and away < ramp:
        out, down = ramp - away, ramp - z
        far = math.hypot(out, down)
        return _Surface(ramp - far, nx * out / far, ny * out / far, down / far)
    if z > _CEILING - _VAULT and away < _VAULT:
        out, up = _VAULT - away, z - _CEILING + _VAULT
        far = math.hypot(out, up)
        return _Surface(_VAULT - far, nx * out / far, ny * out / far, -up / far)
    if min(z, _CEILING - z) < away:
        return _Surface(z, 0.0, 0.0, 1.0) if z < _CEILING / 2 else _Surface(_CEILING - z, 0.0, 0.0, -1.0)
    return _Surface(away, nx, ny, 0.0)


def _wall(x: float, y: float) -> tuple[float, float, float, float]:
    """Return the nearest wall of a quarter of the field: distance, normal x and y, radius of its ramp."""
    out, up = x - _SIDE_EDGE[0], y - _SIDE_EDGE[1]
    if out > 0 >= up:
        return SIDE_WALL_X - x, -1.0, 0.0, _RAMP
    if 0 < up <= out:
        far = math.hypot(out, up)
        return _UPRIGHT - far, -out / far, -up / far, _RAMP
    out, up = x - _BACK_EDGE[0], y - _BACK_EDGE[1]
    if up > 0 >= out:
        return BACK_WALL_Y - y, 0.0, -1.0, _BACK_RAMP
    if 0 < out <= up:
        far = math.hypot(out, up)
        ramp = _BACK_RAMP + (_RAMP - _BACK_RAMP) * math.atan2(out, up) / _EIGHTH
        return _UPRIGHT - far, -out / far, -up / far, ramp
    corner = (_CORNER - x - y) * math.sqrt(0.5)
    return corner, -math.sqrt(0.5), -math.sqrt(0.5), _RAMP


def _goal_surface(x: float, y: float, z: float) -> _Surface:
    """Return the nearest surface of a goal's mouth, or of the room behind it."""
    aside, above, before = _MOUTH_X - x, _MOUTH_Z - z, BACK_WALL_Y - y
    floor = _Surface(z, 0.0, 0.0, 1.0)
    if before <= 0:
        net = _Surface(GOAL_BACK_Y - y, 0.0, -1.0, 0.0)
        return min(floor, _Surface(aside, -1.0, 0.0, 0.0), _Surface(above, 0.0, 0.0, -1.0), net)
    post, bar = math.hypot(aside, before), math.hypot(above, before)
    return min(
        floor,
        _Surface(post, -aside / post, -before / post, 0.0),
        _Surface(bar, 0.0, -before / bar, -above / bar),
    )
