"""Follow a match with a simulator, which knows what packets do not carry.

    state of tick N (counted)  -> refine -> the same, with wheels, auto-flips and bumps of tick N

The simulator holds the match as it was a tick ago. It is stepped with the inputs that the game applied, its
hidden state is read, and what the packet shows elsewhere is put there. So it never drifts: an error lasts
a tick.
"""

import importlib.util
from types import EllipsisType
from typing import Final

import numpy as np

from rlgym_bridge.game import CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.sim.game_rules import DEFAULT, ROCKETSIM
from rlgym_bridge.sim.simulator import (
    DEFAULT_SIMULATOR,
    ROCKETSIM2,
    ROCKETSIM3,
    DeadMatches,
    SimulatorError,
    check_simulator,
    make_simulator,
)
from rlgym_bridge.state import KNOWN_FIELDS, MatchState, layout_of

_MOST_TICKS: Final = 24  # a longer gap is not bridged: inputs change every few ticks
_CAR_LEAP: Final = 40.0  # uu a tick off the prediction: the car was put there (it drives 19 at 2,300 uu/s)
_BALL_LEAP: Final = 100.0  # uu; at 6,000 uu/s it flies 50 a tick
_MOST: Final = 1e6  # sum of all numbers of the bodies; in the game each body's stays below 40,000
_BUMP_TICKS: Final = round(0.25 * TICKS_PER_SECOND) + 1
"""Ticks after which no bump is remembered: 0.25 s in RocketSim 2.2.1, half a tick more in RocketSim 3."""

_RULES: Final = (("gravity", 1, 1e-4), ("boost_consumption", 1, 1e-4), ("dodge_deadzone", 1, 1e-4))
_BODY: Final = (
    ("position", 3, 1e-3), ("rotation", 9, 1e-3), ("linear_velocity", 3, 1e-3), ("angular_velocity", 3, 1e-5),
)  # fmt: skip
_COUNTED: Final = (
    ("boost_amount", 1, 1.0),  # games burn it a little differently; what counts is whether some is left
    ("is_demoed", 1, 0.5), ("has_jumped", 1, 0.5), ("is_jumping", 1, 0.5), ("has_flipped", 1, 0.5),
    ("has_double_jumped", 1, 0.5), ("is_supersonic", 1, 0.5),
)  # fmt: skip
"""Fields that are compared: name, count of numbers, and the difference that rounding makes, in the field's
unit. A packet's angles cost up to 1e-3 of a rotation's element; see packets/rotation.py."""

_BODY_SIZE: Final = sum(count for _, count, _ in _BODY)
_CAR_SIZE: Final = _BODY_SIZE + len(_COUNTED)
_ROTATION: Final = slice(3, 12)  # of a body
_BOOST: Final = CONTROL_NAMES.index("boost")
_IS_THROTTLE: Final = np.array([name == "throttle" for name in CONTROL_NAMES])
_WHEELS, _AUTOFLIP, _VICTIM = (
    KNOWN_FIELDS.index(name) for name in ("wheels_with_contact", "is_autoflipping", "bump_victim")
)


