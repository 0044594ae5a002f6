"""Follow a match with a simulator, which knows what packets do not carry.

The simulator holds the match as it was a tick ago. It is stepped with the inputs that the game applied, its
hidden state is read, and what the packet shows elsewhere is put there. So it never drifts.
"""

import importlib.util
from types import EllipsisType
from typing import Final

import numpy as np

from rlgym_bridge.game import CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.sim.simulator import (
    DEFAULT_SIMULATOR,
    ROCKETSIM2,
    ROCKETSIM3,
    is_installed,
    make_simulator,
    simulator_for,
)
from rlgym_bridge.state import CAR_COLUMNS, KNOWN_FIELDS, MatchState

_MOST_TICKS: Final = 24  # a longer gap is not bridged: inputs change every few ticks
_CAR_LEAP: Final = 40.0  # uu a tick off the prediction: the car was put there (it drives 19 at 2,300 uu/s)
_BALL_LEAP: Final = 100.0  # uu; at 6,000 uu/s it flies 50 a tick
_WHEEL_REACH: Final = 200.0  # uu between the middles of two bodies, one of which may be under a wheel
_NEAR: Final = 20.0  # uu along an axis, at which neither has leapt
_MOST: Final = 1e6  # sum of all numbers of the bodies; in the game each body's stays below 40,000
_BUMP_TICKS: Final = round(0.25 * TICKS_PER_SECOND) + 1
"""Ticks after which no bump is remembered: 0.25 s in RocketSim 2.2.1, half a tick more in RocketSim 3."""

_RULES: Final = (("gravity", 1, 1e-4), ("boost_consumption", 1, 1e-4), ("dodge_deadzone", 1, 1e-4))
_BODY: Final = (
    ("position", 3, 3e-4), ("rotation", 9, 4e-4), ("linear_velocity", 3, 1e-3), ("angular_velocity", 3, 1e-5),
)  # fmt: skip
_COUNTED: Final = (
    ("boost_amount", 1, 5.0),  # games burn it a little differently; what counts is whether some is left
    ("is_demoed", 1, 0.5), ("has_jumped", 1, 0.5), ("is_jumping", 1, 0.5), ("has_flipped", 1, 0.5),
    ("has_double_jumped", 1, 0.5), ("is_supersonic", 1, 0.5),
)  # fmt: skip
"""Fields that are compared: name, count of numbers, and the difference that rounding makes, in the field's
unit. A packet's angles cost up to 3e-4 of a rotation's element; see packets/cars.py."""

_BODY_SIZE: Final = sum(count for _, count, _ in _BODY)
_ROTATION: Final = slice(3, 12)  # of a body
_STEP: Final = 1e-5  # of a rotation's element, to which RocketSim 3 rounds
_THROTTLE, _BOOST = map(CONTROL_NAMES.index, ("throttle", "boost"))
_WHEELS, _AUTOFLIP, _VICTIM = (
    KNOWN_FIELDS.index(name) for name in ("wheels_with_contact", "is_autoflipping", "bump_victim")
)


