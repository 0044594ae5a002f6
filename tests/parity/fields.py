"""Game states as rows of numbers, and where two of them differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rlgym.rocket_league.api import GameState

from rlgym_bridge.state import KNOWN_FIELDS, MatchState

TOLERANCES = {
    "position": (2e-3, "uu; float32 at 5,000 uu resolves 5e-4"),
    "linear_velocity": (2e-3, "uu/s; as for position"),
    "angular_velocity": (2e-4, "rad/s"),
    "rotation_mtx": (5e-6, "Euler angles in float32"),
    "boost_pad_timers": (2e-4, "s; RocketSim sums float32 ticks"),
    "default": (2e-4, "s, or the field's own unit"),
}
"""Distances by which numbers may be off, and why."""

_CAR_FIELDS = (
    "team_num", "hitbox_type", "ball_touches", "bump_victim_id", "demo_respawn_timer",
    "wheels_with_contact", "supersonic_time", "boost_amount", "boost_active_time", "handbrake",
    "is_jumping", "has_jumped", "is_holding_jump", "jump_time", "has_flipped", "has_double_jumped",
    "air_time_since_jump", "flip_time", "flip_torque", "is_autoflipping", "autoflip_timer",
    "autoflip_direction", "is_demoed", "is_boosting", "is_supersonic", "on_ground", "has_flip",
    "can_flip", "is_flipping",
)  # fmt: skip
_PHYSICS_FIELDS = ("position", "linear_velocity", "angular_velocity", "rotation_mtx")

_DEPENDS_ON = {
    "wheels_with_contact": ("wheels_with_contact", "on_ground", "can_flip"),
    "supersonic_time": ("supersonic_time",),
    "boost_active_time": ("boost_active_time", "is_boosting"),
    "handbrake": ("handbrake",),
    "jump_time": ("jump_time",),
    "air_time_since_jump": ("air_time_since_jump", "has_flip", "can_flip"),
    "is_autoflipping": ("is_autoflipping", "autoflip_timer", "autoflip_direction"),
    "bump_victim": ("bump_victim_id",),
    "ball_touches": ("ball_touches",),
}
"""RLGym's fields that are known only where one of `KNOWN_FIELDS` is."""


def _fields(cars: int) -> list[tuple[str, int]]:
    """Return name and width of each field, in the order of `row_of`."""
    physics = [(name, 9 if name == "rotation_mtx" else 3) for name in _PHYSICS_FIELDS]
    wide = {"wheels_with_contact": 4, "flip_torque": 3}
    found = [("goal_scored", 1), ("boost_pad_timers", 34)]
    found += [(f"ball.{name}", width) for name, width in physics]
    one_car = [(f"car.{name}", wide.get(name, 1)) for name in _CAR_FIELDS]
    return found + cars * (one_car + [(f"car.{name}", width) for name, width in physics])


def row_of(game: GameState[Any]) -> list[float]:
    """Return all numbers of a game state, cars in their order."""
    numbers: list[float] = [float(game.goal_scored), *game.boost_pad_timers.tolist()]
    numbers += _physics(game.ball)
    order = list(game.cars)
    for car in game.cars.values():
        for name in _CAR_FIELDS:
            value = getattr(car, name)
            if name == "bump_victim_id":
                numbers.append(-1.0 if value is None else float(order.index(value)))
            elif name in ("wheels_with_contact", "flip_torque"):
                numbers += [float(one) for one in value]
            else:
                numbers.append(float(value))
        numbers += _physics(car.physics)
    return numbers


def _physics(body: Any) -> Iterator[float]:
    for name in _PHYSICS_FIELDS:
        yield from np.asarray(getattr(body, name), np.float64).ravel().tolist()


def known_of(state: MatchState, judged: Sequence[str] = ()) -> list[bool]:
    """Return, for each number of `row_of`, whether the state says that it is known.

    Fields of `judged`, of `KNOWN_FIELDS`, are compared though the state calls them estimates.
    """
    names = _fields(state.layout.cars)
    flags = state.car_known[0] > 0
    spent = (state.car_has_flipped[0] > 0) | (state.car_has_double_jumped[0] > 0)
    flags[:, [KNOWN_FIELDS.index(name) for name in judged]] = True
    known, car = [], -1
    for name, width in names:
        if name == f"car.{_CAR_FIELDS[0]}":
            car += 1
        needs = _NEEDS.get(name.removeprefix("car."), ()) if name.startswith("car.") else ()
        sure = all(flags[car, index] for index in needs)
        # A dodge that was used is no longer there, however long the car has been in the air.
        known += [sure or (name == "car.has_flip" and bool(spent[car]))] * width
    return known


