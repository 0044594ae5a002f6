"""The catalogue of alterations: ways in which a recording can come to differ from its simulation.

An alteration changes what a simulation is given: control vectors, times, states, or constants. Each has one
parameter at most. Several act together, in the order in which they are applied.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from math import prod
from typing import Any, Final

import numpy as np

from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.tracks import BALL, POSITION, VELOCITY, Drive, Track
from rlgym_bridge.compare.windows import Window
from rlgym_bridge.game import CONTROL_NAMES, TICK_SECONDS
from rlgym_bridge.physics import CONSTANTS
from rlgym_bridge.sim.simulator import ROCKETSIM3, simulator_for

INPUTS, TIME, CONSTANT, OFFSET, PHYSICS = "inputs", "time", "constant", "offset", "physics"

_AXES: Final = ("throttle", "steer", "pitch", "yaw", "roll")
_BUTTONS: Final = ("jump", "boost", "handbrake")
_COLUMNS: Final = {name: CONTROL_NAMES.index(name) for name in (*_AXES, *_BUTTONS)}
_DEAD_ZONES: Final = (0.03, 0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3)
_HEIGHTS: Final = tuple(s * size for size in (1.0, 3.0, 5.0, 8.0, 12.0, 18.0, 30.0) for s in (1.0, -1.0))
_STICK: Final = 1 / 127  # RocketSim 3 rounds sticks to such steps
_ALL: Final = ("ball", "cars", "meetings")
_LAGS: Final = (*map(float, range(1, 9)), *map(float, range(-1, -5, -1)))  # ticks beside the other inputs

OLD_SIMULATOR: Final = "RocketSim 2.2.1"
NEW_SIMULATOR: Final = "RocketSim 3"
"""Names of physics that are tried: those of the simulator that is not compared."""

_MIRRORED: Final = np.array([-1, 1, 1, -1, 1, 1, 1, -1, -1, -1, 1, -1, 1, -1, 1, 1, -1, 1])
"""Signs of a body's numbers in a frame whose x axis points the other way, as of the other hand."""

