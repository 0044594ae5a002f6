"""Compare observations made of the simulator's state with those made of packets, number by number."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from rlgym_bridge.compare.mirror import turn
from rlgym_bridge.components.batch_form import works_in_batches
from rlgym_bridge.components.episode import ComponentCalls
from rlgym_bridge.components.spec import Components
from rlgym_bridge.policy.fingerprint import same_draws
from rlgym_bridge.state import CAR_FIELDS, MATCH_FIELDS, MatchState
from rlgym_bridge.trials.mismatches import TOLERANCE, Parity, differs

ROTATION_TOLERANCE: Final = 3e-4
"""Of an element of a rotation matrix: packets hold float32 angles, worst within a degree of vertical."""

COUNTED_TOLERANCE: Final = 2.5e-4
"""Of a time in s, 0.03 ticks: float32 rounds each of the 1,200 steps in which 10 s are counted down."""

_COUNTED: Final = (
    "pad_timer", "car_demo_respawn_timer", "car_supersonic_time", "car_boost_active_time", "car_handbrake",
    "car_jump_time", "car_air_time_since_jump", "car_flip_time", "car_autoflip_timer",
)  # fmt: skip
_SYMMETRY_EVERY: Final = 25  # decisions: an environment of one's own may take long to make
_NOT_OBSERVED: Final = (
    "car_known", "car_player_id", "frame", "phase", "clock", "overtime", "score", "car_controls",
)  # fmt: skip


class WorldSide:
    """Components that see one of the two worlds.

    Args:
        parts: Components of their own.

    Attributes:
        parts: As given.

    Raises:
        ValueError: There is no observation builder.
    """

    def __init__(self, parts: Components) -> None:
        if parts.obs_builder is None:
            raise ValueError("there is no observation builder to compare")
        self.parts = parts
        self._calls = ComponentCalls(parts, (parts.obs_builder, parts.parser))
        self._size: int | None = None

    def observe(self, state: MatchState, began: bool) -> np.ndarray:
        """Return the observations of all cars, `(cars, size)` float32.

        Args:
            state: One match.
            began: Whether an episode begins on it.

        Raises:
            ValueError: A number is not finite, or there are more or fewer than before.
        """
        if began:
            with same_draws():
                self._calls.begin(state, range(state.layout.cars))
        else:
            self._calls.step(state)
        observations = self._calls.observe()
        assert observations is not None  # checked by the constructor
        shown: np.ndarray = observations[0]
        name = type(self.parts.obs_builder).__name__
        if not np.isfinite(shown).all():
            car, number = np.argwhere(~np.isfinite(shown))[0].tolist()
            raise ValueError(
                f"{name} shows {state.agents[car]} {shown[car, number]} as number {number}, "
                "expected a finite one"
            )
        if self._size not in (None, shown.shape[1]):
            raise ValueError(f"{name} gave {self._size} numbers and then {shown.shape[1]}, expected as many")
        self._size = shown.shape[1]
        return shown

    def parse(self, actions: np.ndarray) -> list[np.ndarray]:
        """Return the parser's rows for each car, on the state observed last.

        Args:
            actions: `(1, cars)` or `(1, cars, k)`; the parser gets a copy.
        """
        return self._calls.parse(actions.copy())


class NumberNames:
    """Names of the numbers in an observation.

    Args:
        components: Makes the components whose observations are named.
    """

    def __init__(self, components: Callable[[], Components]) -> None:
        self._make = components
        builder: Any = components().obs_builder
        self._names = builder.names if works_in_batches(builder) and hasattr(builder, "names") else None
        self._sources: dict[tuple[int, int], str] = {}

    def plain(self, state: MatchState, car: int, number: int) -> str:
        """Return the builder's own name of a number; else its index."""
        if self._names is None:
            return f"number {number}"
        return str(self._names(state.layout.blue, state.layout.orange, car)[number])

    def explained(self, state: MatchState, seen: MatchState, car: int, number: int) -> str:
        """Return the builder's own name of a number; else its index, and the fields that it differs by."""
        if self._names is not None:
            return self.plain(state, car, number)
        if (car, number) not in self._sources:
            differing = _differing_fields(state, seen)
            fields = [name for name in differing if self._depends(state, seen, name, car, number)]
            self._sources[car, number] = ", ".join(fields or differing) or "no field of the state differs"
        return f"number {number} ({self._sources[car, number]})"

    def _depends(self, state: MatchState, seen: MatchState, name: str, car: int, number: int) -> bool:
        """Tell whether fresh components show another number where one field is as in the packet."""
        changed = state.copy()
        getattr(changed, name)[:] = getattr(seen, name)
        before, after = (
            WorldSide(self._make()).observe(shown, True)[car, number] for shown in (state, changed)
        )
        return bool(before != after)


