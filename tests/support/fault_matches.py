"""Plant one fault, drawn by a seed, in recordings of simulated matches: `plant`; or none: `clean`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np

from rlgym_bridge.game import CONTROL_NAMES, TICK_SECONDS, TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.simulator import ROCKETSIM2
from rlgym_bridge.state import MatchState
from tests.support.fault_scenes import Applied, Fault, Form, Push, make_recording

Draw = Callable[[np.random.Generator], Fault]
_FIRST: Final = (0,)
_OF_TIME: Final = ("input latency", "clock", "lost rows", "inputs held")
"""Names of faults that a comparison may tell in its fits or gaps, beside its causes."""
_STICKS: Final = ("throttle", "steer", "pitch", "yaw", "roll")


@dataclass(frozen=True)
class Planted:
    """A fault and a recording that has it."""

    kind: str
    text: str
    names: tuple[str, ...]
    tellable: bool
    recording: Recording
    fault: Fault
    form: Form

    def outcome(self, found: Any) -> tuple[str, list[str]]:
        """Return how right a comparison is, and what it says.

        Args:
            found: A `Comparison`.

        Returns:
            "right" (certain and named rightly), "among others" (not told apart from others), "untried" (said
            to be something that is not tried), "nothing" or "wrong" (a certain cause that was not planted);
            and the phrases of all causes.
        """
        causes = [cause for cause in found.causes if not self.is_harmless(cause.name)]
        said = [cause.phrase + "".join(f" or {other}" for other in cause.alike) for cause in causes]
        said += [f"untried: {', '.join(each.situations)}" for each in found.untried]
        certain = [cause for cause in causes if not cause.alike]
        beside = [getattr(each, "name", "") for each in (*found.fits, *found.gaps)]
        if not all(map(self._is_right, certain)):
            return "wrong", said
        if certain or any(name.startswith(_OF_TIME) and self._means(name) for name in beside):
            return "right", said
        if any(self._is_right(cause) or any(map(self._means, cause.alike)) for cause in causes):
            return "among others", said
        if found.untried:
            return "untried", said
        return ("right" if self.fault.quiet and not causes else "nothing"), said

    def is_harmless(self, name: str) -> bool:
        """Tell whether a name is true of the recording's form, whatever was planted."""
        form = self.form
        there = {"input latency": form.lag > 0, "lost rows": form.lost > 0, "clock": form.fast != 0}
        if form.cars == 1 and fnmatchcase(name, "inputs of car * late"):
            name = "input latency"
        return there.get(name, False) and not self._means(name)

    def _is_right(self, cause: Any) -> bool:
        planted, told = set(self.fault.cars), set(cause.cars)
        return self._means(cause.name) and (not planted or not told or bool(planted & told))

    def _means(self, phrase: str) -> bool:
        return any(fnmatchcase(phrase, f"{name}*") for name in self.names)


def draw_form(random: np.random.Generator, troubled: bool = False) -> Form:
    """Return a form, drawn at random."""
    cars = 1 if random.random() < 0.25 else 2
    if random.random() < 0.25:
        return Form(cars=cars)
    rate = int(random.choice([120, 120, 120, 60, 60, 40, 30]))
    sent = bool(random.random() < 0.6)
    lag = int(random.integers(0, 6)) if sent and random.random() < (0.8 if troubled else 0.3) else 0
    lost = float(random.uniform(0.005, 0.05)) if troubled and random.random() < 0.4 else 0.0
    fast = float(random.uniform(-0.005, 0.005)) if troubled and random.random() < 0.4 else 0.0
    return Form(
        True, rate, str(random.choice(["exact", "6 digits", "6 digits", "2 decimals", "integers"])),
        bool(random.random() < 0.1), int(random.choice([0, 0, 100, 128])),
        str(random.choice(["exact", "ms", "float32"])), sent, lag, lost, fast,
        rate == TICKS_PER_SECOND or bool(random.random() < 0.7), cars,
    )  # fmt: skip