Change = Callable[[np.ndarray, float], np.ndarray]
Lookup = Callable[[int, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Alteration:
    """A way in which a recording can come to differ from its simulation."""

    name: str  # a phrase such as "gain of throttle"
    kind: str  # what it changes: `INPUTS`, `TIME`, `CONSTANT`, `OFFSET` or `PHYSICS`
    car: int | None = None  # whose inputs it changes, or the body whose states; None for the world
    values: tuple[float, ...] = (1.0,)  # parameters to try. Of a linear one the least and the most
    unit: str = ""  # of the parameter; "" without one
    neutral: float = 0.0  # the parameter that changes nothing
    step: float = 0.0  # change of a linear parameter that shows its effect; 0 where only `values` are tried
    # takes control vectors `(ticks, 8)` and the parameter, returns vectors; None for none
    change: Change | None = field(default=None, compare=False)
    lagged: int = -1  # column of the control that acts the parameter's ticks later, -1 for none, 8 for all
    other: int | None = None  # the car whose inputs the car gets
    mutator: str = ""  # constant of the simulator that is multiplied by the parameter
    touches: tuple[str, ...] = ("cars", "meetings")  # bodies that it can change: "ball", "cars" or "meetings"
    starts: tuple[float, ...] = ()  # parameters to begin a fit from; none for a step to both sides
    grain: float = 0.0  # the least difference of the parameter that a simulator resolves; 0 for any
    # column of the control that keeps its value for a while, or a button that is pressed, in some
    # windows from one moment to another: see `span`; -1 for none
    stuck: int = -1

    @property
    def key(self) -> tuple[str, int | None]:
        """The name and the car, which tell it from others."""
        return self.name, self.car

    @property
    def constant(self) -> str:
        """The constant's name in the settings; "" where they have none."""
        return self.mutator if self.mutator in CONSTANTS else ""

    @property
    def sometimes(self) -> bool:
        """True if it acts in some windows and not in others, whichever comes nearer."""
        return self.stuck >= 0

    def can_change(self, window: Window) -> bool:
        """Tell whether it can change anything in a window."""
        what = "meetings" if window.meeting else "ball" if window.bodies[0] == BALL else "cars"
        whose = self.car is None or self.car in window.bodies or self.other in window.bodies
        return what in self.touches and whose

    def phrase(self, value: float) -> str:
        """Return the alteration with a parameter as a phrase, such as `gain of throttle 0.90`."""
        if not self.unit:
            return self.name
        if self.unit == "ticks":
            return f"{self.name} {value:+.3g} ticks"
        if self.unit == "uu":
            return f"{self.name} {value:+.2f} uu"
        if self.unit == "of RocketSim's" or self.name == "clock":
            return f"{self.name} {100 * (value - 1):+.2f} %"
        return f"{self.name} {value:.2f}"


def span(begin: int, end: int) -> float:
    """Return the parameter of a control that is stuck from one tick to another of a window."""
    return float(1000 * end + begin)


def spanned(value: float) -> tuple[int, int]:
    """Return the ticks of a window from which and to which a parameter has a control stuck."""
    end = round(value / 1000)
    return round(value - 1000 * end), end


def change_columns(columns: Sequence[int], change: Change, rows: np.ndarray, value: float) -> np.ndarray:
    """Return control vectors `(ticks, 8)` in which some columns are changed, which `change` gets alone."""
    changed = rows.copy()
    changed[:, columns] = change(rows[:, columns], value)
    return changed


_SPANS: Final = tuple(
    span(begin, end)
    for end in (3, 6, 9, 12, 18, 24, 30, 45, 60, 240)
    for begin in (-50, -38, -26, -18, -10, -4, 0, 3, 6, 9, 15, 24, 40)
    if begin < end
)

Applied = Sequence[tuple[Alteration, float]]
"""Alterations with their parameters."""


def time_scale(applied: Applied) -> float:
    """Return by what times are multiplied."""
    return prod(value for one, value in applied if one.name == "clock")


def factors_of(applied: Applied) -> tuple[dict[str, float], float]:
    """Return multiples of constants by the simulator's names, and that of gravity."""
    factors: dict[str, float] = {}
    for one, value in applied:
        if one.mutator:
            factors[one.mutator] = factors.get(one.mutator, 1.0) * value
    return factors, factors.pop("gravity", 1.0)


def alter_values(applied: Applied, track: Track, moments: Sequence[int]) -> np.ndarray:
    """Return states of a track at some moments `(moments, bodies, 18)`, as alterations have them."""
    values = track.values[moments]
    for one, value in applied:
        for place, body in enumerate(track.bodies):
            if one.name == "mirrored axis":
                values[:, place] *= _MIRRORED
            elif one.kind == OFFSET and body == one.car:
                values[:, place, 2] -= value
            elif one.name.startswith("positions") and body == one.car:
                values[:, place, POSITION] += value * TICK_SECONDS * values[:, place, VELOCITY]
    return values


def alter_drive(
    applied: Applied, scene: TimedRecording, car: int, drawn: Callable[[Drive, int], Drive] | None = None
) -> Lookup | None:
    """Return what looks up a car's control vectors, `(row, ends of ticks) -> (ticks, 8)`; None for no inputs.

    `drawn` takes the recorded inputs and the car, and returns those of a draw.
    """
    source = car
    for one, _ in applied:
        if one.other is not None and car in (one.car, one.other):
            source = one.other if car == one.car else int(one.car or 0)
    if (drive := scene.drive(source)) is None:
        return None
    look: Lookup = (drive if drawn is None else drawn(drive, source)).during
    for one, value in applied:
        if (one.change is None and one.lagged < 0 and one.stuck < 0) or one.car not in (None, car):
            continue
        look = partial(_altered, look, one, value, scene.timeline.inputs)
    return look


def _altered(
    look: Lookup, one: Alteration, value: float, times: np.ndarray, row: int, ends: np.ndarray
) -> np.ndarray:
    controls = look(row, ends - value if one.lagged == 8 else ends)
    if 0 <= one.lagged < 8:
        controls[:, one.lagged] = look(row, ends - value)[:, one.lagged]
    if one.stuck >= 0:
        begin, end = spanned(value)
        held = (ends > times[row] + begin) & (ends <= times[row] + end)
        kept = look(row, np.array([times[row] + begin]))[0, one.stuck]
        controls[held, one.stuck] = 1.0 if CONTROL_NAMES[one.stuck] in _BUTTONS else kept
    return controls if one.change is None else one.change(controls, value)


# --- the catalogue --------------------------------------------------------------------------------


def catalogue(scene: TimedRecording, simulator: str = ROCKETSIM3) -> list[Alteration]:
    """Return all alterations that can be asked of a recording by a simulator."""
    soccar = scene.recording.mode == "Soccar"  # RocketSim 2.2.1 makes a sphere of a puck that is changed
    found = [
        Alteration(
            name, CONSTANT, None, (0.5, 1.5) if mutator == "ball_radius" else (0.2, 3.0), "of RocketSim's",
            1.0, step, mutator=mutator, touches=tuple(touches.split()),
        )
        for name, mutator, step, touches in _CONSTANTS
        if soccar or mutator not in ("ball_radius", "ball_mass")
    ]  # fmt: skip
    physics = OLD_SIMULATOR if simulator == ROCKETSIM3 else NEW_SIMULATOR
    if physics == OLD_SIMULATOR or simulator_for(scene.recording.mode)[0] == ROCKETSIM3:
        found.append(Alteration(physics, PHYSICS, touches=_ALL))
    cars = scene.cars if scene.driven else []
    return [
        *found, *_offsets(scene), *(one for car in cars for one in _inputs(scene, car)),
        *(Alteration(f"inputs of cars {one} and {other} swapped", INPUTS, one, other=other)
          for one, other in combinations(cars, 2)),
    ]  # fmt: skip


_CONSTANTS: Final = (
    ("gravity", "gravity", 0.01, "ball cars meetings"),
    ("ball drag", "ball_drag", 0.05, "ball meetings"),
    ("bounce of the ball", "ball_world_restitution", 0.02, "ball meetings"),
    ("ball radius", "ball_radius", 0.01, "ball meetings"),
    ("ball mass", "ball_mass", 0.1, "meetings"),
    ("force of a hit", "ball_hit_extra_force_scale", 0.1, "meetings"),
    ("force of a bump", "bump_force_scale", 0.2, "meetings"),
    ("boost on the ground", "boost_accel_ground", 0.05, "cars meetings"),
    ("boost in the air", "boost_accel_air", 0.05, "cars meetings"),
    ("push of a jump", "jump_immediate_force", 0.03, "cars meetings"),
    ("hold of a jump", "jump_accel", 0.03, "cars meetings"),
)
"""Names, the simulator's names, steps, and what they touch."""


def _offsets(scene: TimedRecording) -> list[Alteration]:
    found = []
    for body in scene.bodies:
        name = "the ball" if body == BALL else f"car {body}"
        found += [
            Alteration(f"height of {name}", OFFSET, body, (-60.0, 60.0), "uu", 0.0, 1.0, touches=_ALL,
                       starts=_HEIGHTS),
            Alteration(f"positions of {name} late", TIME, body, (-4.0, 4.0), "ticks", 0.0, 0.5, touches=_ALL),
        ]  # fmt: skip
    clock = Alteration("clock", TIME, None, (0.9, 1.1), "times", 1.0, 0.004, touches=_ALL)
    return [*found, Alteration("mirrored axis", OFFSET, touches=_ALL), clock]


def _inputs(scene: TimedRecording, car: int) -> list[Alteration]:
    rows = scene.recording.state.car_controls[:, car]
    used = [name for name, column in _COLUMNS.items() if rows[:, column].any()]
    axes = [name for name in _AXES if name in used]
    found = [Alteration(f"inputs of car {car} late", TIME, car, _LAGS, "ticks", lagged=8)]

    def add(name: str, controls: Sequence[str], change: Change, **parameter: Any) -> None:
        on = partial(change_columns, [_COLUMNS[one] for one in controls], change)
        found.append(Alteration(name, INPUTS, car, change=on, **parameter))

    for name, column in _COLUMNS.items():
        if name in axes:
            gain = {"values": (0.2, 3.0), "unit": "times", "neutral": 1.0, "step": -0.1, "grain": _STICK}
            add(f"gain of {name}", [name], _scale, **gain)
            add(f"{name} inverted", [name], lambda values, _: -values)
        if name in used:
            add(f"{name} without effect", [name], lambda values, _: np.zeros_like(values))
            found.append(Alteration(f"lag of {name}", INPUTS, car, _LAGS, "ticks", lagged=column))
            if name != "jump":
                found.append(Alteration(f"{name} stuck", INPUTS, car, _SPANS, stuck=column))
        elif name in _BUTTONS or not scene.recording.inputs_recorded[car, column]:
            add(f"{name} held", [name], lambda values, _: np.ones_like(values))
    for names in [axes, *([name] for name in axes)] if axes else []:
        called = "all sticks" if len(names) > 1 else names[0]
        zones = {"values": _DEAD_ZONES, "unit": "of 1"}
        add(f"dead zone of {called}", names, _cut_zone, **zones)
        add(f"dead zone of {called}, the rest stretched", names, _stretch_zone, **zones)
    if "jump" in used and not rows[:, _COLUMNS["pitch"]].any():
        found.append(Alteration("pitch of dodges missing", INPUTS, car, change=_keyboard_dodge))
    for pair in (*combinations(_AXES, 2), *combinations(_BUTTONS, 2)):
        if pair[0] in used or pair[1] in used:
            add(f"{pair[0]} and {pair[1]} swapped", pair, lambda values, _: values[:, ::-1])
    return found


def _scale(values: np.ndarray, gain: float) -> np.ndarray:
    return np.clip(gain * values, -1, 1)


def _keyboard_dodge(rows: np.ndarray, _: float) -> np.ndarray:
    """Give presses of jump the pitch that a keyboard's throttle seems to give a dodge [one capture]."""
    changed = rows.copy()
    jump, pitch, throttle = (_COLUMNS[name] for name in ("jump", "pitch", "throttle"))
    presses = np.diff(rows[:, jump], prepend=rows[:1, jump]) > 0
    changed[presses, pitch] = -np.sign(rows[presses, throttle])
    return changed


def _cut_zone(values: np.ndarray, zone: float) -> np.ndarray:
    return np.where(np.abs(values) < zone, 0.0, values)


def _stretch_zone(values: np.ndarray, zone: float) -> np.ndarray:
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - zone, 0.0) / (1 - zone))
