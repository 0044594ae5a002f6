"""Matches of RocketSim with one fault planted, drawn by a seed, in the forms that recordings have."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import RocketSim as rsim

from rlgym_bridge.chaser import Chaser
from rlgym_bridge.compare.findings.comparison_result import Comparison
from rlgym_bridge.derived_fields import derive
from rlgym_bridge.game import CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.arena import make_arena, place_cars, scale_constants
from rlgym_bridge.sim.arena_reader import ArenaReader, control_of
from rlgym_bridge.sim.boost_thrust import use_game_thrust
from rlgym_bridge.sim.game_rules import parse_rules
from rlgym_bridge.sim.ruled_arena import stepper
from rlgym_bridge.state import MatchState
from tests.support.chaser_matches import TABLE
from tests.support.planted_gaps import SCENE_SECONDS, Human, as_table, scatter, sent, timed

Alter = Callable[[np.ndarray], np.ndarray]
SECONDS: Final = 64
_SKIP: Final = 8  # ticks between decisions of a bot
_FORMS: Final = ("match", "table of 120 rows", "table of 60 rows")
_STICKS: Final = 5
_PAIRS: Final = (
    ("steer", "roll"), ("pitch", "yaw"), ("yaw", "roll"), ("jump", "boost"), ("throttle", "steer"),
)  # fmt: skip
_STUCK: Final = 30  # ticks
_MEETING_SECONDS: Final = 3
_EVERY: Final = 240  # ticks from one time that a control is stuck to the next

CONSTANTS: Final = {
    "ball mass": ("ball_mass", 1.1, "mass of the ball"),
    "hit force": ("ball_hit_extra_force_scale", 1.1, "force of a hit"),
    "bump": ("bump_force_scale", 1.5, "force of a bump"),
    "friction": ("car_world_friction", 1.2, "friction of cars"),
    "gravity": ("gravity", 1.01, "gravity"),
    "ball drag": ("ball_drag", 1.03, "ball drag"),
    "bounce": ("ball_world_restitution", 0.97, "bounce of the ball"),
    "boost in the air": ("boost_accel_air", 0.95, "boost in the air"),
    "jump": ("jump_immediate_force", 1.05, "push of a jump"),
    "boost use": ("boost_used_per_second", 0.95, "boost use"),
}
KINDS: Final = (
    "throttle gain", "steer gain", "dead zone", "stuck steer", "swapped", "yaw inverted", "mirrored axis",
    "lag", "lag of one control", "clock", *CONSTANTS,
)  # fmt: skip
"""Faults that can be planted."""


@dataclass(frozen=True)
class Planted:
    """A fault and a recording that has it.

    Attributes:
        kind: One of `KINDS`, or "nothing".
        text: The fault with its size, and the recording's form.
        names: Names under which a comparison may name it.
        recording: The recording.
    """

    kind: str
    text: str
    names: tuple[str, ...]
    recording: Recording

    def outcome(self, found: Comparison) -> tuple[str, list[str]]:
        """Return "right", "among others", "wrong" or "nothing", and what a comparison names."""
        named = [gap.name for gap in found.gaps if gap.name not in self._harmless()]
        alike = {phrase for each in found.mechanisms for phrase in each.alike}
        doubted = {each.name for each in found.mechanisms if each.alike}
        if all(self._means(name) for name in named) and named:
            return ("right" if not doubted & set(named) else "among others"), named
        if any(phrase.startswith(self.names) for phrase in alike) or any(map(self._means, named)):
            false = [name for name in named if not self._means(name) and name not in doubted]
            return ("wrong" if false else "among others"), named
        return ("wrong" if set(named) - doubted else "nothing"), named

    def _means(self, name: str) -> bool:
        return name.startswith(self.names)

    def _harmless(self) -> set[str]:
        return {"lost rows", "lost packets"}


def plant(
    seed: int, kind: str | None = None, cars: int = 2, seconds: int = SECONDS, rules: str = "rocketsim"
) -> Planted:
    """Return a recording with one fault, all of it drawn by a seed.

    Args:
        seed: Of the fault, the play and the form.
        kind: One of `KINDS`, or "nothing"; drawn where it is None.
        cars: In the match.
        seconds: Of play.
        rules: The game's rules that it is played by; a match has them written down, a table does not.
    """
    random = np.random.default_rng(seed)
    kind = KINDS[int(random.integers(len(KINDS)))] if kind is None else kind
    form = _FORMS[int(random.integers(len(_FORMS)))]
    alter, text, names, factors = _fault(kind, random)
    meet = {"bump": "car", "ball mass": "ball", "hit force": "ball"}.get(kind, "")
    recording = _play(random, cars, seconds, alter, factors, meet, parse_rules(rules))
    recording = replace(recording, source=f"seed {seed}", rules=rules if form == "match" else "")
    if kind == "mirrored axis":
        recording = mirror(recording)
    lag, fast = 0, 0.0
    if kind in ("lag", "nothing"):
        lag = int(random.integers(1, 6))
        text, names = (
            (f"lag {lag}", ("input latency",)) if kind == "lag" else (text, ("input latency", "clock"))
        )
    if kind == "clock" or (kind == "nothing" and form != "match" and random.random() < 0.5):
        fast = float(random.choice([-1, 1]) * random.uniform(0.001, 0.006))
        text = f"clock {100 * fast:+.2f} %"
    if form != "match" or lag:
        recording = as_table(recording)
    if lag:
        recording = sent(recording, lag)
    if form != "match" or kind == "clock":
        recording = timed(recording, fast, 60 if form == _FORMS[2] else TICKS_PER_SECOND)
    return Planted(kind, f"{text}, {form}, {cars} cars", names, recording)


def _fault(
    kind: str, random: np.random.Generator
) -> tuple[Alter | None, str, tuple[str, ...], dict[str, float]]:
    """Return what the game makes of control rows, a text, the names of the fault, and constants' factors."""
    if kind in CONSTANTS:
        mutator, factor, name = CONSTANTS[kind]
        return None, f"{kind} x{factor}", (name,), {mutator: factor}
    if kind in ("throttle gain", "steer gain"):
        control, gain = ("throttle", 0.9) if kind == "throttle gain" else ("steer", 1.2)
        return (
            _on_car(_scaled(CONTROL_NAMES.index(control), gain)),
            f"{control} x{gain}",
            (f"gain of {control}",),
            {},
        )
    if kind == "dead zone":
        return _on_car(_without_small), "dead zone 0.1", ("dead zone",), {}
    if kind == "stuck steer":
        return Stuck(CONTROL_NAMES.index("steer")), "steer stuck for 30 ticks", ("steer stuck",), {}
    if kind == "swapped":
        pairs = (
            ("steer", "roll"),
            ("pitch", "yaw"),
            ("yaw", "roll"),
            ("jump", "boost"),
            ("throttle", "steer"),
        )
        pair = pairs[int(random.integers(len(pairs)))]
        columns = [CONTROL_NAMES.index(name) for name in pair]
        return (
            _on_car(_swapped(columns)),
            " and ".join(pair) + " swapped",
            (" and ".join(pair) + " swapped",),
            {},
        )
    if kind == "yaw inverted":
        return _on_car(_scaled(CONTROL_NAMES.index("yaw"), -1)), "yaw inverted", ("yaw inverted",), {}
    if kind == "lag of one control":
        control, ticks = str(random.choice(["throttle", "steer", "boost", "yaw"])), int(random.integers(2, 5))
        late = Late(CONTROL_NAMES.index(control), ticks)
        return late, f"{control} {ticks} ticks late", (f"lag of {control}",), {}
    name = {"mirrored axis": "mirrored axis", "clock": "clock"}.get(kind, "input latency")
    return None, kind, (name,), {}