def plant(seed: int, kind: str | None = None, form: Form | None = None, aside: bool = False) -> Planted:
    """Return a recording with one fault, all of it drawn by a seed.

    Args:
        seed: Of the fault, its size, the play and the form. Without a kind, as many successive seeds as there
            are kinds plant each of them once.
        kind: One of `KINDS` or `KINDS_ASIDE`.
        form: Of the recording; the fault may ask for more.
        aside: Whether a kind is drawn from `KINDS_ASIDE`.
    """
    random = np.random.default_rng([seed, 55])
    kinds = KINDS_ASIDE if aside else KINDS
    if kind is None:
        turn, place = divmod(seed, len(kinds))
        kind = list(kinds)[np.random.default_rng([turn, 56]).permutation(len(kinds))[place]]
    fault = (KINDS | KINDS_ASIDE)[kind](random)
    form = replace(draw_form(random) if form is None else form, **fault.form)
    return _record(seed, kind, fault, form, random)


def clean(seed: int, form: Form | None = None) -> Planted:
    """Return a recording with no fault, but with lags, lost rows and a clock of its own."""
    random = np.random.default_rng([seed, 57])
    return _record(seed, "nothing", Fault("nothing", quiet=True), form or draw_form(random, True), random)


def _record(seed: int, kind: str, fault: Fault, form: Form, random: np.random.Generator) -> Planted:
    names = fault.names
    if form.cars == 1 and any(name.startswith("inputs of car") for name in names):
        names += ("input latency",)
    elif form.cars == 1 and "input latency" in names:
        names += ("inputs of car ? late",)
    recording = make_recording(f"seed {seed}", fault, form, random)
    return Planted(kind, f"{fault.text} | {form}", names, bool(names), recording, fault, form)


# --- faults of inputs ------------------------------------------------------------------------------


def _changed(
    controls: Sequence[str], change: Callable[[np.ndarray], np.ndarray], cars: Sequence[int] = _FIRST
) -> Applied:
    """Change some controls of some cars: `change` takes and returns `(scenes, controls)`."""
    columns = [CONTROL_NAMES.index(name) for name in controls]

    def applied(pressed: np.ndarray, tick: int) -> np.ndarray:
        rows = pressed[:, :, tick].copy()
        for car in cars:
            rows[:, car, columns] = change(rows[:, car, columns])
        return rows

    return applied


def _late(controls: Sequence[str], ticks: int, car: int = 0) -> Applied:
    """Let some controls of a car act some ticks late."""
    columns = [CONTROL_NAMES.index(name) for name in controls]

    def applied(pressed: np.ndarray, tick: int) -> np.ndarray:
        rows = pressed[:, :, tick].copy()
        rows[:, car, columns] = pressed[:, car, max(tick - ticks, 0)][:, columns]
        return rows

    return applied


def _stuck(control: str, ticks: int, every: int, first: int, value: float | None = None) -> Applied:
    """Let a control of the first car keep its value, or have one of its own, for some ticks of so many."""
    column = CONTROL_NAMES.index(control)

    def applied(pressed: np.ndarray, tick: int) -> np.ndarray:
        rows, began = pressed[:, :, tick].copy(), tick - (tick - first) % every
        if began >= 0 and tick - began < ticks:
            rows[:, 0, column] = pressed[:, 0, began, column] if value is None else value
        return rows

    return applied


def _gain(random: np.random.Generator, least: float = 0.15, most: float = 0.35) -> Fault:
    control = str(random.choice(_STICKS))
    up = control != "throttle" and random.random() < 0.5
    gain = 1 + (1 if up else -1) * float(random.uniform(least, most))
    applied = _changed([control], lambda values: np.clip(gain * values, -1, 1))
    return Fault(f"gain of {control} {gain:.2f}", (f"gain of {control}",), _FIRST, applied=applied)