class StateEstimator:
    """A simulation that follows one match.

    RocketSim 2.2.1 takes the place of RocketSim 3 where that is not installed, and in modes other than
    Soccar; `simulator` None is the default. Raises FileNotFoundError without collision meshes, ImportError
    without RocketSim, ValueError for more than four cars in a team or another mode, RuntimeError as
    `make_arena`.
    """

    def __init__(self, blue: int, orange: int, mode: str = "Soccar", simulator: str | None = None) -> None:
        self._mode, self._name = mode, self.choose_simulator(mode, simulator)
        self._make(blue, orange)

    @staticmethod
    def is_installed() -> bool:
        """Tell whether RocketSim is installed."""
        return importlib.util.find_spec("RocketSim") is not None

    @staticmethod
    def choose_simulator(mode: str, name: str | None) -> str:
        """Return the name of the simulator that follows a match of a mode; None is the default."""
        name = DEFAULT_SIMULATOR if name is None else name
        if name == ROCKETSIM3 and (mode != "Soccar" or not is_installed(ROCKETSIM3)):
            return ROCKETSIM2
        return name

    @staticmethod
    def explain_no_forecast(mode: str, name: str | None) -> str | None:
        """Return a sentence that says why a match cannot be forecast; None where it can."""
        if StateEstimator.choose_simulator(mode, name) == ROCKETSIM3:
            return None
        return simulator_for(mode)[1] or f"the match is followed by {name}, expected {ROCKETSIM3}"

    def _make(self, blue: int, orange: int) -> None:
        self._simulator = make_simulator(self._name, 1, blue, orange, mode=self._mode)
        self._lifts_throttle = self._name == ROCKETSIM2
        cars = blue + orange
        self._no_delay = np.zeros((1, cars), np.int64)
        self._numbers = _ComparedNumbers(self._simulator.state, rounds=self._name == ROCKETSIM3)
        self._simulated = _HiddenFields(self._simulator.state)
        self._state: MatchState | None = None
        self._follows = False
        self._wrecks, self._has_wrecks = np.zeros(cars, bool), False  # in the latest packet
        self._flips = [0.0] * cars  # auto-flips in the latest packet; only kept while there is a doubt
        self._is_blind = np.zeros(cars, bool)  # in the next tick RocketSim 2.2.1 feels no body under a wheel
        self._known = np.zeros((cars, 3), np.float32)  # wheels, auto-flips, bump victims
        self._victim_doubt = [_BUMP_TICKS] * cars  # ticks until no bump can be remembered that was not seen
        self._doubtful = self._waits = True  # something is not known; something besides auto-flips

    def follow(self, state: MatchState) -> None:
        """Take over the line-up of a state; the next state that is refined is the first one.

        Raises ValueError if a car is of no team; FileNotFoundError, RuntimeError as for the constructor; the
        line-up before stays.
        """
        layout, teams = state.layout, state.car_team[0].tolist()
        if teams != [0] * layout.blue + [1] * layout.orange:
            raise ValueError(f"cars are of the teams {teams}, expected 0 (blue) first, then 1 (orange)")
        if layout is not self._simulator.state.layout:
            self._make(layout.blue, layout.orange)
        self.forget()

    def forget(self) -> None:
        """Take the next state as the first, for it does not follow from the last one."""
        self._follows = False

    def refine(self, state: MatchState, ticks: int, at_rest: bool, wrecks_moved: bool = False) -> list[int]:
        """Fill in what is hidden, in place: wheels, auto-flips, bump victims, and what follows from them.

        `state` has what a packet carries, `ticks` after the last one, 0 for the same tick once more.
        `at_rest`: all cars have just been placed. `wrecks_moved`: packets do not show the places of
        demolished cars.

        Return each car's ticks of ball contact in a gap of several ticks, as simulated; empty for no gap.
        """
        if state is not self._state:  # another object is read and written from now on
            self._state, self._shown = state, _HiddenFields(state)
            self._rows = state.car_controls[:, :, None]
            self._numbers.look_at(state)
        again = self._follows and ticks == 0
        stepped = self._follows and not at_rest and 0 < ticks <= _MOST_TICKS
        try:
            if stepped:
                self._step(state, ticks)
            agrees = self._numbers.agree() and not self._has_wrecks
            if (again or (stepped and ticks == 1)) and (agrees or self._is_little_off(state, wrecks_moved)):
                if self._doubtful and stepped:
                    self._count(1, ...)
                self._shown.take(self._simulated, ...)
                self._shown.tell(self._known)
                if not agrees:
                    self._nudge(state)
            elif self._numbers.are_possible():
                self._correct(state, ticks if stepped or again else -1, at_rest, wrecks_moved)
            else:
                self.forget()
        except (ValueError, RuntimeError):  # the simulator is not made for such numbers
            self.forget()
        if not self._follows:
            self._shown.tell(np.zeros_like(self._known))
        elif stepped and ticks > 1:
            return list(map(int, self._simulator.state.car_ball_touches[0].tolist()))
        return []

    def forecast(self, rows: np.ndarray, ahead: MatchState) -> bool:
        """Step a copy of the followed match on, by `rows` `(1, cars, ticks, 8)` float32 that act at once.

        `ahead`, equal to the state refined last, comes out some ticks later. Return False where no match is
        followed, or not by RocketSim 3.
        """
        if not self._follows:
            return False
        try:
            self._simulator.forecast([0], rows, ahead)
        except (ValueError, RuntimeError):  # the simulator is not made for such numbers
            return False
        return True

    def _step(self, state: MatchState, ticks: int) -> None:
        rows = self._rows
        if self._lifts_throttle:  # in the game boost includes full throttle
            controls = state.car_controls[0]
            lacks = (controls[:, _BOOST] > 0) & (controls[:, _THROTTLE] != 1)
            if lacks.any():
                rows = rows.copy()
                rows[0, lacks & (self._simulator.state.car_boost_amount[0] > 0), 0, _THROTTLE] = 1
        if ticks == 1:
            self._simulator.step(rows, self._no_delay)
            return
        # A car begins to turn itself over on its roof alone, where it is before the gap or after it.
        on_roof = self._simulator.state.car_rotation[0, :, 2, 2] < 0
        on_roof |= state.car_rotation[0, :, 2, 2] < 0
        self._simulator.step(np.broadcast_to(rows, (*rows.shape[:2], ticks, 8)), self._no_delay)
        self._known[on_roof, 1] = 0

    def _is_little_off(self, state: MatchState, wrecks_moved: bool) -> bool:
        """Tell whether nothing but bodies differs from the simulation, none by much, and no car is new."""
        wrecks = state.car_is_demoed[0] > 0
        if wrecks.any():
            self._numbers.bodies_agree[1:][wrecks] = True  # they stay where they are simulated
            if wrecks_moved:
                return False
        return self._numbers.are_near() and wrecks.tobytes() == self._wrecks.tobytes()

    def _correct(self, state: MatchState, ticks: int, at_rest: bool, wrecks_moved: bool) -> None:
        """Take over a state that the simulation does not predict, or, with `ticks` -1, any."""
        simulated, wrecks = self._simulator.state, state.car_is_demoed[0] > 0
        new = (self._wrecks & ~wrecks & (ticks > 0)) | at_rest
        followed = np.full(len(wrecks), ticks >= 0)
        if ticks > 0:
            off = np.linalg.norm(state.car_position[0] - simulated.car_position[0], axis=1)
            followed = ~new & (wrecks | (off <= _CAR_LEAP * ticks))
        leapt = ticks > 0 and not (followed | new).all()
        if ticks != 0:
            self._wrecks, self._has_wrecks = wrecks, bool(wrecks.any())
            self._count(ticks, followed)
            for car in np.flatnonzero(~followed).tolist():
                self._flips[car], self._known[car] = 0.0, new[car]
                self._known[car, 0] *= ticks <= 1  # it may have fallen onto its wheels in a gap
                self._victim_doubt[car] = 0 if new[car] else _BUMP_TICKS
        ball_off = np.abs(state.ball_position[0] - simulated.ball_position[0]).max()
        if leapt or (ticks > 0 and ball_off >= _BALL_LEAP):
            self._known[:, 0] = 0  # what was put elsewhere may have carried the wheels of a car
        self._shown.take(self._simulated, followed)
        if wrecks_moved:
            for name, *_ in _BODY:
                ours, theirs = getattr(state, f"car_{name}")[0], getattr(simulated, f"car_{name}")[0]
                ours[wrecks & followed] = theirs[wrecks & followed]
        was_put = self._place(state, wrecks, ticks >= 0 and not leapt)
        if ticks >= 0 and was_put:  # the simulator remembers no bumps, and who leapt may have bumped at once
            self._victim_doubt[:] = [_BUMP_TICKS] * len(wrecks)
        if was_put and self._name == ROCKETSIM2:  # and so may the match have been
            cars = simulated.car_position[0]
            others = np.vstack([cars, simulated.ball_position])
            near = np.linalg.norm(cars[:, None] - others, axis=2) < _WHEEL_REACH
            self._is_blind = near.sum(axis=1) > 1  # each is near itself
            self._known[self._is_blind, 0] = 0
        self._look_for_doubts()
        self._shown.tell(self._known)
        self._follows = True

    def _count(self, ticks: int, cars: np.ndarray | EllipsisType) -> None:
        """Count on what is known of some cars, whose hidden state was simulated."""
        flips = self._simulated.flips.tolist()
        if ticks == 1 and flips == self._flips and not self._waits:
            return
        self._known[cars, 0] = ticks == 1
        self._known[self._is_blind, 0] = 0
        self._is_blind[:] = False
        victims = self._simulated.victims.tolist()
        for car, is_wreck in enumerate(self._wrecks.tolist()):
            if ticks > 1:
                self._victim_doubt[car] = _BUMP_TICKS
            else:
                if flips[car] > self._flips[car]:
                    self._known[car, 1] = 1  # it has begun now
                if self._victim_doubt[car] and not is_wreck:  # the memory of a wreck stands still
                    # A bump that begins now may have begun before, unseen, and end before.
                    bumps = victims[car] >= 0
                    self._victim_doubt[car] = _BUMP_TICKS if bumps else self._victim_doubt[car] - 1
        self._flips = flips
        self._look_for_doubts()

    def _look_for_doubts(self) -> None:
        self._known[:, 2] = [doubt == 0 for doubt in self._victim_doubt]
        self._doubtful = not self._known.all()
        self._waits = not self._known[:, ::2].all()

    def _place(self, state: MatchState, wrecks: np.ndarray, keeps: bool) -> bool:
        """Put what the state has elsewhere there; return whether the whole match was put anew."""
        numbers = self._numbers
        if not keeps:
            self._simulator.put([0], state)
            return True
        numbers.bodies_agree[1:][wrecks & numbers.counted_agree.all(axis=1)] = True
        if numbers.rules_agree.all() and numbers.counted_agree.all():
            self._nudge(state)
            return False
        self._simulator.put([0], numbers.corrected(state))
        return True

    def _nudge(self, state: MatchState) -> None:
        """Move the bodies that the state has elsewhere."""
        desired = self._numbers.corrected(state)
        moved = ~self._numbers.bodies_agree.all(axis=1)
        if moved.any():
            self._simulator.nudge([0], desired, bool(moved[0]), moved[None, 1:])


