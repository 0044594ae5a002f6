"""Name what happens in a window of a capture: on the ground, through a jump, dodge, bump, bounce, hit."""

from dataclasses import dataclass

import numpy as np

from rlgym_bridge.compare.tracks import ROTATION, VELOCITY, Track
from rlgym_bridge.game import CONTROL_NAMES, GRAVITY, TICK_SECONDS

JUMP, HANDBRAKE = CONTROL_NAMES.index("jump"), CONTROL_NAMES.index("handbrake")
_KINK = 20.0  # uu/s in a tick beyond gravity
_NEAR_BALL, _NEAR_CAR = 250.0, 200.0  # uu between middles
_LOW = 100.0  # uu: a car whose body may touch the floor
_DODGE_TICKS, _SLIDE_TICKS = 160, 60  # what is hidden after a dodge (spin, pitch lock) and a powerslide
_STANDS = 1.0  # uu/s


@dataclass
class Events:
    """Ticks at which things happen to the bodies of a capture, cars first, then the ball.

    Attributes:
        jumps, dodges: Presses of jump on the ground and in the air, for each car.
        slides: Ticks with handbrake, for each car.
        hits: Ticks in which a car and the ball change each other.
        bumps: Ticks in which two cars change each other.
        bounces: Ticks in which the ball bounces.
        body: Ticks in which a car's body touches the floor, for each car.
        on_ground, stands: `(rows, cars)` bool.
    """

    jumps: list[np.ndarray]
    dodges: list[np.ndarray]
    slides: list[np.ndarray]
    hits: np.ndarray
    bumps: np.ndarray
    bounces: np.ndarray
    body: list[np.ndarray]
    on_ground: np.ndarray
    stands: np.ndarray


def find_events(track: Track, controls: np.ndarray) -> Events:
    """Find what happens in a capture, by the track of all bodies and controls `(rows, cars, 8)`."""
    values, ticks, cars = track.values, track.times, len(track.bodies) - 1
    change = np.diff(values[:, :, VELOCITY], axis=0)
    fall = GRAVITY * TICK_SECONDS * np.diff(ticks)[:, None]
    airborne = values[:-1, :, 2] > 30
    change[:, :, 2] += np.where(airborne, fall, 0.0)
    kink = np.concatenate([np.zeros((1, cars + 1), bool), np.linalg.norm(change, axis=2) > _KINK])
    up = values[:, :cars, ROTATION][:, :, 8]
    on_ground = (values[:, :cars, 2] < 20) & (up > 0.98)
    places = values[:, :, :3]
    near_ball = np.linalg.norm(places[:, :cars] - places[:, cars:], axis=2) < _NEAR_BALL
    hits = kink[:, cars] & near_ball.any(1)
    bumps = np.zeros(len(ticks), bool)
    if cars == 2:
        bumps = kink[:, 0] & kink[:, 1] & (np.linalg.norm(places[:, 0] - places[:, 1], axis=1) < _NEAR_CAR)
    presses = np.diff(controls[:, :, JUMP] > 0, axis=0, prepend=False) & (controls[:, :, JUMP] > 0)
    jumps, dodges, slides, body = [], [], [], []
    for car in range(cars):
        jumps.append(ticks[presses[:, car] & on_ground[:, car]])
        flying = presses[:, car] & ~on_ground[:, car]
        dodges.append(ticks[flying & np.roll(kink[:, car], -1)])
        slides.append(ticks[controls[:, car, HANDBRAKE] > 0])
        low = (values[:, car, 2] < _LOW) & (up[:, car] < 0.5) & kink[:, car] & ~bumps
        body.append(ticks[low])
    stands = np.linalg.norm(values[:, :cars, VELOCITY][:, :, :2], axis=2) < _STANDS
    bounces = ticks[kink[:, cars] & ~near_ball.any(1)]
    return Events(jumps, dodges, slides, ticks[hits], ticks[bumps], bounces, body, on_ground, stands)


def car_situation(events: Events, track: Track, car: int, start: int, end: int) -> str:
    """Name a window of a car from one moment to another; "" where it is none that counts."""
    first, last = track.times[start], track.times[end]

    def has(ticks: np.ndarray, memory: float = 0.0) -> bool:
        return bool(((ticks > first - memory) & (ticks <= last)).any())

    if has(events.bumps, 2):
        return "car through a bump"
    if has(events.hits, 2):
        return "car through a hit"
    if has(events.body[car], 1):
        return "car whose body touches the floor"
    if has(events.dodges[car], _DODGE_TICKS):
        return "car through a dodge"
    if has(events.slides[car], _SLIDE_TICKS):
        return "car in a powerslide"
    ground = events.on_ground[start : end + 1, car]
    if has(events.jumps[car]) and ground[0]:
        return "car through a jump"
    if not ground.all():
        return "car in the air, or landing"
    stands = events.stands[start : end + 1, car]
    if stands.all():
        return "car at rest"
    return "car starting or stopping" if stands.any() else "car on the ground"


def ball_situation(events: Events, track: Track, start: int, end: int) -> str:
    """Name a window of the ball; "" where it rests."""
    first, last = track.times[start], track.times[end]
    values = track.values[start : end + 1, -1]
    if ((events.hits > first) & (events.hits <= last)).any():
        return "ball through a hit"
    if np.linalg.norm(values[0, VELOCITY]) < _STANDS:
        return ""
    if ((events.bounces > first) & (events.bounces <= last)).any():
        return "ball through a bounce"
    return "ball in flight"