def _inverted(random: np.random.Generator) -> Fault:
    control = str(random.choice(_STICKS[1:]))
    names = (f"{control} inverted", f"gain of {control}")
    return Fault(names[0], names, _FIRST, applied=_changed([control], np.negative))


def _without_effect(random: np.random.Generator) -> Fault:
    control = str(random.choice([*_STICKS, "jump", "boost", "handbrake"]))
    names = (f"{control} without effect", f"gain of {control}")
    return Fault(names[0], names, _FIRST, applied=_changed([control], np.zeros_like))


def _dead_zone(random: np.random.Generator, stretched: bool, controls: Sequence[str] = _STICKS) -> Fault:
    zone = float(random.uniform(0.1, 0.3))

    def change(values: np.ndarray) -> np.ndarray:
        beyond = np.abs(values) - zone
        outside = np.sign(values) * beyond / (1 - zone) if stretched else values
        return np.asarray(np.where(beyond >= 0, outside, 0)).clip(-1, 1)

    told = "all sticks" if len(controls) > 1 else controls[0]
    text = f"dead zone of {told} {zone:.2f}, {'stretched' if stretched else 'cut'}"
    names = ("dead zone of",) if len(controls) > 1 else (f"dead zone of {told}",)
    return Fault(text, names, _FIRST, applied=_changed(controls, change))


def _swapped(random: np.random.Generator) -> Fault:
    pairs = [("steer", "roll"), ("pitch", "yaw"), ("yaw", "roll"), ("jump", "boost"), ("throttle", "steer")]
    one, other = pairs[int(random.integers(len(pairs)))]
    names = (f"{one} and {other} swapped", f"{other} and {one} swapped")
    applied = _changed([one, other], lambda values: values[:, ::-1])
    return Fault(names[0], names, _FIRST, applied=applied)


def _lag_of_one(random: np.random.Generator) -> Fault:
    control, ticks = str(random.choice(["throttle", "steer", "yaw", "boost"])), int(random.integers(2, 6))
    return Fault(
        f"{control} {ticks} ticks late", (f"lag of {control}",), _FIRST, applied=_late([control], ticks)
    )


def _all_late(random: np.random.Generator) -> Fault:
    form = {"table": True, "sent": True, "lag": int(random.integers(1, 6))}
    return Fault(f"inputs {form['lag']} ticks late", ("input latency",), form=form)


def _car_late(random: np.random.Generator, rows: int = 1) -> Fault:
    car, rate = int(random.integers(2)), int(random.choice([120, 120, 60]))
    ticks = rows * TICKS_PER_SECOND // rate
    form = {"cars": 2, "rate": rate} | ({"table": True} if rate < TICKS_PER_SECOND else {})
    return Fault(
        f"inputs of car {car} {ticks} ticks late", ("inputs of car ? late",), (car,),
        applied=_late(CONTROL_NAMES, ticks, car), form=form,
    )  # fmt: skip


def _cars_swapped(random: np.random.Generator) -> Fault:
    return Fault(
        "inputs of two cars swapped", ("inputs of cars ? and ? swapped",), (0, 1),
        applied=lambda pressed, tick: pressed[:, ::-1, tick].copy(), form={"cars": 2},
    )  # fmt: skip


def _stuck_fault(
    random: np.random.Generator, control: str, ticks: int, every: int, value: float | None = None
) -> Fault:
    applied = _stuck(control, ticks, every, int(random.integers(every - ticks)), value)
    return Fault(f"{control} stuck {ticks} of {every}", (f"{control} stuck",), _FIRST, applied=applied)


def _missing(random: np.random.Generator) -> Fault:
    control = str(random.choice(["boost", "throttle", "handbrake"]))
    return Fault(
        f"{control} always pressed, not recorded", (f"{control} held",), unrecorded=control,
        applied=_changed([control], np.ones_like, (0, -1)),
    )  # fmt: skip


# --- faults of recorders ---------------------------------------------------------------------------