class StateEstimator:
    """A simulation that follows one match.

    Args:
        blue: Cars of the blue team.
        orange: Cars of the orange team.
        mode: Name of the game mode: Soccar, Heatseeker or Snowday.
        simulator: One of `simulator.SIMULATORS`; None for the default. RocketSim 2.2.1 takes the place of
            RocketSim 3 where that is not installed, and in modes other than Soccar.

    Raises:
        FileNotFoundError: The collision meshes are not installed.
        ImportError: RocketSim is not installed.
        ValueError: There are more than four cars in a team, or the mode is another one.
        RuntimeError: RocketSim 2.2.1 did not give the cars their order; see `arena.make_arena`.
    """

    def __init__(self, blue: int, orange: int, mode: str = "Soccar", simulator: str | None = None) -> None:
        self._mode, self._name = mode, _choose_simulator(mode, simulator)
        self._make(blue, orange)

    @staticmethod
    def is_installed() -> bool:
        """Tell whether RocketSim is installed."""
        return importlib.util.find_spec("RocketSim") is not None

    def _make(self, blue: int, orange: int) -> None:
        rules = DEFAULT if self._name == ROCKETSIM2 else ROCKETSIM
        self._simulator = make_simulator(self._name, 1, blue, orange, mode=self._mode, rules=rules)
        cars = blue + orange
        self._no_delay = np.zeros((1, cars), np.int64)
        self._numbers = _ComparedNumbers(self._simulator.state)
        self._simulated = _HiddenFields(self._simulator.state)
        self._desired = MatchState(blue, orange)
        self._state: MatchState | None = None
        self._follows = False
        self._wrecks = np.zeros(cars, bool)  # in the latest packet
        self._flips = [False] * cars  # auto-flips in the latest packet; only kept while there is a doubt
        self._known = np.zeros((cars, 3), np.float32)  # wheels, auto-flips, bump victims
        self._victim_doubt = [_BUMP_TICKS] * cars  # ticks until no bump can be remembered that was not seen
        self._doubtful = True  # something is not known

    def follow(self, state: MatchState) -> None:
        """Take over the line-up of a state; the next state that is refined is the first one.

        Args:
            state: Any state with these cars.

        Raises:
            ValueError: A car is of no team.
            FileNotFoundError, RuntimeError: As for the constructor; the line-up before stays.
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

        Args:
            state: One match: what a packet carries, and what was counted.
            ticks: Ticks since the last state; 0 for the same tick once more.
            at_rest: Whether all cars have just been placed and none has moved.
            wrecks_moved: Whether packets do not show the places of demolished cars: filled in too.

        Returns:
            Ticks of ball contact of each car in a gap of several ticks, as simulated; empty where there was
            no gap, or nothing was simulated.
        """
        if state is not self._state:
            self._look_at(state)
        again = self._follows and ticks == 0
        stepped = self._follows and not at_rest and 0 < ticks <= _MOST_TICKS
        try:
            if stepped:
                self._step(state, ticks)
            if self._numbers.agree() and (again or (stepped and ticks == 1)):
                if self._doubtful and not again:
                    self._count(1, ...)
                self._shown.take(self._simulated, ...)
                self._shown.tell(self._known)
            elif self._numbers.are_possible():
                self._correct(state, ticks if stepped or again else -1, at_rest, wrecks_moved)
            else:
                self.forget()
        except (ValueError, DeadMatches):  # the simulator is not made for such numbers
            self.forget()
        if not self._follows:
            self._shown.tell(np.zeros_like(self._known))
        elif stepped and ticks > 1:
            return list(map(int, self._simulator.state.car_ball_touches[0].tolist()))
        return []

    def _look_at(self, state: MatchState) -> None:
        """Read and write another object from now on."""
        self._state, self._shown = state, _HiddenFields(state)
        self._rows = state.car_controls[:, :, None]
        self._numbers.look_at(state)

    def _step(self, state: MatchState, ticks: int) -> None:
        rows = self._rows
        if self._name == ROCKETSIM2:  # in the game boost includes full throttle
            boosts = (rows[..., _BOOST] > 0) & (self._simulator.state.car_boost_amount[..., None] > 0)
            rows = np.where(boosts[..., None] & _IS_THROTTLE, np.float32(1), rows)
        if ticks == 1:
            self._simulator.step(rows, self._no_delay)
            return
        # A car begins to turn itself over on its roof alone, where it is before the gap or after it.
        on_roof = self._simulator.state.car_rotation[0, :, 2, 2] < 0
        on_roof |= state.car_rotation[0, :, 2, 2] < 0
        self._simulator.step(np.broadcast_to(rows, (*rows.shape[:2], ticks, 8)), self._no_delay)
        self._known[on_roof, 1] = 0

    def _correct(self, state: MatchState, ticks: int, at_rest: bool, wrecks_moved: bool) -> None:
        """Take over a state with which the simulation does not agree, or which does not follow from the last.

        Args:
            state: The state.
            ticks: Ticks that were simulated; 0 for the same tick once more, -1 where it does not follow.
            at_rest: As for `refine`.
            wrecks_moved: As for `refine`.
        """
        simulated, wrecks = self._simulator.state, state.car_is_demoed[0] > 0
        new = (self._wrecks & ~wrecks) | at_rest
        followed = np.full(len(wrecks), ticks >= 0)
        if ticks > 0:
            off = np.linalg.norm(state.car_position[0] - simulated.car_position[0], axis=1)
            followed = ~new & (wrecks | (off <= _CAR_LEAP * ticks))
        leapt = ticks > 0 and not (followed | new).all()
        if ticks != 0:
            self._wrecks = wrecks
            self._count(ticks, followed)
            for car in np.flatnonzero(~followed).tolist():
                self._flips[car], self._known[car] = False, new[car]
                self._victim_doubt[car] = 0 if new[car] else _BUMP_TICKS
        ball_off = np.abs(state.ball_position[0] - simulated.ball_position[0]).max()
        if leapt or (ticks > 0 and ball_off >= _BALL_LEAP):
            self._known[:, 0] = 0  # what was put elsewhere may have carried the wheels of a car
        self._shown.take(self._simulated, followed)
        if wrecks_moved:
            for name, *_ in _BODY:
                ours, theirs = getattr(state, f"car_{name}")[0], getattr(simulated, f"car_{name}")[0]
                ours[wrecks & followed] = theirs[wrecks & followed]
        was_put = self._place(state, wrecks, ticks >= 0, leapt)
        if ticks >= 0 and was_put:  # the simulator remembers no bumps, and who leapt may have bumped at once
            self._victim_doubt[:] = [_BUMP_TICKS] * len(wrecks)
        self._doubtful = True
        self._know_victims()
        self._shown.tell(self._known)
        self._follows = True

    def _count(self, ticks: int, cars: np.ndarray | EllipsisType) -> None:
        """Count on what is known of some cars, whose hidden state was simulated."""
        self._known[cars, 0] = ticks == 1
        flips = (self._simulated.autoflips[:, 0] > 0).tolist()
        for car, (flips_now, is_wreck) in enumerate(zip(flips, self._wrecks.tolist(), strict=True)):
            if ticks > 1:
                self._victim_doubt[car] = _BUMP_TICKS
            else:
                if flips_now and not self._flips[car]:
                    self._known[car, 1] = 1  # it has begun now
                if self._victim_doubt[car] and not is_wreck:  # the memory of a wreck stands still
                    self._victim_doubt[car] -= 1
        self._flips = flips
        self._know_victims()

    def _know_victims(self) -> None:
        self._known[:, 2] = [doubt == 0 for doubt in self._victim_doubt]
        self._doubtful = not self._known.all()

    def _place(self, state: MatchState, wrecks: np.ndarray, follows: bool, leapt: bool) -> bool:
        """Put what the state has elsewhere there; return whether the whole match was put anew.

        Args:
            state: The state.
            wrecks: `(cars,)` bool, the demolished cars: their bodies stay where they are simulated.
            follows: Whether the simulation follows the match; else it is put anew.
            leapt: Whether a car is far from where it was simulated; then too.
        """
        desired, numbers = self._desired, self._numbers
        np.copyto(desired.buffer, state.buffer)
        if not follows:
            self._simulator.put([0], desired)
            return True
        numbers.agree()
        rules, ball, bodies, counted = numbers.parts()
        bodies[wrecks & counted] = True
        numbers.keep_agreeing(desired)
        if leapt or not rules or not counted.all():
            self._simulator.put([0], desired)
            return True
        moved = ~bodies.all(axis=1)
        if moved.any() or not ball.all():
            self._simulator.nudge([0], desired, not ball.all(), moved[None])
        return False


