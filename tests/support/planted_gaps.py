"""Recordings of RocketSim itself, and the ways in which one can differ from it, planted one by one."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import RocketSim as rsim

from rlgym_bridge.chaser import Chaser
from rlgym_bridge.derived_fields import derive
from rlgym_bridge.game import CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from rlgym_bridge.sim.arena import make_arena, place_cars
from rlgym_bridge.sim.arena_reader import ArenaReader, control_of
from rlgym_bridge.state import MatchState
from tests.support.chaser_matches import TABLE

SCENE_SECONDS = 8  # then ball and cars are put elsewhere
_SKIP = 8  # ticks between decisions
_SEEN = (
    "position", "rotation", "linear_velocity", "angular_velocity", "boost_amount", "controls", "team",
)  # fmt: skip


class Human:
    """Drives about: turns with and without handbrake, jumps, dodges, flies; inputs change at any tick."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self._plan: list[np.ndarray] = []

    def row(self) -> np.ndarray:
        """Return the controls of the next tick, `(8,)`."""
        if not self._plan:
            self._plan = self._think()
        return self._plan.pop()

    def _think(self) -> list[np.ndarray]:
        random = self._random
        kind = random.choice(["drive", "drive", "slide", "dodge", "fly", "coast"])
        row = np.zeros(8)
        length = int(random.integers(12, 60))
        stick = random.uniform(-1, 1, 3)
        if kind in ("drive", "slide", "coast"):
            row[0] = 0.0 if kind == "coast" else random.choice([1.0, 1.0, 0.7, -1.0])
            row[1] = row[3] = stick[0] if kind == "drive" else np.sign(stick[0])
            row[6] = kind == "drive" and random.random() < 0.5
            row[7] = kind == "slide"
            return [row] * length
        press, wait, fly = row.copy(), row.copy(), row.copy()
        press[5] = 1
        if kind == "dodge":
            again = press.copy()
            again[2:4] = np.sign(stick[:2])
            order = [press] * int(random.integers(3, 20)) + [wait] * int(random.integers(3, 30)) + [again] * 5
            return (order + [row] * 60)[::-1]
        fly[2:5], fly[6] = stick, 1
        order = [press] * int(random.integers(8, 24)) + [fly] * length
        for _ in range(3):
            turn = row.copy()
            turn[2:5], turn[6], turn[0] = random.uniform(-1, 1, 3), random.random() < 0.6, 1
            order += [turn] * int(random.integers(10, 40))
        return order[::-1]


@cache
def play(
    seed: int = 0, seconds: float = 40.0, mutate: Callable[[rsim.MutatorConfig], None] | None = None
) -> Recording:
    """Return what a match of a human against Chaser was, every tick of it and with all that is hidden.

    The recording does not say which constants were changed. Do not write to it: it is kept.
    """
    random = np.random.default_rng(seed)
    arena, cars = make_arena([0, 1])
    if mutate is not None:
        scatter(arena, cars, np.random.default_rng(0))  # gravity does not reach a ball at rest
        mutators = arena.get_mutator_config()
        mutate(mutators)
        arena.set_mutator_config(mutators)
    ticks = int(seconds * TICKS_PER_SECOND)
    state, now = MatchState(1, 1, ticks), MatchState(1, 1)
    segment = np.zeros(ticks, np.int32)
    human, chaser = Human(random), Chaser(seed)
    rows = np.zeros((2, 8))
    number = -1
    for tick in range(ticks):
        if tick % (SCENE_SECONDS * TICKS_PER_SECOND) == 0:
            cars = place_cars(arena, [0, 1])
            scatter(arena, cars, random)
            chaser.reset([1], seed)
            reader = ArenaReader(arena, cars)
            number += 1
        elif tick % _SKIP == 0:
            reader.read_into(now)
            derive(now)
            rows[1] = TABLE[chaser.act(None, now)[0, 0]]
        rows[0] = human.row()
        for car, row in zip(cars, rows, strict=True):
            car.set_controls(control_of(row.tolist()))
        arena.step(1)
        reader.read_into(state, tick)
        segment[tick] = number
    derive(state)
    state.gravity[:] = 1.0
    there = np.ones(ticks, bool)
    tick = np.arange(ticks, dtype=np.int64) + 1000
    return Recording(
        f"match {seed}", state, tick, tick / TICKS_PER_SECOND, segment, there, there[:, None].repeat(2, 1)
    )