def _clock(random: np.random.Generator) -> Fault:
    fast = float(
        random.choice([0.01667 / 0.01640 - 1, *2 * [random.choice([-1, 1]) * random.uniform(0.001, 0.006)]])
    )
    return Fault(f"clock {fast:+.2%}", ("clock",), form={"table": True, "fast": fast})


def _ball_late(random: np.random.Generator) -> Fault:
    def believed(state: MatchState, before: MatchState) -> None:
        state.ball_position[:] = (state.ball_position + before.ball_position) / 2

    return Fault("ball positions half a tick late", ("positions of the ball late",), believed=believed)


def _car_positions_late(random: np.random.Generator) -> Fault:
    def believed(state: MatchState, before: MatchState) -> None:
        state.car_position[:, 0] = before.car_position[:, 0]

    return Fault("car positions a tick late", ("positions of car ? late",), _FIRST, believed=believed)


def _raised(random: np.random.Generator, body: str) -> Fault:
    size = float(random.uniform(2, 10))

    def believed(state: MatchState, before: MatchState) -> None:
        height = state.ball_position if body == "ball" else state.car_position[:, 0]
        height[..., 2] += size

    name = "height of the ball" if body == "ball" else "height of car ?"
    return Fault(
        f"{body} {size:.1f} uu too high", (name,), () if body == "ball" else _FIRST, believed=believed
    )


def _mirrored(state: MatchState, before: MatchState) -> None:
    """Let the x axis point the other way, as in a frame of the other hand."""
    for part in ("ball_", "car_"):
        for name in ("position", "linear_velocity"):
            getattr(state, part + name)[..., 0] *= -1
        getattr(state, part + "angular_velocity")[..., 1:] *= -1
        turn = getattr(state, part + "rotation")
        turn[..., 0, :] *= -1
        turn[..., :, 1] *= -1


def _lost(random: np.random.Generator) -> Fault:
    share = float(random.uniform(0.01, 0.05))
    form = {"table": True, "rate": 120, "lost": 0.0}
    return Fault(f"{share:.1%} of rows lost, times go on", ("lost rows",), lost=share, form=form)


def _inputs_held(random: np.random.Generator, ticks: int = 2) -> Fault:
    return Fault(
        f"inputs held for {ticks} ticks", ("inputs held for", "input latency"), quiet=True, row_inputs=ticks,
        form={"table": True, "rate": 120},
    )  # fmt: skip


# --- faults of physics -----------------------------------------------------------------------------


def _scaled(factors: dict[str, tuple[float, ...]], *names: str, scenes: str = "mixed") -> Draw:
    """Scale constants of the game by one of some factors."""

    def draw(random: np.random.Generator) -> Fault:
        drawn = int(random.integers(len(next(iter(factors.values())))))
        chosen = {name: values[drawn] for name, values in factors.items()}
        text = ", ".join(f"{name} x{factor:g}" for name, factor in chosen.items())
        return Fault(text, names, factors=chosen, scenes=scenes, form={"cars": 2} if scenes == "meet" else {})

    return draw


def _pushed(text: str, push: Push, scenes: str = "mixed") -> Draw:
    return lambda random: Fault(text, push=push, scenes=scenes)


def _slow_cars(share: float, name: str = "linear_velocity", on_ground: bool = False) -> Push:
    """Take a share of cars' velocity or spin in a second."""

    def push(before: MatchState, after: MatchState) -> None:
        where = (after.car_on_ground > 0) if on_ground else np.ones_like(after.car_on_ground)
        getattr(after, f"car_{name}")[:] *= (1 - share * TICK_SECONDS * where)[..., None]

    return push


def _begun(flag: str, share: float) -> Push:
    """Change what a second jump or a dodge adds to the velocity by a share."""

    def push(before: MatchState, after: MatchState) -> None:
        name = f"car_{flag}"
        begun = (getattr(after, name) > 0) & (getattr(before, name) == 0)
        added = after.car_linear_velocity - before.car_linear_velocity
        after.car_linear_velocity[:] += share * added * begun[..., None]

    return push


