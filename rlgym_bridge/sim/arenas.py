"""Step many RocketSim arenas, which one `MatchState` shows.

    rows (matches, cars, 8) -> step -> RocketSim -> columns of the state

Python steps one arena after another; all else is done for all matches at once.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import RocketSim as rsim

from rlgym_bridge.derived_fields import derive
from rlgym_bridge.game import BLUE, CONTROL_NAMES, ORANGE, TICKS_PER_SECOND
from rlgym_bridge.sim.arena import make_arena, set_mutators
from rlgym_bridge.sim.arena_reader import control_of, write_arena
from rlgym_bridge.sim.boost_thrust import GAME_BOOST_AIR, lacks_throttle
from rlgym_bridge.sim.columns import EXTRA_FIELDS, ArenaColumns
from rlgym_bridge.sim.control_queues import ControlQueues
from rlgym_bridge.sim.game_rules import ROCKETSIM
from rlgym_bridge.sim.part_times import PartTimes
from rlgym_bridge.sim.ruled_arena import stepper
from rlgym_bridge.state import MatchState

_MOST_CONTROLS = 10_000  # rows remembered as RocketSim's controls
_AT_ONCE = 8  # arenas stepped before they are read: a step empties the caches; 5 % quicker than one by one
_THROTTLE, _BOOST = CONTROL_NAMES.index("throttle"), CONTROL_NAMES.index("boost")
_ROW_BYTES = np.dtype((np.void, 32))  # a row as a key: 8 float32


class Arenas:
    """N matches of equal team sizes in RocketSim.

    Equal seeds, states and rows give equal matches, to the bit: cars are taken off and put on again at
    every `put`, and demolished cars come back where the seed says.

    Args:
        matches: N, 1 or more.
        blue: Cars in the blue team, 0..4.
        orange: Cars in the orange team.
        reads: Attributes of `MatchState` that are read; None for all. Of `EXTRA_FIELDS` only these
            are filled, and `known` is 0 for the others.
        seed: Of the respawns.
        rules: Names of the game's rules to step with; `thrust` alone costs nothing as long as every row that
            boosts has throttle 1.

    Attributes:
        state: All matches after the latest `put` or `step`, derived fields included. `frame` counts each
            match's ticks, `car_ball_touches` the ticks of ball contact in the latest step; phase, clock
            and score stay as they were put.

    Raises:
        ValueError: The number of matches or cars is out of range.
        FileNotFoundError: The collision meshes are not installed.
    """

    def __init__(
        self, matches: int, blue: int, orange: int, reads: Collection[str] | None = None, seed: int = 0,
        rules: frozenset[str] = ROCKETSIM,
    ) -> None:  # fmt: skip
        if matches < 1:
            raise ValueError(f"matches is {matches}, expected 1 or more")
        self.state = MatchState(blue, orange, matches)
        self._cars = blue + orange
        teams = [BLUE] * blue + [ORANGE] * orange
        made = [make_arena(teams) for _ in range(matches)]
        self._arenas = [arena for arena, _ in made]
        self._players = [cars for _, cars in made]
        self._rules = rules
        self._quick = rules == {"thrust"}  # no row was seen yet that boosts with less than full throttle
        self._steps: list[Callable[[int], None]] = [arena.step for arena in self._arenas]
        self._factors: dict[int, dict[str, float]] = {}  # of matches with other constants
        if "thrust" in rules:
            for match in range(matches):
                self.scale(match, {})
        self._pads = [arena.get_boost_pads() for arena in self._arenas]
        self._rows: list[dict[int, int]] = [{} for _ in made]
        self._ids = np.zeros((matches, self._cars), np.int64)
        self._touched: list[tuple[int, int]] = []
        for match, arena in enumerate(self._arenas):
            arena.set_ball_touch_callback(_touch_recorder(self._touched, match, self._rows))
        self._controls: dict[bytes, rsim.CarControls] = {}
        self._queues = ControlQueues(matches, self._cars, self._respawn)
        self._columns = ArenaColumns(self.state, EXTRA_FIELDS if reads is None else reads)
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Begin the random stream of the respawns anew."""
        self._random = np.random.default_rng((seed, 1))

    def put(self, matches: Sequence[int], desired: MatchState) -> None:
        """Put some matches into new states, with fresh cars.

        Args:
            matches: Their numbers.
            desired: A state of as many matches, derived fields filled.

        Raises:
            ValueError: There are not as many states as matches.
        """
        if desired.matches != len(matches):
            raise ValueError(f"{desired.matches} states for {len(matches)} matches, expected one each")
        for row, match in enumerate(matches):
            factors = self._factors.get(match)
            try:
                cars = write_arena(self._arenas[match], desired, row, factors)
            except RuntimeError:  # this arena does not give the pinned order of cars any more
                self._renew(match, desired, row)
                cars = write_arena(self._arenas[match], desired, row, factors)
            self._players[match] = cars
            self._rows[match].clear()
            self._rows[match].update((car.id, number) for number, car in enumerate(cars))
            self._ids[match] = [car.id for car in cars]
            self._queues.begin(match, desired.car_controls[row])
            self._choose_step(match)
        held = desired.car_controls
        self._note_throttle(bool(((held[..., _BOOST] > 0) & (held[..., _THROTTLE] != 1)).any()))
        self.state.buffer[matches] = desired.buffer
        self._columns.mark_unknown()
        self._touched.clear()

    def scale(self, match: int, factors: Mapping[str, float]) -> None:
        """Set the constants of a match's physics from its next `put` on.

        Args:
            match: Its number.
            factors: Multiples of RocketSim's own, by the names of `physics.CONSTANTS`.
        """
        own = dict(factors)
        if "thrust" in self._rules:
            own["boost_accel_air"] = own.get("boost_accel_air", 1.0) * GAME_BOOST_AIR
        self._factors[match] = own

    def step(
        self, rows: np.ndarray, delay: Sequence[int] | np.ndarray | None = None,
        times: PartTimes | None = None,
    ) -> None:  # fmt: skip
        """Step all matches, every car driven by its rows; the state shows the result.

        As RLGym's engine with `rlbot_delay=True` where the delay is 1: the first tick is still driven by
        the last step's last row.

        Args:
            rows: `(matches, cars, ticks, 8)` float32, one row a tick; or with a stride of 0 over the
                ticks, as `np.broadcast_to` gives them, which is quicker.
            delay: Ticks, 0 or more, after which the rows begin to act: of each match, or `(matches, cars)`
                of each car; 1 for all when None. What has not acted yet acts in later steps, unless rows
                with a shorter delay come before it.
            times: Counts the time of `physics` and of `reading`; None counts nothing.

        Raises:
            ValueError: A delay is below 0 or no whole number.
        """
        ticks = rows.shape[2]
        same = rows.strides[2] == 0 or ticks == 1
        keys, controls = self._as_controls(rows[:, :, :1] if same else rows)
        late = np.ones(1, int) if delay is None else np.asarray(delay)
        if late.dtype.kind not in "iu" or late.min() < 0:
            raise ValueError(f"delay is {delay}, expected whole ticks, 0 or more")
        late = np.broadcast_to(late[:, None] if late.ndim == 1 else late, self._ids.shape)
        back = self._coming_back(ticks)
        play = self._queues.plan(keys, controls, late, 1 if same else ticks, ticks, back)
        arenas, take = list(zip(self._arenas, self._players, strict=True)), self._columns.take
        for first in range(0, len(arenas), _AT_ONCE):
            some = arenas[first : first + _AT_ONCE]
            for match, (_, cars) in enumerate(some, first):
                play(match, self._steps[match], cars)
            if times is not None:
                times.end("physics")
            take(some)
            if times is not None:
                times.end("reading")
        held = np.frombuffer(b"".join(self._queues.held), np.float32).reshape(*self._ids.shape, 8)
        self._columns.show(self._players, self._ids, self._pads, held, ticks)
        self.state.car_ball_touches.fill(0)
        for match, row in self._touched:
            self.state.car_ball_touches[match, row] += 1
        self._touched.clear()
        if times is not None:
            times.end("reading")

    def nudge(self, matches: Sequence[int], desired: MatchState, ball: bool, cars: np.ndarray) -> None:
        """Move the ball and the cars that `cars`, `(n, cars)` bool, names; see `Simulator.nudge`.

        RocketSim 2.2.1 forgets the contacts of what it sets.
        """
        for row, match in enumerate(matches):
            if ball:
                body = self._arenas[match].ball.get_state()
                _place(body, desired, "ball_", row)
                self._arenas[match].ball.set_state(body)
            for place in np.flatnonzero(cars[row]).tolist():
                body = self._players[match][place].get_state()
                _place(body, desired, "car_", (row, place))
                self._players[match][place].set_state(body)
            for name in ("position", "rotation", "linear_velocity", "angular_velocity"):
                if ball:
                    getattr(self.state, f"ball_{name}")[match] = getattr(desired, f"ball_{name}")[row]
                moved = getattr(desired, f"car_{name}")[row, cars[row]]
                getattr(self.state, f"car_{name}")[match, cars[row]] = moved
        derive(self.state)

    def forecast_ball(self, match: int, ticks: int, every: int = 1) -> np.ndarray:
        """Return where the ball goes untouched, `(ticks // every, 9)`; see `Simulator.forecast_ball`."""
        alone, _ = make_arena([])
        set_mutators(alone, self._arenas[match].get_mutator_config())
        alone.ball.set_state(self._arenas[match].ball.get_state())
        frames = np.empty((ticks // every, 9), np.float32)
        for frame in frames:
            alone.step(every)
            body = alone.ball.get_state()
            frame[:] = (*body.pos.as_tuple(), *body.vel.as_tuple(), *body.ang_vel.as_tuple())
        return frames

    # --- stepping --------------------------------------------------------------------------------

    def _as_controls(self, rows: np.ndarray) -> tuple[list[bytes], list[rsim.CarControls]]:
        """Return float32 rows as bytes and as RocketSim's controls; most come again and again."""
        keys: list[bytes] = np.ascontiguousarray(rows, np.float32).view(_ROW_BYTES).ravel().tolist()
        known = self._controls
        try:
            return keys, [known[key] for key in keys]
        except KeyError:
            if len(known) >= _MOST_CONTROLS:
                known.clear()
            new = {
                key: control_of(np.frombuffer(key, np.float32).tolist())
                for key in set(keys).difference(known)
            }
            known.update(new)
            self._note_throttle(any(map(lacks_throttle, new.values())))
            return keys, [known[key] for key in keys]

    def _note_throttle(self, lacks: bool) -> None:
        """Look at the throttle in every step from the first row on that boosts with less than all of it.

        Up to then the constant of the rule `thrust` is exact. With a lookup table it always is.
        """
        if lacks and self._quick:
            self._quick = False
            for match in range(len(self._arenas)):
                self._choose_step(match)

    def _choose_step(self, match: int) -> None:
        """Choose what steps a match: RocketSim itself where that is exact."""
        arena, cars = self._arenas[match], self._players[match]
        self._steps[match] = arena.step if self._quick else stepper(arena, cars, self._rules)

    def _coming_back(self, ticks: int) -> dict[int, list[tuple[int, int]]]:
        """Return the cars of each match whose wrecks come back within some ticks: tick and row.

        RocketSim would choose the spot by itself when the timer ends, one tick later.
        """
        found: dict[int, list[tuple[int, int]]] = {}
        if self.state.car_is_demoed.any():
            timers = self.state.car_demo_respawn_timer
            for match, row in np.argwhere(timers > 0).tolist():
                tick = round(float(timers[match, row]) * TICKS_PER_SECOND) - 1
                if 0 <= tick < ticks:
                    found.setdefault(match, []).append((tick, row))
        return found

    def _respawn(self, car: rsim.Car) -> None:
        car.respawn(seed=int(self._random.integers(2**31)))

    def _renew(self, match: int, desired: MatchState, row: int) -> None:
        """Replace an arena."""
        teams = desired.car_team[row].astype(int).tolist()
        self._arenas[match], self._players[match] = make_arena(teams)
        self._pads[match] = self._arenas[match].get_boost_pads()
        recorder = _touch_recorder(self._touched, match, self._rows)
        self._arenas[match].set_ball_touch_callback(recorder)


def _place(body: Any, desired: MatchState, of: str, at: Any) -> None:
    """Set place, rotation and velocities of a body of RocketSim's."""
    values = (getattr(desired, of + name)[at] for name in ("position", "linear_velocity", "angular_velocity"))
    body.pos, body.vel, body.ang_vel = (rsim.Vec(*value.tolist()) for value in values)
    body.rot_mat = rsim.RotMat(*getattr(desired, of + "rotation")[at].T.ravel().tolist())


def _touch_recorder(
    touched: list[tuple[int, int]], match: int, rows: list[dict[int, int]]
) -> Callable[..., None]:
    """Return a callback that holds no arena: one that did would keep it alive for ever."""

    def record(arena: rsim.Arena, car: rsim.Car, data: object) -> None:
        touched.append((match, rows[match][car.id]))

    return record