def _on_car(change: Alter) -> Alter:
    def alter(rows: np.ndarray) -> np.ndarray:
        changed = rows.copy()
        changed[0] = change(changed[0])
        return changed

    return alter


def _scaled(column: int, gain: float) -> Alter:
    def change(row: np.ndarray) -> np.ndarray:
        row[column] = np.clip(gain * row[column], -1, 1)
        return row

    return change


def _without_small(row: np.ndarray) -> np.ndarray:
    row[:_STICKS] *= np.abs(row[:_STICKS]) >= 0.1
    return row


def _swapped(columns: list[int]) -> Alter:
    def change(row: np.ndarray) -> np.ndarray:
        row[columns] = row[columns[::-1]]
        return row

    return change


class Stuck:
    """A control of the first car that keeps its value for 30 ticks, every two seconds."""

    def __init__(self, column: int) -> None:
        self._column, self._tick, self._value = column, -1, 0.0

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of a tick as the game has them."""
        self._tick += 1
        if self._tick % _EVERY < _STUCK:
            rows = rows.copy()
            rows[0, self._column] = self._value
        else:
            self._value = float(rows[0, self._column])
        return rows


class Late:
    """A control of the first car that acts some ticks late."""

    def __init__(self, column: int, ticks: int) -> None:
        self._column, self._before = column, [0.0] * ticks

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of a tick as the game has them."""
        self._before.append(float(rows[0, self._column]))
        changed = rows.copy()
        changed[0, self._column] = self._before.pop(0)
        return changed