def _wind(*acceleration: float, cars: bool = False) -> Push:
    """Push the ball, or cars in the air, by uu/s^2 along the axes, unless they rest."""

    def push(before: MatchState, after: MatchState) -> None:
        velocity = after.car_linear_velocity if cars else after.ball_linear_velocity
        moves = (after.car_on_ground == 0) if cars else (np.abs(velocity).sum(-1) > 1)
        velocity[:] += np.array(acceleration) * TICK_SECONDS * moves[..., None]

    return push


def _curve(before: MatchState, after: MatchState) -> None:
    """Let a spinning ball curve: 2 % of spin times velocity."""
    force = 0.02 * np.cross(after.ball_angular_velocity, after.ball_linear_velocity)
    after.ball_linear_velocity[:] += force * TICK_SECONDS


def _rough(before: MatchState, after: MatchState) -> None:
    """Let bounces on the floor take 4 % more of the ball's speed along it."""
    rises = (before.ball_linear_velocity[:, 2] < -50) & (after.ball_linear_velocity[:, 2] > 0)
    after.ball_linear_velocity[:, :2] *= np.where(rises, 0.96, 1)[:, None]


def _pulled(before: MatchState, after: MatchState) -> None:
    """Pull the ball to the first car by 60 uu/s^2."""
    way = after.car_position[:, 0] - after.ball_position
    after.ball_linear_velocity[:] += 60 * TICK_SECONDS * way / np.linalg.norm(way, axis=-1, keepdims=True)


def _bent(control: str, power: float) -> Draw:
    """Raise a stick to a power."""
    applied = _changed([control], lambda values: np.sign(values) * np.abs(values) ** power)
    return lambda random: Fault(f"{control} to the power of {power:g}", cars=_FIRST, applied=applied)


def _leaked(values: np.ndarray) -> np.ndarray:
    """Add 15 % of a second control to a first."""
    return np.stack([np.clip(values[:, 0] + 0.15 * values[:, 1], -1, 1), values[:, 1]], -1)


KINDS: Final[dict[str, Draw]] = {
    "gain": _gain,
    "inverted": _inverted,
    "without effect": _without_effect,
    "dead zone cut": lambda random: _dead_zone(random, False),
    "dead zone stretched": lambda random: _dead_zone(random, True),
    "swapped": _swapped,
    "lag of one control": _lag_of_one,
    "all inputs late": _all_late,
    "car late": _car_late,
    "cars swapped": _cars_swapped,
    "handbrake stuck": lambda random: _stuck_fault(random, "handbrake", 60, 480, 1.0),
    "steer stuck": lambda random: _stuck_fault(random, "steer", 30, 240),
    "control missing": _missing,
    "clock": _clock,
    "ball late": _ball_late,
    "lost rows": _lost,
    "inputs held": _inputs_held,
    "gravity": _scaled({"gravity": (0.99, 1.01)}, "gravity"),
    "ball drag": _scaled({"ball_drag": (0.9, 1.1)}, "ball drag"),
    "bounce": _scaled({"ball_world_restitution": (0.96, 1.04)}, "bounce of the ball"),
    "ball mass": _scaled({"ball_mass": (0.9, 1.1)}, "ball mass", "mass of cars", scenes="hit"),
    "ball radius": _scaled({"ball_radius": (92.25 / 91.25,)}, "ball radius"),
    "hit force": _scaled({"ball_hit_extra_force_scale": (0.9, 1.1)}, "force of a hit", scenes="hit"),
    "bump force": _scaled({"bump_force_scale": (0.7, 1.5)}, "force of a bump", scenes="meet"),
    "boost in the air": _scaled({"boost_accel_air": (0.9412,)}, "boost in the air"),
    "boost": _scaled(
        {"boost_accel_ground": (0.95, 1.05), "boost_accel_air": (0.95, 1.05)}, "boost on the ground",
        "boost in the air",
    ),
    "jump push": _scaled({"jump_immediate_force": (0.95, 1.05)}, "push of a jump"),
    "jump hold": _scaled({"jump_accel": (0.93, 1.07)}, "hold of a jump"),
    "ball too high": lambda random: _raised(random, "ball"),
    "car too high": lambda random: _raised(random, "car"),
    "mirrored axis": lambda random: Fault("x mirrored", ("mirrored axis",), believed=_mirrored),
    "rocketsim2": lambda random: Fault("RocketSim 2.2.1", ("RocketSim 2.2.1",), simulator=ROCKETSIM2),
    "drag on cars": _pushed("cars lose 4 % a second", _slow_cars(0.04)),
    "steer squared": _bent("steer", 2.0),
    "second jump": _pushed("second jump 3 % weaker", _begun("has_double_jumped", -0.03)),
    "wind on the ball": _pushed("wind of 15 uu/s^2 on the ball", _wind(12, 9, 0)),
    "spin of cars damped": _pushed("spin of cars -15 % a second", _slow_cars(0.15, "angular_velocity")),
    "slow on the ground": _pushed("cars lose 5 % a second on the ground", _slow_cars(0.05, on_ground=True)),
    "strong dodge": _pushed("dodge 6 % stronger", _begun("has_flipped", 0.06)),
    "rough floor": _pushed("bounces slow the ball by 4 %", _rough),
}  # fmt: skip
"""Faults by kind. Those without names are such that no hypothesis describes them."""