class SymmetryCheck:
    """Checks that orange is shown what blue is shown in the same match turned by 180 degrees.

    Args:
        parity: Where differences are counted.
        components: Makes the components.
        names: Names of their numbers.
    """

    def __init__(self, parity: Parity, components: Callable[[], Components], names: NumberNames) -> None:
        self._parity, self._make, self._names = parity, components, names
        self._states = 0

    def look(self, state: MatchState) -> None:
        """Check one state in 25 of equal teams; builders, which may remember, are fresh ones each time."""
        self._states += 1
        if state.layout.blue != state.layout.orange or self._states % _SYMMETRY_EVERY != 1:
            return
        blue = state.layout.blue
        as_is, turned = (WorldSide(self._make()).observe(one, True) for one in (state, turn(state)))
        expected = np.concatenate([turned[blue:], turned[:blue]])  # the teams change sides
        self._parity.samples += len(expected)
        self._parity.numbers += expected.size
        difference = np.abs(as_is - expected)
        for car, number in np.argwhere(differs(difference, expected)).tolist():
            name = f"mirrored: {self._names.plain(state, car, number)}"
            self._parity.note(name, float(difference[car, number]))


def compare_observations(
    parity: Parity,
    names: NumberNames,
    ours: np.ndarray,
    theirs: np.ndarray,
    state: MatchState,
    seen: MatchState,
) -> None:  # fmt: skip
    """Count where the observations of the two worlds differ.

    Args:
        parity: Where differences are counted.
        names: Names of the numbers.
        ours: `(cars, size)`, made of the simulator's state.
        theirs: `(cars, size)`, made of the packet's.
        state: The simulator's state.
        seen: The packet's.
    """
    parity.samples += len(ours)
    parity.numbers += ours.size
    if ours.shape != theirs.shape:
        parity.note(f"size of the observation: {ours.shape[1]} and {theirs.shape[1]}", 0.0)
        return
    difference = np.abs(ours - theirs)
    for car, number in np.argwhere(differs(difference, ours)).tolist():
        parity.note(names.explained(state, seen, car, number), float(difference[car, number]))


def round_as_seen(state: MatchState, seen: MatchState) -> None:
    """Put the packet's rotations and times into the simulator's state, in place, where only rounding differs.

    A builder may enlarge a difference: 1 / (1 + x) of a pad's timer has one of 2.5e-5.
    """
    tolerances = dict.fromkeys(("ball_rotation", "car_rotation"), ROTATION_TOLERANCE)
    for name, tolerance in (tolerances | dict.fromkeys(_COUNTED, COUNTED_TOLERANCE)).items():
        mine, theirs = getattr(state, name), getattr(seen, name)
        np.copyto(mine, theirs, where=np.abs(mine - theirs) <= tolerance)


def _differing_fields(state: MatchState, seen: MatchState) -> list[str]:
    """Return the names of the fields in which two states differ."""
    names = [field.name for field in MATCH_FIELDS] + ["car_" + field.name for field in CAR_FIELDS]
    return [
        name for name in names
        if name not in _NOT_OBSERVED and not np.allclose(
            getattr(state, name), getattr(seen, name), atol=TOLERANCE, rtol=TOLERANCE, equal_nan=False
        )
    ]  # fmt: skip
