"""Choose where and when to hit the ball."""

from math import atan2, copysign, sqrt
from typing import Final

from rlgym_bridge.chaser.perception import (
    PATH_STEP,
    FieldView,
    SeenCar,
    Vector,
    clamp,
    dot,
    seen_by,
    turn_between,
)
from rlgym_bridge.game import BACK_WALL_Y, GRAVITY

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