KINDS_ASIDE: Final[dict[str, Draw]] = {
    "small gain": lambda random: _gain(random, 0.05, 0.1),
    "dead zone of steer": lambda random: _dead_zone(random, bool(random.random() < 0.5), ("steer",)),
    "lag of pitch": lambda random: Fault(
        "pitch 3 ticks late", ("lag of pitch",), _FIRST, applied=_late(["pitch"], 3)
    ),
    "car two rows late": lambda random: _car_late(random, 2),
    "throttle stuck": lambda random: _stuck_fault(random, "throttle", 40, 200),
    "boost stuck": lambda random: _stuck_fault(random, "boost", 40, 300, 1.0),
    "car positions late": _car_positions_late,
    "inputs held for 3": lambda random: _inputs_held(random, 3),
    "light gravity": _scaled({"gravity": (0.98, 1.004)}, "gravity"),
    "much drag": _scaled({"ball_drag": (0.8, 1.3)}, "ball drag"),
    "dull bounce": _scaled({"ball_world_restitution": (0.9, 1.1)}, "bounce of the ball"),
    "mass of cars": _scaled({"car_mass": (0.85, 1.2)}, "mass of cars", "ball mass", scenes="hit"),
    "small ball": _scaled({"ball_radius": (90.25 / 91.25, 93.25 / 91.25)}, "ball radius"),
    "boost on the ground": _scaled({"boost_accel_ground": (0.94, 1.04)}, "boost on the ground"),
    "small jump": _scaled({"jump_immediate_force": (0.9, 1.02)}, "push of a jump"),
    "wind on cars": _pushed("wind of 20 uu/s^2 on cars in the air", _wind(-16, 12, 0, cars=True)),
    "curving ball": _pushed("spin curves the ball", _curve),
    "pulled ball": _pushed("ball pulled to a car", _pulled),
    "ball spin damped": _pushed(
        "ball loses 20 % of its spin a second",
        lambda before, after: np.multiply(
            after.ball_angular_velocity, 1 - 0.2 * TICK_SECONDS, out=after.ball_angular_velocity
        ),
    ),
    "pitch bent": _bent("pitch", 1.6),
    "leak of roll": lambda random: Fault(
        "15 % of roll in yaw", cars=_FIRST, applied=_changed(["yaw", "roll"], _leaked)
    ),
    "strong second jump": _pushed("second jump 6 % stronger", _begun("has_double_jumped", 0.06)),
}  # fmt: skip
"""Other kinds and other sizes, to try what was made with `KINDS`."""