class _HiddenFields:
    """The numbers of one match that packets do not carry, as views of a state."""

    def __init__(self, state: MatchState) -> None:
        layout = state.layout
        cars = state.buffer[0, layout.car_start :].reshape(layout.cars, layout.car_stride)
        first, last = CAR_COLUMNS["is_autoflipping"], CAR_COLUMNS["bump_victim"]
        self.autoflips, self.flips = cars[:, first : last + 1], cars[:, first]
        self.victims = cars[:, last]
        self.wheels, self.on_ground = state.car_wheels_with_contact[0], state.car_on_ground[0]
        self._holds_jump, self._has_flip = state.car_is_holding_jump[0], state.car_has_flip[0]
        self._can_flip, known = state.car_can_flip[0], state.car_known[0]
        self._known = known[:, _WHEELS], known[:, _AUTOFLIP : _VICTIM + 1]

    def take(self, other: "_HiddenFields", cars: np.ndarray | EllipsisType) -> None:
        """Become equal to another state for some cars, with what follows from it."""
        if self.autoflips.tobytes() != other.autoflips.tobytes():
            self.autoflips[cars] = other.autoflips[cars]
        if self.wheels.tobytes() != other.wheels.tobytes():
            self.wheels[cars] = other.wheels[cars]
            self.on_ground[cars] = other.on_ground[cars]
            np.greater(self._has_flip, np.maximum(self.on_ground, self._holds_jump), out=self._can_flip)

    def tell(self, known: np.ndarray) -> None:
        """Write what is known: `(cars, 3)`, of wheels, auto-flips and bump victims."""
        self._known[0][...] = known[:, 0]
        self._known[1][...] = known[:, 1:]