def scatter(arena: rsim.Arena, cars: list[rsim.Car], random: np.random.Generator) -> None:
    """Put the ball somewhere into the air, and cars, blue's first, on their sides of the field."""
    ball = rsim.BallState()
    ball.pos = rsim.Vec(*random.uniform((-2500, -3500, 300), (2500, 3500, 1500)).tolist())
    ball.vel = rsim.Vec(*random.uniform(-1800, 1800, 3).tolist())
    ball.ang_vel = rsim.Vec(*random.uniform(-3, 3, 3).tolist())
    arena.ball.set_state(ball)
    for number, car in enumerate(cars):
        side = -1 if 2 * number < len(cars) else 1
        one = rsim.CarState()
        one.pos = rsim.Vec(random.uniform(-2000, 2000), side * random.uniform(1500, 4000), 17)
        one.rot_mat = rsim.Angle(random.uniform(-3, 3), 0, 0).as_rot_mat()
        one.boost = 100.0
        car.set_state(one)
    for pad in arena.get_boost_pads():
        pad.set_state(rsim.BoostPadState())


def rows_of(recording: Recording, rows: np.ndarray) -> Recording:
    """Return a recording of some of the rows."""
    state = recording.state
    layout = state.layout
    return replace(
        recording,
        state=MatchState(layout.blue, layout.orange, len(rows), state.buffer[rows]),
        tick=recording.tick[rows],
        seconds=recording.seconds[rows],
        segment=recording.segment[rows],
        ball_shown=recording.ball_shown[rows],
        car_shown=recording.car_shown[rows],
        car_present=recording.car_present[rows],
    )


def as_table(recording: Recording) -> Recording:
    """Return what a table has: bodies, boost and controls, and nothing that is hidden."""
    state = recording.state
    layout = state.layout
    plain = MatchState(layout.blue, layout.orange, state.matches)
    for name in ("ball_position", "ball_rotation", "ball_linear_velocity", "ball_angular_velocity"):
        getattr(plain, name)[:] = getattr(state, name)
    for name in _SEEN:
        getattr(plain, "car_" + name)[:] = getattr(state, "car_" + name)
    return replace(recording, state=plain)


def sent(recording: Recording, lag: int) -> Recording:
    """Return a recording whose rows hold the inputs that drive the tick `lag` ticks after them."""
    state = recording.state.copy()
    ahead = lag + 1  # row k of applied inputs drove the tick before it
    rows = np.arange(len(recording.tick)) + ahead
    state.car_controls[:] = recording.state.car_controls[rows.clip(0, len(rows) - 1)]
    return replace(recording, state=state, inputs=Inputs.SENT)


def without(recording: Recording, control: str) -> Recording:
    """Return a recording that lacks a control, and does not say so."""
    column = CONTROL_NAMES.index(control)
    state = recording.state.copy()
    state.car_controls[..., column] = 0
    return replace(recording, state=state)


def as_replay(recording: Recording, seed: int = 0) -> Recording:
    """Return a recording as a replay is: 30 frames a second, each body's state up to 4 ticks old."""
    random = np.random.default_rng(seed)
    frames = np.arange(8, len(recording.tick), 4)
    frames = frames[recording.segment[frames] == recording.segment[frames - 8]]
    part = as_table(rows_of(recording, frames))
    state = part.state
    layout = state.layout
    ball = layout.column("ball_position")
    places = [slice(ball, ball + 18)]
    places += [
        slice(layout.column("position", car=car), layout.column("position", car=car) + 18) for car in (0, 1)
    ]
    was_shown = []
    for place in places:
        age = random.integers(0, 5, len(frames))
        state.buffer[:, place] = recording.state.buffer[frames - age, place]
        fresh = np.diff(frames - age, prepend=-1) > 0
        was_shown.append(fresh & (random.random(len(frames)) < 0.9))
    return replace(
        part, clock=TimeBase.FRAMES, ball_shown=was_shown[0], car_shown=np.stack(was_shown[1:], axis=1),
        inputs=Inputs.NONE, inputs_recorded=np.zeros((2, 8), bool),
    )  # fmt: skip


def heavier(mutators: rsim.MutatorConfig) -> None:
    """Plant gravity that is 1 % too strong."""
    mutators.gravity = rsim.Vec(0, 0, mutators.gravity.z * 1.01)
