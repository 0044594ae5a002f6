"""Ways in which a recording can come to differ from its simulation, each with one parameter at most."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np

from rlgym_bridge.compare.simulate.altered_drive import Alteration
from rlgym_bridge.game import CONTROL_NAMES

_AXES: Final = ("throttle", "steer", "pitch", "yaw", "roll")
_BUTTONS: Final = ("jump", "boost", "handbrake")
_DEAD_ZONES: Final = (0.1, 0.05, 0.15, 0.2, 0.3)
_LAGS: Final = (2.0, 1.0, 3.0, 4.0, -1.0, -2.0, -3.0)  # ticks beside the lag of all controls together

Change = Callable[[np.ndarray, float], np.ndarray]


@dataclass(frozen=True)
class Explanation:
    """A way in which a recording can come to differ from its simulation.

    Attributes:
        name: A phrase such as "gain of throttle".
        car: Whose control rows it changes; None where it changes the world.
        kind: What it changes: "controls", "timing", "frame" or "physics".
        values: What its parameter may be; where it is fitted in between, the least and the most.
        unit: Of the parameter; "" where the explanation has none.
        neutral: The parameter that changes nothing.
        step: By how much the parameter is changed to see what that does, 0 where only `values` are tried.
        relevant: Least difference from `neutral` that is worth a claim.
        change: Takes control rows `(ticks, 8)` and the parameter, returns rows; None for none.
        lagged: Column of the control that acts the parameter's ticks later; -1 for none.
        mutator: Constant of RocketSim's that is multiplied by the parameter; "" for none.
    """

    name: str
    car: int | None
    kind: str
    values: tuple[float, ...] = (1.0,)
    unit: str = ""
    neutral: float = 0.0
    step: float = 0.0
    relevant: float = 0.0
    change: Change | None = None
    lagged: int = -1
    mutator: str = ""

    @property
    def alters_controls(self) -> bool:
        """True if it changes control rows, or when they act, and nothing else."""
        return self.change is not None or self.lagged >= 0

    def probes(self) -> list[tuple[float, tuple[float, float]]]:
        """Return values to try first, each with the least and the most of the parameter that it tells of.

        A gain is tried on both sides: a control that is pressed as far as it goes shrinks and does not grow.
        """
        low, high = min(self.values), max(self.values)
        if not self.step:
            return [(self.values[0], (low, high))]
        if self.change is None:
            return [(self.neutral + self.step, (low, high))]
        up, down = self.neutral + self.step, self.neutral - self.step
        return [(up, (self.neutral, high)), (down, (low, self.neutral))]

    def alteration(self, value: float) -> Alteration:
        """Return what it does to control rows with a parameter."""
        change = None if self.change is None else partial(_apply, self.change, value)
        return Alteration(change, {self.lagged: value} if self.lagged >= 0 else {})

    def phrase(self, value: float) -> str:
        """Return the explanation with a parameter as a phrase: `gain of throttle 0.90`."""
        if not self.unit:
            return self.name
        if self.unit == "ticks":
            return f"{self.name} {value:+.0f} ticks"
        return f"{self.name} {100 * (value - 1):+.1f} %" if self.mutator else f"{self.name} {value:.2f}"


def explanations_of_controls(car: int, used: Sequence[str], least_lag: float) -> list[Explanation]:
    """Return the explanations that change the control rows of a car.

    Args:
        car: The car.
        used: Controls that its rows use at some time; an unused one cannot be scaled or late.
        least_lag: Ticks that lie between rows: a shorter lag of one control does not show.
    """
    every = []
    axes = [name for name in _AXES if name in used]
    for name in axes:
        column = CONTROL_NAMES.index(name)
        every.append(
            Explanation(f"gain of {name}", car, "controls", (0.2, 2.0), "times", 1.0, 0.1, 0.03,
                        partial(_scale, column))
        )  # fmt: skip
        every.append(Explanation(f"{name} inverted", car, "controls", change=partial(_invert, (column,))))
    for name in used:
        column = CONTROL_NAMES.index(name)
        every.append(Explanation(f"{name} without effect", car, "controls", change=partial(_silence, column)))
        lags = tuple(lag for lag in _LAGS if abs(lag) > least_lag)
        every.append(
            Explanation(f"lag of {name} beside that of the others", car, "timing", lags, "ticks",
                        lagged=column)
        )  # fmt: skip
    for names in [axes, *([name] for name in axes)]:
        columns = tuple(CONTROL_NAMES.index(name) for name in names)
        called = "all sticks" if len(names) > 1 else "".join(names)
        for rest, change in (("", _cut_zone), (", the rest stretched", _stretch_zone)):
            every.append(
                Explanation(f"dead zone of {called}{rest}", car, "controls", _DEAD_ZONES, "of 1",
                            change=partial(change, columns))
            )  # fmt: skip
    for group in (_AXES, _BUTTONS):
        for one, other in combinations(group, 2):
            if one in used or other in used:
                pair = CONTROL_NAMES.index(one), CONTROL_NAMES.index(other)
                every.append(
                    Explanation(f"{one} and {other} swapped", car, "controls", change=partial(_swap, pair))
                )
    sides = tuple(CONTROL_NAMES.index(name) for name in ("steer", "yaw", "roll"))
    if {"steer", "yaw", "roll"} & set(used):
        every.append(Explanation("mirrored axis", car, "frame", change=partial(_invert, sides)))
    return every


def explanations_of_motion() -> list[Explanation]:
    """Return the explanations that change the physics of a car that touches neither ball nor cars."""
    return [
        Explanation(name, None, "physics", (0.4, 2.5), "times", 1.0, 0.05, relevant, mutator=mutator)
        for name, mutator, relevant in (
            ("gravity", "gravity", 0.004),
            ("boost on the ground", "boost_accel_ground", 0.01),
            ("boost in the air", "boost_accel_air", 0.01),
            ("push of a jump", "jump_immediate_force", 0.01),
            ("held jump", "jump_accel", 0.01),
            ("friction of cars", "car_world_friction", 0.05),
        )
    ]


def explanations_of_contacts() -> list[Explanation]:
    """Return the explanations that change what happens where cars touch the ball or each other."""
    return [
        Explanation(name, None, "physics", (0.4, 2.5), "times", 1.0, 0.1, 0.02, mutator=mutator)
        for name, mutator in (
            ("mass of the ball", "ball_mass"),
            ("force of a hit", "ball_hit_extra_force_scale"),
            ("force of a bump", "bump_force_scale"),
        )
    ]


def _apply(change: Change, value: float, rows: np.ndarray) -> np.ndarray:
    return change(rows, value)


def _scale(column: int, rows: np.ndarray, gain: float) -> np.ndarray:
    changed = rows.copy()
    changed[:, column] = np.clip(gain * rows[:, column], -1, 1)
    return changed


def _invert(columns: tuple[int, ...], rows: np.ndarray, _: float) -> np.ndarray:
    changed = rows.copy()
    changed[:, columns] *= -1
    return changed


def _silence(column: int, rows: np.ndarray, _: float) -> np.ndarray:
    changed = rows.copy()
    changed[:, column] = 0
    return changed


def _cut_zone(columns: tuple[int, ...], rows: np.ndarray, zone: float) -> np.ndarray:
    changed = rows.copy()
    changed[:, columns] *= np.abs(rows[:, columns]) >= zone
    return changed


def _stretch_zone(columns: tuple[int, ...], rows: np.ndarray, zone: float) -> np.ndarray:
    changed = rows.copy()
    sticks = rows[:, columns]
    changed[:, columns] = np.sign(sticks) * (np.abs(sticks) - zone).clip(0) / (1 - zone)
    return changed


def _swap(pair: tuple[int, int], rows: np.ndarray, _: float) -> np.ndarray:
    changed = rows.copy()
    changed[:, pair] = rows[:, pair[::-1]]
    return changed