class _ComparedNumbers:
    """The numbers of one match that packets show and the simulator foresees, side by side.

    Of the latest comparison `rules_agree` `(3,)`, `bodies_agree` `(1 + cars, 18)`, ball first, and
    `counted_agree` `(cars, 7)` are bool; a rotation agrees as a whole. With `rounds` small errors vanish.
    """

    def __init__(self, simulated: MatchState, rounds: bool) -> None:
        layout = simulated.layout
        cars = range(layout.cars)
        fields: list[tuple[tuple[str, int, float], int | None]] = [(one, None) for one in _RULES]
        fields += [((f"ball_{name}", size, off), None) for name, size, off in _BODY]
        fields += [(one, car) for car in cars for one in _BODY]
        fields += [(one, car) for car in cars for one in _COUNTED]
        # Compared with 0, so that a wreck never agrees: more is to be done then.
        fields += [(("is_demoed", 1, 0.5), car) for car in cars]
        self._columns = np.array(
            [layout.column(name, at, car) for (name, size, _), car in fields for at in range(size)]
        )
        sizes = [size for (_, size, _), _ in fields]
        self._tolerances = np.repeat([off for (*_, off), _ in fields], sizes).astype(np.float32)
        size = sum(sizes)
        self._row, self._desired = simulated.buffer[0], MatchState(layout.blue, layout.orange)
        self._theirs = np.zeros(size, np.float32)
        self._their_columns = self._columns[: size - layout.cars]
        self._taken = self._theirs[: size - layout.cars]
        self._differences, agree = np.empty(size, np.float32), np.empty(size, bool)
        self._agree, self._all = agree, bytes([1]) * size
        bodies = slice(len(_RULES), len(_RULES) + (1 + layout.cars) * _BODY_SIZE)
        self._rotation_columns = self._columns[bodies].reshape(-1, _BODY_SIZE)[:, _ROTATION]
        self._body_differences = self._differences[bodies].reshape(-1, _BODY_SIZE)
        self._step = _STEP if rounds else 0.0
        if not rounds:  # an error, however small, would stay
            tolerances = self._tolerances[bodies].reshape(-1, _BODY_SIZE)
            tolerances[:, : _ROTATION.start] = tolerances[:, _ROTATION.stop :] = 0
        self.rules_agree = agree[: len(_RULES)]
        self.bodies_agree = agree[bodies].reshape(-1, _BODY_SIZE)
        self.counted_agree = agree[bodies.stop : size - layout.cars].reshape(-1, len(_COUNTED))

    def look_at(self, state: MatchState) -> None:
        self._shown = state.buffer[0]

    def agree(self) -> bool:
        """Tell whether all numbers are equal but for rounding, and no car is demolished."""
        ours = self._differences
        self._shown.take(self._columns, 0, ours, "clip")
        self._row.take(self._their_columns, 0, self._taken, "clip")
        np.subtract(ours, self._theirs, ours)
        np.absolute(ours, ours)
        np.less_equal(ours, self._tolerances, self._agree)  # NaN is not
        if self._agree.tobytes() == self._all:
            return True
        # Where a body has to be moved, its rotation is as the packet has it unless they are the same.
        bodies, rotations = self.bodies_agree, self.bodies_agree[:, _ROTATION]
        is_there = bodies[:, : _ROTATION.start].all(axis=1) & bodies[:, _ROTATION.stop :].all(axis=1)
        is_there |= self._body_differences[:, _ROTATION].max(axis=1) < self._step
        is_there &= rotations.all(axis=1)
        rotations &= is_there[:, None]
        return False

    def are_near(self) -> bool:
        """Tell whether rules and counted numbers agree, and all bodies are near where they were foreseen."""
        off = self._body_differences
        return bool(
            self.rules_agree.all()
            and self.counted_agree.all()
            and off[:, :3].max() < _NEAR  # NaN is not
            and off.max() < _MOST
        )

    def are_possible(self) -> bool:
        """Tell whether the numbers that packets show are finite, and of a size that the game has."""
        return bool(np.abs(self._shown[self._columns]).sum(dtype=float) < _MOST)  # NaN is not

    def corrected(self, state: MatchState) -> MatchState:
        """Return a state with the simulated rotations where they agree, for packets' have been rounded."""
        np.copyto(self._desired.buffer, state.buffer)
        columns = self._rotation_columns[self.bodies_agree[:, _ROTATION.start]]
        self._desired.buffer[0, columns] = self._row[columns]
        return self._desired