def mirror(recording: Recording) -> Recording:
    """Return a recording whose x axis points the other way, as in a frame of the other hand."""
    state = recording.state.copy()
    for part in ("ball_", "car_"):
        for name in ("position", "linear_velocity"):
            getattr(state, part + name)[..., 0] *= -1
        getattr(state, part + "angular_velocity")[..., 1:] *= -1
        turn = getattr(state, part + "rotation")
        turn[..., 0, :] *= -1
        turn[..., :, 1] *= -1
    return replace(recording, state=state)


def _play(
    random: np.random.Generator,
    cars: int,
    seconds: int,
    alter: Alter | None,
    factors: dict[str, float],
    meet: str,
    rules: frozenset[str],
) -> Recording:
    """Return every tick of a match of humans, the first half of the cars, against bots.

    Where they are to meet "car" or "ball", scenes are short, and begin with a bot that drives at it.
    """
    teams = [int(2 * car >= cars) for car in range(cars)]
    arena, placed = make_arena(teams)
    scatter(arena, placed, random)  # gravity does not reach a ball at rest
    mutators = arena.get_mutator_config()
    scale_constants(mutators, factors)
    use_game_thrust(mutators, rules)
    arena.set_mutator_config(mutators)
    ticks = seconds * TICKS_PER_SECOND
    half = cars // 2
    state, now = MatchState(half, half, ticks), MatchState(half, half)
    segment, pressed = np.zeros(ticks, np.int32), np.zeros((ticks, cars, 8))
    humans, bots = [Human(random) for _ in range(half)], Chaser(int(random.integers(1000)))
    rows = np.zeros((cars, 8))
    scene = (_MEETING_SECONDS if meet else SCENE_SECONDS) * TICKS_PER_SECOND
    for tick in range(ticks):
        if tick % scene == 0:
            placed = place_cars(arena, teams)
            scatter(arena, placed, random)
            if meet:
                _aim(placed[half], arena.ball if meet == "ball" else placed[0], random)
            bots.reset(range(half, cars), int(random.integers(1000)))
            step = stepper(arena, placed, rules)
            reader = ArenaReader(arena, placed)
        elif tick % _SKIP == 0 and not meet:
            reader.read_into(now)
            derive(now)
            rows[half:] = TABLE[bots.act(None, now)[0]]
        elif tick % _SKIP == 0:
            rows[half:] = _ramming(placed[half], arena.ball if meet == "ball" else placed[0])
        rows[:half] = [human.row() for human in humans]
        pressed[tick] = rows
        for car, row in zip(placed, rows if alter is None else alter(rows), strict=True):
            car.set_controls(control_of(row.tolist()))
        step(1)
        reader.read_into(state, tick)
        segment[tick] = tick // scene
    derive(state)
    state.car_controls[:] = pressed
    state.gravity[:] = 1.0
    there = np.ones(ticks, bool)
    tick_numbers = np.arange(ticks, dtype=np.int64) + 1000
    return Recording(
        "planted", state, tick_numbers, tick_numbers / TICKS_PER_SECOND, segment, there,
        there[:, None].repeat(cars, 1),
    )  # fmt: skip


def _aim(car: rsim.Car, other: rsim.Car | rsim.Ball, random: np.random.Generator) -> None:
    """Put a car some way from a body, which is put on the ground in the middle, driving at it."""
    target, state = other.get_state(), car.get_state()
    target.pos = rsim.Vec(
        *random.uniform(-1500, 1500, 2).tolist(), 17 if isinstance(other, rsim.Car) else 93.15
    )
    target.vel = rsim.Vec(*random.uniform(-300, 300, 2).tolist(), 0)
    other.set_state(target)
    angle = float(random.uniform(-np.pi, np.pi))
    way = np.array([np.cos(angle), np.sin(angle)])
    state.pos = rsim.Vec(target.pos.x - 900 * way[0], target.pos.y - 900 * way[1], 17)
    speed = float(random.uniform(600, 1500))
    state.vel = rsim.Vec(speed * way[0], speed * way[1], 0)
    state.rot_mat = rsim.Angle(angle, 0, 0).as_rot_mat()
    car.set_state(state)


def _ramming(car: rsim.Car, other: rsim.Car | rsim.Ball) -> np.ndarray:
    """Return the controls that drive a car at a body, too slow to demolish it."""
    state, target = car.get_state(), other.get_state()
    way = np.array(target.pos.as_tuple()) - np.array(state.pos.as_tuple())
    forward, right = (np.array(one.as_tuple()) for one in (state.rot_mat.forward, state.rot_mat.right))
    angle = float(np.arctan2(way @ right, way @ forward))
    fast = np.linalg.norm(state.vel.as_tuple()) > 1800
    row = np.zeros(8)
    row[0], row[1], row[6] = 1.0, np.clip(2 * angle, -1, 1), float(not fast and abs(angle) < 0.3)
    return row