class _HiddenFields:
    """What packets do not carry of the cars of one match, as views of a state."""

    def __init__(self, state: MatchState) -> None:
        layout, one = state.layout, layout_of(1, 0)
        cars = state.buffer[0, layout.car_start :].reshape(layout.cars, layout.car_stride)
        first, last = (one.column(name, car=0) - one.car_start for name in ("is_autoflipping", "bump_victim"))
        self.autoflips = cars[:, first : last + 1]
        self.wheels, self.on_ground = state.car_wheels_with_contact[0], state.car_on_ground[0]
        self._holds_jump, self._has_flip = state.car_is_holding_jump[0], state.car_has_flip[0]
        self._can_flip, known = state.car_can_flip[0], state.car_known[0]
        self._known = known[:, _WHEELS], known[:, _AUTOFLIP : _VICTIM + 1]

    def take(self, other: "_HiddenFields", cars: np.ndarray | EllipsisType) -> None:
        """Become equal to another state for some cars, with what follows from it."""
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
    """The numbers of one match that a packet shows and the simulator foresees, side by side.

    Args:
        simulated: The simulator's state.
    """

    def __init__(self, simulated: MatchState) -> None:
        layout = simulated.layout
        fields: list[tuple[tuple[str, int, float], int | None]] = [(one, None) for one in _RULES]
        fields += [((f"ball_{name}", size, off), None) for name, size, off in _BODY]
        fields += [(one, car) for car in range(layout.cars) for one in (*_BODY, *_COUNTED)]
        fields += [(("is_demoed", 1, 0.5), car) for car in range(layout.cars)]
        self._columns = np.array(
            [layout.column(name, at, car) for (name, size, _), car in fields for at in range(size)]
        )
        self._tolerances = np.repeat(
            np.array([off for (*_, off), _ in fields], np.float32), [size for (_, size, _), _ in fields]
        )
        self._row = simulated.buffer[0]
        size = len(self._columns)
        self._theirs = np.zeros(size, np.float32)
        # That a car is demolished never agrees: what has to be done for it is not done in passing.
        self._their_columns = self._columns[: size - layout.cars]
        self._taken = self._theirs[: size - layout.cars]
        self._differences, self._agrees = np.empty(size, np.float32), np.empty(size, bool)
        self._all = bytes([1]) * size
        self._of_ball = slice(len(_RULES), len(_RULES) + _BODY_SIZE)
        self._of_cars = slice(self._of_ball.stop, size - layout.cars)
        self._of_bodies = np.zeros(self._of_cars.stop, bool)
        self._of_bodies[self._of_ball] = True
        self._of_bodies[self._of_cars].reshape(-1, _CAR_SIZE)[:, :_BODY_SIZE] = True

    def look_at(self, state: MatchState) -> None:
        """Compare with another state from now on."""
        self._shown = state.buffer[0]

    def agree(self) -> bool:
        """Tell whether all numbers are equal but for rounding, and no car is demolished."""
        ours, columns = self._differences, self._columns
        self._shown.take(columns, 0, ours, "clip")
        self._row.take(self._their_columns, 0, self._taken, "clip")
        np.subtract(ours, self._theirs, ours)
        np.absolute(ours, ours)
        np.less_equal(ours, self._tolerances, self._agrees)  # NaN is not
        return self._agrees.tobytes() == self._all

    def are_possible(self) -> bool:
        """Tell whether the numbers that packets show are finite, and of a size that the game has."""
        return bool(np.abs(self._shown[self._columns]).sum(dtype=float) < _MOST)  # NaN is not

    def parts(self) -> tuple[bool, np.ndarray, np.ndarray, np.ndarray]:
        """Return what agreed last, as views: rules, ball `(18,)`, cars `(cars, 18)`, counted `(cars,)`.

        A rotation agrees as a whole.
        """
        ball = self._agrees[self._of_ball]
        cars = self._agrees[self._of_cars].reshape(-1, _CAR_SIZE)
        bodies = cars[:, :_BODY_SIZE]
        for body in (ball, *bodies):
            body[_ROTATION] = body[_ROTATION].all()
        rules = bool(self._agrees[: len(_RULES)].all())
        return rules, ball, bodies, cars[:, _BODY_SIZE:].all(axis=1)

    def keep_agreeing(self, desired: MatchState) -> None:
        """Give a state the simulated numbers of bodies where they agreed last: packets' have been rounded."""
        agrees = self._agrees[: self._of_cars.stop] & self._of_bodies
        columns = self._their_columns[agrees]
        desired.buffer[0, columns] = self._row[columns]


def _choose_simulator(mode: str, name: str | None) -> str:
    """Return the name of the simulator that follows a match of a mode."""
    name = DEFAULT_SIMULATOR if name is None else name
    if name == ROCKETSIM3:
        try:
            check_simulator(name)
        except SimulatorError:
            return ROCKETSIM2
        return name if mode == "Soccar" else ROCKETSIM2
    return check_simulator(name)
