"""View the field as one team sees it: cars and the ball's path, with the own goal at -y."""

from collections.abc import Sequence
from math import atan2, copysign, hypot, pi, sqrt
from typing import Final, NamedTuple

from rlgym_bridge.game import (
    BACK_WALL_Y,
    BALL_RADIUS,
    BALL_REST_Z,
    BIG_PADS,
    CEILING_Z,
    GOAL_HEIGHT,
    GOAL_WIDTH,
    GRAVITY,
    ORANGE,
    PAD_POSITIONS,
    SIDE_WALL_X,
)
from rlgym_bridge.state import Layout, layout_of

Vector = tuple[float, float, float]  # uu, uu/s or rad/s; or a direction
PATH_STEP: Final = 0.05  # s between two points of the ball's path: at most 300 uu
PATH_POINTS: Final = 61  # 3 s; later the path is a guess
BALL_BOUNCE: Final = 0.6  # speed kept across a surface, RocketSim's restitution
BALL_GRIP: Final = 0.9  # speed kept along the floor in a bounce, fitted by eye
BALL_DRAG: Final = 0.03  # part of its speed that the ball loses in a second
CORNER: Final = 8064.0 - sqrt(2) * BALL_RADIUS  # |x| + |y| of the ball at the corner walls, uu


class SeenCar(NamedTuple):
    """A car as its own team sees the field, with the opponent's goal at +y; uu, uu/s, rad/s."""

    position: Vector
    velocity: Vector
    spin: Vector
    forward: Vector
    right: Vector
    up: Vector
    boost: float  # 0..100
    on_ground: float  # these four 0 or 1
    is_demoed: float
    can_flip: float
    is_flipping: float


class FieldView(NamedTuple):
    """The part of a state that one car decides on, as its team sees the field."""

    me: SeenCar
    teammates: list[SeenCar]
    path: list[Vector]  # PATH_POINTS ball positions, now first
    ball_velocity: Vector
    pads: list[Vector]  # big pads that can be taken
    is_kickoff: bool  # the ball lies still on the centre spot


def dot(a: Vector, b: Vector) -> float:
    """Return the dot product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def clamp(value: float, low: float, high: float) -> float:
    """Return `value`, moved into low..high."""
    return low if value < low else high if value > high else value


def turn_between(a: float, b: float) -> float:
    """Return the angle from direction b to direction a, -pi..pi rad."""
    return (a - b + pi) % (2 * pi) - pi


def seen_by(car: SeenCar, point: Vector) -> tuple[float, float]:
    """Return the distance, uu, and angle, rad, right positive, of a point in the car's plane."""
    x, y, z = car.position
    to = point[0] - x, point[1] - y, point[2] - z
    front, right = dot(to, car.forward), dot(to, car.right)
    return hypot(front, right), atan2(right, front)


def from_above(car: SeenCar, x: float, y: float) -> float:
    """Return the angle from the car's nose to the direction (x, y), both seen from above, rad."""
    forward_x, forward_y, _ = car.forward
    return atan2(y * forward_x - x * forward_y, x * forward_x + y * forward_y)