_NEEDS = {
    name: tuple(index for index, one in enumerate(KNOWN_FIELDS) if name in _DEPENDS_ON[one])
    for name in _CAR_FIELDS
}


@dataclass
class Tally:
    """One field over a run.

    `samples` are the values compared, one a tick, or one a car and tick; `mismatches` those known and off by
    more than the tolerance; `unknown` those that the state does not claim to know, `guessed` the wrong ones
    of these. Mismatches of wheels over a demolished car, which RocketSim leaves lying about invisibly, are
    counted as `wrecks` alone, those of wheels within 0.2 uu of touching the ball or leaving it as `edges`.
    `worst` is the largest difference, `longest` in ticks without a break, `first` the frame of the first.
    """

    samples: int = 0
    mismatches: int = 0
    unknown: int = 0
    guessed: int = 0
    wrecks: int = 0
    edges: int = 0
    worst: float = 0.0
    longest: int = 0
    first: int | None = None


@dataclass
class Comparison:
    """Compares rows of one reader with the engine's, tick by tick; `tallies` are by field, after `finish`."""

    cars: int
    tallies: dict[str, Tally] = field(default_factory=dict)
    _ticks: list[tuple[int, list[float], list[float], list[bool], list[bool], list[bool]]] = field(
        default_factory=list
    )
    _running: np.ndarray | None = None

    def add(
        self, frame: int, engine: list[float], reader: list[float], known: list[bool] | None,
        over_wreck: list[bool], at_edge: list[bool],
    ) -> None:  # fmt: skip
        """Add a tick: the engine's row, the reader's, what that knows; cars whose wheels are hard to tell."""
        sure = [True] * len(engine) if known is None else known
        self._ticks.append((frame, engine, reader, sure, over_wreck, at_edge))
        if len(self._ticks) >= 2000:
            self.finish()

    def finish(self) -> dict[str, Tally]:
        """Take in all that was added."""
        if not self._ticks:
            return self.tallies
        frames, theirs, ours, known, wrecks, edges = map(np.array, zip(*self._ticks, strict=True))
        difference, start, car = np.abs(theirs - ours), 0, -1
        fields = _fields(self.cars)
        if self._running is None:
            self._running = np.zeros(len(fields), int)
        for number, (name, width) in enumerate(fields):
            part = slice(start, start + width)
            car += name == f"car.{_CAR_FIELDS[0]}"
            start += width
            tolerance = TOLERANCES.get(name.split(".")[-1], TOLERANCES["default"])[0]
            off = ~(difference[:, part].max(1) <= tolerance)  # NaN is off
            sure = known[:, part].all(1)
            tally = self.tallies.setdefault(name, Tally())
            tally.samples += len(off)
            tally.unknown += int((~sure).sum())
            tally.guessed += int((off & ~sure).sum())
            wrong = off & sure
            if name.removeprefix("car.") in _DEPENDS_ON["wheels_with_contact"]:
                tally.wrecks += int((wrong & wrecks[:, car]).sum())
                wrong &= ~wrecks[:, car]
                tally.edges += int((wrong & edges[:, car]).sum())
                wrong &= ~edges[:, car]
            tally.mismatches += int(wrong.sum())
            if wrong.any():
                tally.worst = max(tally.worst, float(difference[wrong, part].max()))
                if tally.first is None:
                    tally.first = int(frames[wrong.argmax()])
            for one in wrong.tolist():
                self._running[number] = self._running[number] + 1 if one else 0
                tally.longest = max(tally.longest, int(self._running[number]))
        self._ticks.clear()
        return self.tallies

    def wrong(self) -> dict[str, Tally]:
        """Return the fields that have mismatches."""
        return {name: tally for name, tally in self.finish().items() if tally.mismatches}
