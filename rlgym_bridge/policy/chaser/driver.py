"""Drive one car of Chaser: view the field as its team does, choose where to hit the ball, play, support.

A team sees cars and the ball's path with the own goal at -y.
"""

from collections.abc import Sequence
from math import asin, atan2, copysign, cos, dist, hypot, pi, sin, sqrt
from random import Random
from typing import Final, NamedTuple

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.game import (
    BACK_WALL_Y,
    BALL_RADIUS,
    BALL_REST_Z,
    BIG_PADS,
    CAR_MAX_SPEED,
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


THROTTLE_SPEED: Final = 1400.0  # uu/s without boost
CONTACT_GAP: Final = 160.0  # uu from car to ball when they touch, about
JUMP_REACH: Final = 260.0  # uu: a ball whose centre is lower is in reach of a jump
JUMP_POINTS: Final = 30  # points of the path in which a jump is planned; later its height is a guess
ROLL_REACH: Final = 160.0  # uu: a ball whose centre is lower is hit without a jump
JUMP_APEX: Final = 231.0  # uu above rest, 0.9 s after a jump held for 0.2 s
MOUTH: Final = 700.0  # uu either side of the goal's centre: within the posts by more than the ball
WRONG_SIDE: Final = 1.6  # rad off the shot direction from which driving around pays


def travel_time(car: SeenCar, point: Vector) -> float:
    """Estimate how long the car needs to touch a ball at `point`, s."""
    gap, angle = seen_by(car, point)
    gap = max(0.0, gap - CONTACT_GAP)
    turning = max(0.0, abs(angle) - 0.2) * 0.45  # s a radian, fitted by eye
    speed = max(0.0, dot(car.velocity, car.forward))
    top, push = (2250.0, 1200.0) if car.boost > 15 else (THROTTLE_SPEED, 800.0)  # uu/s, uu/s^2, on average
    ramp = max(0.0, top - speed) / push
    if gap < ramp * (speed + top) / 2:
        return turning + (sqrt(speed * speed + 2 * push * gap) - speed) / push
    return turning + ramp + (gap - ramp * (speed + top) / 2) / max(top, speed)


def rise_time(height: float) -> float:
    """Return the seconds after a jump at which the car is `height` uu above rest."""
    if height < 75:  # while the jump still pushes
        return 0.02 + 0.2 * max(height, 0.0) / 75
    return 0.9 - sqrt(max(0.0, JUMP_APEX - height) / (GRAVITY / 2))


def intercept(view: FieldView) -> int:
    """Return the index of the first point of the ball's path that the car reaches in time."""
    last = len(view.path) - 1
    for index in range(0, len(view.path), 2):
        point = view.path[index]
        if point[2] <= (JUMP_REACH if index < JUMP_POINTS else ROLL_REACH):
            if travel_time(view.me, point) <= (index + 1) * PATH_STEP:
                return index
            last = index
    return last


def shot_direction(car: SeenCar, ball: Vector, aim: float) -> float:
    """Return the direction in which to send the ball, rad; straight on where that is good enough.

    It leads between the posts, or wider of them near the own goal, where every way out is good. `aim`
    shifts the posts, uu.
    """
    x, y, _ = ball
    straight = atan2(y - car.position[1], x - car.position[0])
    wider = clamp((1000 - y) / 4000, 0.0, 0.8)
    left = atan2(BACK_WALL_Y - y, aim - MOUTH - x) + wider
    right = atan2(BACK_WALL_Y - y, aim + MOUTH - x) - wider
    if right <= straight <= left:
        return straight
    return min(left, right, key=lambda post: abs(turn_between(straight, post)))


def around(car: SeenCar, ball: Vector) -> Vector:
    """Return a point past the ball, uu, for a car on the wrong side of it."""
    x, y, _ = ball
    side = copysign(1, car.position[0] - x)
    if abs(x) > 3300:  # between ball and side wall it would push the ball to its own goal
        side = -copysign(1, x)
    if y < -3000:  # the ball is before the own goal: into the goal, or to its near post
        return (clamp(x + side * 500, -850, 850) if abs(x) < 900 else 700 * side), -5000.0, 0.0
    return clamp(x + side * 450, -3900, 3900), max(y - (900 if y < 1000 else 500), -5000.0), 0.0


DODGES: Final = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
"""(pitch, roll) of eight dodges: forward, then in steps of 45 degrees to the right."""

_ROWS: Final = {tuple(row): index for index, row in enumerate(LookupTableAction.make_lookup_table().tolist())}


def ground(throttle: int, steer: int, boost: bool = False, handbrake: bool = False) -> int:
    """Return the action of a driving car."""
    return _ROWS[1 if boost else throttle, steer, 0, steer, 0, 0, int(boost), int(handbrake)]


def air(pitch: int, yaw: int, roll: int) -> int:
    """Return the action of a flying car."""
    return _ROWS[0, yaw, pitch, yaw, roll, 0, 0, 0] if pitch or roll else ground(1, yaw)


def jump(pitch: int = 0, roll: int = 0) -> int:
    """Return the action that jumps, or dodges where a direction is given."""
    return _ROWS[0, 0, pitch, 0, roll, 1, 0, int((pitch, roll) != (0, 0))]


def sign(value: float, dead_zone: float) -> int:
    """Return the sign of a value, 0 inside the dead zone."""
    return 0 if abs(value) < dead_zone else 1 if value > 0 else -1


def level_out(me: SeenCar) -> int:
    """Return the action that turns a car in the air to land on its wheels, nose along its velocity."""
    if me.position[2] < 60 and me.up[2] < -0.3 and hypot(*me.velocity) < 200:
        return jump()  # lies on its roof: the game turns it over
    moves = hypot(*me.velocity[:2]) > 300
    roll_error = atan2(me.right[2], me.up[2])
    yaw_error = from_above(me, me.velocity[0], me.velocity[1]) if moves and abs(roll_error) < 0.7 else 0.0

    def stick(error: float, rate: float) -> int:
        return sign(error - 0.25 * rate, 0.15)  # s, rad: damped, and quiet when nearly there

    pitch = stick(-asin(clamp(me.forward[2], -1, 1)), -dot(me.spin, me.right))
    yaw = stick(yaw_error, dot(me.spin, me.up)) if abs(roll_error) < 0.7 else 0
    return air(pitch, yaw, stick(roll_error, -dot(me.spin, me.forward)))


STEER_LEAD: Final = 0.07  # s: the turn continues for one decision
STEER_DEAD_ZONE: Final = 0.06  # rad: half of what one decision of full steering turns
FLOOR_X: Final = 3980.0  # uu from the middle to where a car still has room before the side wall
FLOOR_Y: Final = 5020.0  # uu, the same before the back wall
PAD_BEFORE_KICKOFF: Final = -2816.0  # uu, y of the small pad between the kickoff's spots and the ball
CHARGE_SPEED: Final = 2050.0  # uu/s; at 2,120 most balls of a straight kickoff hit the crossbar, at 2,240 all
DODGE, DRIVE = "dodge", "drive"  # ways to hit the ball of a kickoff: dodge into it, or drive through it


class Driver:
    """Decides for one car, with what it remembers between decisions and its own source of variations."""

    def __init__(self, random: Random, kickoff: str) -> None:
        self._random, self._kickoff = random, kickoff
        self._start()
        self._at_kickoff = False

    def _start(self) -> None:
        """Draw the variations of a kickoff."""
        self._at_kickoff = True
        self._hold = 0  # decisions left of a jump, the last with the button released
        self._dodge_for_speed = False
        self._wait = self._random.randrange(3)  # decisions until it reacts to GO
        self._skew = self._random.uniform(-35, 35)  # uu beside the ball at the kickoff
        self._aim = self._random.uniform(-100, 100)  # uu beside the goal's centre
        if self._kickoff == DRIVE:  # at once, and through the middle of the ball
            self._wait, self._skew = 0, 0.4 * self._skew

    def decide(self, view: FieldView) -> int:
        """Return the action, 0..89."""
        if view.is_kickoff and not self._at_kickoff:
            self._start()
        self._at_kickoff = view.is_kickoff
        if view.me.is_demoed:
            self._hold = 0
            return ground(0, 0)
        if self._hold > 0:
            self._hold -= 1
            return jump() if self._hold > 0 else ground(1, 0)
        if not view.me.on_ground:
            return self._fly(view)
        self._dodge_for_speed = False
        ahead = self._teammates_ahead(view)
        if ahead > 0:
            return self._support(view, ahead)
        return self._kick_off(view) if view.is_kickoff else self._play(view)

    def _jump(self, decisions: int) -> int:
        self._hold = decisions
        return jump()

    def _teammates_ahead(self, view: FieldView) -> int:
        """Count the teammates that are in a better position to go for the ball."""
        ball = view.path[0]

        def cost(car: SeenCar) -> float:
            beyond = max(0.0, car.position[1] - ball[1])  # must come around first
            return dist(car.position, ball) + 1.5 * beyond + 5000 * car.is_demoed

        return sum(cost(teammate) < cost(view.me) for teammate in view.teammates)

    def _kick_off(self, view: FieldView) -> int:
        if self._wait > 0:
            self._wait -= 1
            return ground(0, 0)
        speed = dot(view.me.velocity, view.me.forward)
        near = speed > 700 and hypot(*view.me.position[:2]) < 200 + 0.3 * speed
        if near and self._kickoff == DODGE:
            return self._jump(1)
        x, y, _ = view.me.position
        if self._kickoff == DRIVE:
            if abs(x) < 600 and y < PAD_BEFORE_KICKOFF - 80:  # its boost lies on the way
                return self._drive(view.me, (clamp(x, -110.0, 110.0), PAD_BEFORE_KICKOFF, 0.0), CAR_MAX_SPEED)
            return self._drive(view.me, (self._skew, -100.0, BALL_REST_Z), CHARGE_SPEED)
        return self._drive(view.me, (self._skew, -100.0, BALL_REST_Z), CAR_MAX_SPEED)

    def _support(self, view: FieldView, ahead: int) -> int:
        """Keep between the ball and the own goal, farther back with more teammates ahead."""
        me, ball = view.me, view.path[PATH_POINTS // 3]
        pad = self._near_pad(view) if me.boost < 50 and not view.is_kickoff else None
        if pad:
            return self._drive(me, pad, CAR_MAX_SPEED, may_boost=False)
        back = 0.35 if ahead == 1 else 0.65  # part of the way to the own goal
        x = ball[0] * (1 - back) + copysign(500, me.position[0] - ball[0])
        y = ball[1] * (1 - back) - 5000 * back - 300
        spot = clamp(x, -3500, 3500), clamp(y, -4900, 4000), 0.0
        gap = dist(me.position[:2], spot[:2])
        if gap < 400:  # there: face the ball
            return self._drive(me, ball, 300, may_boost=False)
        may_boost = gap > 2500 and me.boost > 40
        return self._drive(me, spot, clamp(1.2 * gap, 400, CAR_MAX_SPEED), may_boost)

    def _near_pad(self, view: FieldView) -> Vector | None:
        """Return the big pad that is easiest to fetch, uu; None when all are far."""
        best, least = None, 2600.0  # uu
        for pad in view.pads:
            gap, angle = seen_by(view.me, pad)
            cost = gap + 400 * abs(angle) + 0.3 * max(0.0, pad[1] - view.me.position[1])
            if cost < least:
                best, least = pad, cost
        return best

    def _play(self, view: FieldView) -> int:
        """Go for the ball: drive around it, get behind it, or hit it."""
        me, index = view.me, intercept(view)
        hit = x, y, z = view.path[index]
        time = index * PATH_STEP
        direction = shot_direction(me, hit, self._aim)
        gap = hypot(x - me.position[0], y - me.position[1])
        off = abs(turn_between(atan2(y - me.position[1], x - me.position[0]), direction))
        if me.boost < 20 and y > -2000 and dist(me.position, view.path[0]) > 2500:
            pad = self._near_pad(view)
            if pad:
                return self._drive(me, pad, CAR_MAX_SPEED)
        if me.position[1] > y + 50 or off > WRONG_SIDE:
            return self._drive(me, around(me, hit), CAR_MAX_SPEED)
        jump_length = self._jump_at(view, index, off)
        if jump_length:
            return self._jump(jump_length)
        behind = clamp(0.4 * gap, 60, 1400) if off > 0.03 else 60.0
        spot_x = clamp(x - cos(direction) * behind, -FLOOR_X, FLOOR_X)
        spot_y = clamp(y - sin(direction) * behind, -FLOOR_Y, FLOOR_Y)
        spot = spot_x, spot_y, 0.0
        speed = CAR_MAX_SPEED
        if z > 150 and time > travel_time(me, hit) - 0.2:  # it is still falling: arrive in time, not early
            speed = clamp(dist(me.position[:2], spot[:2]) / max(time, PATH_STEP), 600, speed)
        return self._drive(me, spot, speed, may_dodge=gap > 2000 and off < 0.5)

    @staticmethod
    def _jump_at(view: FieldView, index: int, off: float) -> int:
        """Return for how many decisions to jump at the ball now, 0 for not yet."""
        me, ball, hit = view.me, view.path[0], view.path[index]
        gap = max(1.0, dist(ball, me.position))
        to_ball = ball[0] - me.position[0], ball[1] - me.position[1], ball[2] - me.position[2]
        closing = (dot(me.velocity, to_ball) - dot(view.ball_velocity, to_ball)) / gap  # uu/s
        if closing < 200 or me.up[2] < 0.9:
            return 0
        if hit[2] > 150:
            in_time = index * PATH_STEP <= rise_time(hit[2] - 87) + 0.1
            reachable = in_time and gap < 1200 and abs(seen_by(me, hit)[1]) < 0.3 and off < 0.6
            return 0 if not reachable else 3 if hit[2] > 190 else 2
        facing = off < 0.4 and abs(seen_by(me, ball)[1]) < 0.35
        return int(facing and (gap - CONTACT_GAP) / closing < 0.25)

    def _drive(
        self, me: SeenCar, spot: Vector, speed: float, may_boost: bool = True, may_dodge: bool = False
    ) -> int:
        """Drive to a spot at a speed in uu/s."""
        x, y, _ = spot
        if abs(me.position[1]) > BACK_WALL_Y - 20 and abs(y) < BACK_WALL_Y:  # leave a goal between its posts
            x = clamp(x, -MOUTH, MOUTH)
        gap, angle = seen_by(me, (x, y, 17.0))
        now = dot(me.velocity, me.forward)
        steer = sign(angle - STEER_LEAD * dot(me.spin, me.up), STEER_DEAD_ZONE)
        slide = abs(angle) > 1.6 and now > 700 and me.up[2] > 0.9
        # Curvature of full steering: two straight lines through the game's table.
        curvature = 0.0069 - 5.3e-6 * now if now < 850 else max(0.00088, 0.0035 - 1.4e-6 * now)
        inside = dist((gap * cos(angle), gap * abs(sin(angle))), (0.0, 1 / curvature)) * curvature < 0.95
        if inside and abs(angle) > 0.4 and not slide:  # it would circle around the spot
            speed = min(speed, max(400.0, 0.6 * now))
        if now > speed + 60:
            return ground(-1 if now > speed + 300 else 0, steer, False, slide)
        if now > speed - 30:
            return ground(1, steer, False, slide)
        flat_out = speed > THROTTLE_SPEED or speed - now > 700
        if may_boost and me.boost > 0 and flat_out and now < 2280 and abs(angle) < 0.35 and me.up[2] > 0.6:
            return ground(1, steer, True, slide)
        if may_dodge and gap > 1800 and 1000 < now < 1900 and abs(angle) < 0.15 and me.up[2] > 0.95:
            self._dodge_for_speed = True
            return self._jump(1)
        return ground(1, steer, False, slide)

    def _fly(self, view: FieldView) -> int:
        """Dodge into the ball if it is near, else turn to land on the wheels."""
        me, lead = view.me, 3 * PATH_STEP
        if me.is_flipping:
            return air(0, 0, 0)
        if me.can_flip and self._dodge_for_speed:
            self._dodge_for_speed = False
            return jump(*DODGES[0])
        if me.can_flip:
            soon = [p + v * lead for p, v in zip(me.position, me.velocity, strict=True)]
            x, y = view.path[1][0] - me.position[0], view.path[1][1] - me.position[1]
            if dist(view.path[3], soon) < 230 and y > -60:  # not toward the own goal
                return jump(*DODGES[round(from_above(me, x, y) / (pi / 4)) % 8])
        return level_out(me)