def ball_path(position: Vector, velocity: Vector) -> list[Vector]:
    """Predict `PATH_POINTS` positions, uu, of an untouched ball at steps of `PATH_STEP`, without spin."""
    (x, y, z), (vx, vy, vz) = position, velocity
    wall_x, wall_y = SIDE_WALL_X - BALL_RADIUS, BACK_WALL_Y - BALL_RADIUS
    drag = 1 - BALL_DRAG * PATH_STEP
    path = [position]
    for _ in range(PATH_POINTS - 1):
        vx, vy, vz = vx * drag, vy * drag, vz * drag - GRAVITY * PATH_STEP
        x, y, z = x + vx * PATH_STEP, y + vy * PATH_STEP, z + vz * PATH_STEP
        if z < BALL_REST_Z:
            z = BALL_REST_Z
            if vz < -120:  # slower ones are rolling
                vx, vy, vz = vx * BALL_GRIP, vy * BALL_GRIP, -BALL_BOUNCE * vz
            else:
                vz = 0.0
        elif z > CEILING_Z - BALL_RADIUS:
            z, vz = CEILING_Z - BALL_RADIUS, -BALL_BOUNCE * abs(vz)
        if x > wall_x or x < -wall_x:
            x, vx = copysign(wall_x, x), copysign(BALL_BOUNCE * vx, -x)
        if (y > wall_y or y < -wall_y) and (abs(x) > GOAL_WIDTH / 2 or z > GOAL_HEIGHT):
            y, vy = copysign(wall_y, y), copysign(BALL_BOUNCE * vy, -y)
        beyond = abs(x) + abs(y) - CORNER
        if beyond > 0 and abs(x) > GOAL_WIDTH / 2:
            side, end = copysign(1, x), copysign(1, y)
            outward = max(0.0, vx * side + vy * end) * (1 + BALL_BOUNCE) / 2
            x, y = x - side * beyond / 2, y - end * beyond / 2
            vx, vy = vx - side * outward, vy - end * outward
        path.append((x, y, z))
    return path


def _offsets(*names: str) -> tuple[int, ...]:
    layout = layout_of(1, 0)
    return tuple(layout.column(name, 0, 0) - layout.car_start for name in names)


_VECTORS: Final = _offsets("position", "linear_velocity", "angular_velocity", "rotation")
_SCALARS: Final = _offsets("boost_amount", "on_ground", "is_demoed", "can_flip", "is_flipping")
(_TEAM,) = _offsets("team")
_BIG_PADS: Final = [(pad, *PAD_POSITIONS[pad]) for pad in sorted(BIG_PADS)]


def _vector(row: list[float], column: int, side: float, step: int = 1) -> Vector:
    return side * row[column], side * row[column + step], row[column + 2 * step]


def _car(row: list[float], start: int, side: float) -> SeenCar:
    """Return the car whose fields begin at column `start`; a `side` of -1 turns the field around."""
    position, velocity, spin, rotation = (start + offset for offset in _VECTORS)
    return SeenCar(
        _vector(row, position, side),
        _vector(row, velocity, side),
        _vector(row, spin, side),
        _vector(row, rotation, side, 3),
        _vector(row, rotation + 1, side, 3),
        _vector(row, rotation + 2, side, 3),
        *(row[start + offset] for offset in _SCALARS),
    )


def view_field(row: list[float], layout: Layout, cars: Sequence[int]) -> list[FieldView]:
    """Return the state of one match, a row of the buffer, as some cars see it; teammates share it."""
    starts = [layout.car_start + place * layout.car_stride for place in range(layout.cars)]
    teams = [row[start + _TEAM] for start in starts]
    seen = {team: _seen_by_team(row, layout, starts, teams, team) for team in {teams[car] for car in cars}}
    views = []
    for car in cars:
        teammates, rest = seen[teams[car]]
        others = [teammate for place, teammate in teammates.items() if place != car]
        views.append(FieldView(teammates[car], others, *rest))
    return views


def _seen_by_team(
    row: list[float], layout: Layout, starts: list[int], teams: list[float], team: float
) -> tuple[dict[int, SeenCar], tuple[list[Vector], Vector, list[Vector], bool]]:
    """Return a team's cars by their places, and the other fields of its `FieldView`."""
    side = -1.0 if team == ORANGE else 1.0
    teammates = {place: _car(row, start, side) for place, start in enumerate(starts) if teams[place] == team}
    ball = _vector(row, layout.column("ball_position"), side)
    velocity = _vector(row, layout.column("ball_linear_velocity"), side)
    timers = layout.column("pad_timer")
    pads = [(side * x, side * y, 17.0) for pad, x, y in _BIG_PADS if row[timers + pad] <= 0]
    is_kickoff = max(abs(ball[0]), abs(ball[1]), abs(velocity[0]), abs(velocity[1])) < 1
    return teammates, (ball_path(ball, velocity), velocity, pads, is_kickoff)
