"""Set situations that play alone seldom brings about: each puts cars and ball somewhere and drives them."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from rlbot import flat

from rlgym_bridge.game import CEILING_Z, PAD_POSITIONS, SIDE_WALL_X
from rlgym_bridge.server.game.simulated_match import Match
from tests.support.stepped_match import car_of, put_ball, put_car

Inputs = dict[int, flat.ControllerState]
"""Controls that a scene presses in a tick, by car; the other cars play on."""

Scene = Callable[["Stage"], Iterator[Inputs]]

_WHEELS_DOWN = 17.0  # uu from the middle of an Octane to what it stands on


def press(**values: float | bool) -> flat.ControllerState:
    """Return an input; what is not named is neutral."""
    return flat.ControllerState(**values)


class Stage:
    """A match whose bodies can be put anywhere.

    Attributes:
        random: Decides the scenes.
    """

    def __init__(self, match: Match, seed: int) -> None:
        self.match = match
        self.random = random.Random(f"scenes {seed}")
        self._teams = match.teams

    def opponents(self) -> tuple[int, int]:
        """Return two cars of different teams that are not demolished (but for want of others)."""
        alive = [slot for slot in range(len(self._teams)) if not car_of(self.match, slot).is_demoed]
        first = self.random.choice(alive or [0])
        others = [slot for slot in alive if self._teams[slot] != self._teams[first]]
        others = others or [slot for slot, team in enumerate(self._teams) if team != self._teams[first]]
        return first, self.random.choice(others)

    def place(self) -> tuple[float, float]:
        """Return a spot on the flat floor, uu."""
        return self.random.uniform(-2500, 2500), self.random.uniform(-3000, 3000)

    def car(
        self, slot: int, position: Sequence[float], forward: Sequence[float], up: Sequence[float] = (0, 0, 1),
        speed: float = 0.0, velocity: Sequence[float] | None = None, boost: float = 50.0,
        **fields: Any,
    ) -> None:  # fmt: skip
        """Put a car somewhere, rolling or falling; `speed` is along `forward`, `fields` see `put_car`."""
        now = car_of(self.match, slot)
        if now.is_demoed:
            return  # it comes back by itself
        turn = np.array((forward, _cross(up, forward), up)).T.ravel().tolist()
        moves = velocity if velocity is not None else [speed * one for one in forward]
        fields.setdefault("flip_torque", now.flip_torque)
        put_car(self.match, slot, position, moves, boost=boost, rotation=turn, **fields)

    def ball(self, position: Sequence[float], velocity: Sequence[float] = (0, 0, 0)) -> None:
        """Put the ball somewhere."""
        put_ball(self.match, position, velocity)


def _cross(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def _level(angle: float) -> tuple[float, float, float]:
    return math.cos(angle), math.sin(angle), 0.0


def _behind(x: float, y: float, angle: float, distance: float) -> tuple[float, float, float]:
    return x - distance * math.cos(angle), y - distance * math.sin(angle), _WHEELS_DOWN


def demolition(stage: Stage) -> Iterator[Inputs]:
    """A supersonic car drives into one that stands."""
    one, other = stage.opponents()
    (x, y), angle = stage.place(), stage.random.uniform(-math.pi, math.pi)
    stage.car(other, (x, y, _WHEELS_DOWN), _level(stage.random.uniform(-3, 3)))
    stage.car(one, _behind(x, y, angle, 500), _level(angle), speed=2250, boost=100)
    for _ in range(40):
        yield {one: press(throttle=1, boost=True), other: press()}


def bump(stage: Stage) -> Iterator[Inputs]:
    """A car drives into one that stands or comes along."""
    one, other = stage.opponents()
    (x, y), angle = stage.place(), stage.random.uniform(-math.pi, math.pi)
    stage.car(other, (x, y, _WHEELS_DOWN), _level(stage.random.uniform(-3, 3)), speed=300)
    stage.car(one, _behind(x, y, angle, 300), _level(angle), speed=1500, boost=0)
    for _ in range(60):
        yield {one: press(throttle=1), other: press()}


def goal(stage: Stage) -> Iterator[Inputs]:
    """The ball flies into a goal."""
    side = stage.random.choice((-1, 1))
    stage.ball((stage.random.uniform(-600, 600), 4700 * side, 250), (0, 2500 * side, 100))
    for _ in range(40):
        yield {}


def touch(stage: Stage) -> Iterator[Inputs]:
    """A car drives, jumps and dodges into the ball."""
    one, _ = stage.opponents()
    (x, y), angle = stage.place(), stage.random.uniform(-math.pi, math.pi)
    stage.ball((x, y, stage.random.choice((93.15, 130, 180))))
    stage.car(one, _behind(x, y, angle, 420), _level(angle), speed=stage.random.uniform(800, 1800))
    jump = stage.random.randrange(30)
    for tick in range(60):
        yield {one: press(throttle=1, boost=tick % 7 == 0, jump=jump <= tick < jump + 4)}


def wall_jump(stage: Stage) -> Iterator[Inputs]:
    """A car jumps off a wall and dodges."""
    one, _ = stage.opponents()
    side, angle = stage.random.choice((-1, 1)), stage.random.uniform(-1.2, 1.2)
    height, y = stage.random.uniform(500, 1400), stage.random.uniform(-2500, 2500)
    stage.car(
        one, (side * (SIDE_WALL_X - _WHEELS_DOWN), y, height), (0.0, math.cos(angle), math.sin(angle)),
        up=(-side, 0, 0), speed=1200, boost=30,
    )  # fmt: skip
    jump, held = stage.random.randrange(6, 16), stage.random.choice((1, 4, 12, 30))
    dodge, way = jump + held + stage.random.randrange(2, 30), stage.random.choice((-1, 0, 1))
    roll = stage.random.choice((-1, 0, 1))
    for tick in range(dodge + 60):
        air = {"pitch": way, "roll": roll} if dodge <= tick < dodge + 5 else {}
        pressed = jump <= tick < jump + held or dodge <= tick < dodge + 5
        yield {one: press(throttle=1, jump=pressed, **air)}


def flip_reset(stage: Stage) -> Iterator[Inputs]:
    """A car that has dodged comes up against the ball from below, wheels first, and dodges anew."""
    one, _ = stage.opponents()
    x, y = stage.place()
    height, angle = stage.random.uniform(700, 1200), stage.random.uniform(-math.pi, math.pi)
    stage.ball((x, y, height), (0, 0, -50))
    stage.car(
        one, (x - 10 * math.cos(angle), y - 10 * math.sin(angle), height - 220), _level(angle), up=(0, 0, -1),
        velocity=(0, 0, 600), has_jumped=True, has_flipped=True, flip_time=1.0,
    )  # fmt: skip
    dodge = stage.random.randrange(30, 60)
    for tick in range(110):
        yield {one: press(jump=dodge <= tick < dodge + 4, pitch=-1.0 if tick >= dodge else 0.0)}


def turtle(stage: Stage) -> Iterator[Inputs]:
    """A car lies on its roof and turns itself over."""
    one, _ = stage.opponents()
    (x, y), angle = stage.place(), stage.random.uniform(-math.pi, math.pi)
    tilt = stage.random.uniform(-0.5, 0.5)
    forward = _level(angle)
    side = _cross((0, 0, 1), forward)
    up = tuple(math.sin(tilt) * a - math.cos(tilt) * b for a, b in zip(side, (0, 0, 1), strict=True))
    stage.car(one, (x, y, 45), forward, up=up, speed=stage.random.uniform(0, 200))
    every = stage.random.randrange(12, 40)
    for tick in range(130):
        yield {one: press(throttle=1, jump=tick > 15 and tick % every < 3)}


def ceiling(stage: Stage) -> Iterator[Inputs]:
    """A car drives on the ceiling, falls off, and dodges, for it has not jumped."""
    one, _ = stage.opponents()
    (x, y), angle = stage.place(), stage.random.uniform(-math.pi, math.pi)
    stage.car(one, (x, y, CEILING_Z - _WHEELS_DOWN), _level(angle), up=(0, 0, -1), speed=1700, boost=100)
    let_go, dodge = stage.random.randrange(5, 40), stage.random.randrange(50, 90)
    for tick in range(dodge + 50):
        pressed = dodge <= tick < dodge + 4
        yield {
            one: press(
                throttle=1, boost=tick < let_go, jump=pressed, pitch=-1.0 if pressed else 0.0,
                roll=0.5 if let_go < tick < dodge else 0.0,
            )
        }  # fmt: skip


def pads(stage: Stage) -> Iterator[Inputs]:
    """A car drives over a pad, its tank empty or nearly full, and taps boost."""
    one, _ = stage.opponents()
    x, y = PAD_POSITIONS[stage.random.randrange(len(PAD_POSITIONS))]
    angle = math.atan2(-y, -x) + math.pi / 2
    boost = stage.random.choice((0.0, 0.0, 5.0, 95.0, 100.0))
    stage.car(one, _behind(x, y, angle, 300), _level(angle), speed=1000, boost=boost)
    tap = stage.random.choice((1, 3, 11, 12, 13, 200))
    handbrake = stage.random.random() < 0.5
    for tick in range(90):
        yield {
            one: press(
                throttle=1, boost=tick % (tap + 9) < tap, handbrake=handbrake and tick % 40 < 20,
                steer=1.0 if handbrake and tick > 50 else 0.0,
            )
        }  # fmt: skip


SCENES: tuple[Scene, ...] = (
    bump, touch, demolition, wall_jump, flip_reset, turtle, ceiling, pads, touch, wall_jump, touch, goal,
)  # fmt: skip
"""In this order a demolished car is back when the next scene needs it."""


class Director:
    """Plays one scene after another, with some free play between them."""

    def __init__(self, match: Match, seed: int, scenes: Sequence[Scene] = SCENES, free: int = 60) -> None:
        self._stage = Stage(match, seed)
        self._scenes = scenes
        self._free, self._wait = free, free
        self._playing: Iterator[Inputs] = iter(())
        self._number = 0

    def inputs(self) -> Inputs:
        """Return what is pressed for the next tick; also puts bodies where a scene begins."""
        pressed = next(self._playing, None)
        if pressed is not None:
            return pressed
        if self._wait > 0:
            self._wait -= 1
            return {}
        self._playing = self._scenes[self._number % len(self._scenes)](self._stage)
        self._number += 1
        self._wait = self._stage.random.randrange(self._free + 1)
        return next(self._playing, {})

    def stop(self) -> None:
        """End the present scene: play has been interrupted."""
        self._playing = iter(())
