"""Many RocketSim arenas and one `MatchState` that shows them all.

    rows (matches, cars, 8) -> step -> RocketSim -> columns of the state

Python steps one arena after another; all else is done for all matches at once.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import RocketSim as rsim

from rlgym_bridge.game import BLUE, ORANGE, TICK_SECONDS, TICKS_PER_SECOND
from rlgym_bridge.sim.arena import make_arena
from rlgym_bridge.sim.columns import EXTRA_FIELDS, Columns
from rlgym_bridge.sim.reader import control_of, write_arena
from rlgym_bridge.state import MatchState

_MOST_CONTROLS = 10_000  # rows remembered as RocketSim's controls
_AT_ONCE = 8  # arenas stepped before they are read: a step empties the caches; 5 % quicker than one by one
_ROW_BYTES = np.dtype((np.void, 32))  # a row as a key: 8 float32

CarsControls = list[rsim.CarControls]  # of the cars of a match


class Arenas:
    """N matches of equal team sizes in RocketSim.

    Equal seeds, states and rows give equal matches, to the bit: cars are taken off and put on again at
    every `put`, and demolished cars come back where the seed says.

    Args:
        matches: N, 1 or more.
        blue: Cars in the blue team, 0..4.
        orange: Cars in the orange team.
        reads: Attributes of `MatchState` that somebody reads; None for all. Of `EXTRA_FIELDS` only these
            are filled, and `known` is 0 for the others.
        seed: Of the respawns.

    Attributes:
        state: All matches after the latest `put` or `step`, derived fields included. `frame` counts each
            match's ticks, `car_ball_touches` the ticks of ball contact in the latest step; phase, clock
            and score stay as they were put.

    Raises:
        ValueError: The number of matches or cars is out of range.
        FileNotFoundError: The collision meshes are not installed.
    """

    def __init__(
        self, matches: int, blue: int, orange: int, reads: Collection[str] | None = None, seed: int = 0
    ) -> None:
        if matches < 1:
            raise ValueError(f"matches is {matches}, expected 1 or more")
        self.state = MatchState(blue, orange, matches)
        self._cars = blue + orange
        teams = [BLUE] * blue + [ORANGE] * orange
        made = [make_arena(teams) for _ in range(matches)]
        self._arenas = [arena for arena, _ in made]
        self._players = [cars for _, cars in made]
        self._factors: dict[int, dict[str, float]] = {}  # of matches with other constants
        self._pads = [arena.get_boost_pads() for arena in self._arenas]
        self._rows: list[dict[int, int]] = [{} for _ in made]
        self._ids = np.zeros((matches, self._cars), np.int64)
        self._touched: list[tuple[int, int]] = []
        for match, arena in enumerate(self._arenas):
            arena.set_ball_touch_callback(_touch_recorder(self._touched, match, self._rows))
        self._controls: dict[bytes, rsim.CarControls] = {}
        shape = (matches, self._cars, 8)
        self._held = np.zeros(shape, np.float32)  # what drove the latest tick
        self._newest = np.zeros(shape, np.float32)  # what the latest step ended with, acting or not yet
        self._pending: dict[
            int, list[CarsControls | None]
        ] = {}  # rows that have yet to act, where they change from tick to tick
        self._columns = Columns(self.state, EXTRA_FIELDS if reads is None else reads)
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Begin the random stream of the respawns anew."""
        self._random = np.random.default_rng((seed, 1))

    def put(self, matches: Sequence[int], wanted: MatchState) -> None:
        """Put some matches into new states, with fresh cars.

        Args:
            matches: Their numbers.
            wanted: One row for each of them, derived fields filled.

        Raises:
            ValueError: There are not as many rows as matches.
        """
        if wanted.matches != len(matches):
            raise ValueError(f"{wanted.matches} states for {len(matches)} matches, expected one each")
        for row, match in enumerate(matches):
            factors = self._factors.get(match)
            try:
                cars = write_arena(self._arenas[match], wanted, row, factors)
            except RuntimeError:  # this arena does not give the pinned order of cars any more
                self._renew(match, wanted, row)
                cars = write_arena(self._arenas[match], wanted, row, factors)
            self._players[match] = cars
            self._pending.pop(match, None)
            self._rows[match].clear()
            self._rows[match].update((car.id, number) for number, car in enumerate(cars))
            self._ids[match] = [car.id for car in cars]
        self.state.buffer[matches] = wanted.buffer
        self._held[matches] = self._newest[matches] = wanted.car_controls
        self._columns.mark_unknown()
        self._touched.clear()

    def scale(self, match: int, factors: Mapping[str, float]) -> None:
        """Play a match from its next `put` on with other constants.

        Args:
            match: Its number.
            factors: Multiples of RocketSim's own, by the names of `physics.CONSTANTS`.
        """
        self._factors[match] = dict(factors)

    def step(self, rows: np.ndarray, delay: Sequence[int] | None = None) -> None:
        """Go on, every car driven by its rows; the state shows what comes of it.

        As RLGym's engine with `rlbot_delay=True` where the delay is 1: the first tick is still driven by
        the last step's last row.

        Args:
            rows: `(matches, cars, ticks, 8)` float32, one row a tick; or with a stride of 0 over the
                ticks, as `np.broadcast_to` gives them, which is quicker.
            delay: Ticks after which a match's rows begin to act, 0 up to the number of ticks; 1 for all
                when None. The first ticks of the next step are driven by what has not acted yet.
        """
        ticks = rows.shape[2]
        delays = [1] * len(self._arenas) if delay is None else delay
        respawning = self._respawning(ticks)
        if rows.strides[2] == 0 or ticks == 1:
            self._step_held(rows[:, :, 0], ticks, delays, respawning)
        else:
            for match, late in enumerate(delays):
                controls = self._as_controls(rows[match].swapaxes(0, 1))
                plan = [controls[self._cars * tick : self._cars * (tick + 1)] for tick in range(ticks)]
                self._step_slowly(match, plan, late)
                self._columns.take(self._arenas[match], self._players[match])
        acting = ticks - 1 - np.asarray(delays)  # of the rows, in the latest tick; below 0 the last step's
        latest = rows[np.arange(len(acting)), :, acting.clip(0)]
        self._held = np.where((acting < 0)[:, None, None], self._newest, latest)
        self._newest[:] = rows[:, :, -1]
        self._columns.show(self._players, self._ids, self._pads, self._held, ticks)
        self.state.car_ball_touches.fill(0)
        for match, row in self._touched:
            self.state.car_ball_touches[match, row] += 1
        self._touched.clear()

    # --- stepping --------------------------------------------------------------------------------

    def _step_held(
        self, rows: np.ndarray, ticks: int, delays: Sequence[int], respawning: Collection[int]
    ) -> None:
        """Hold one row a car through all ticks."""
        controls, take = iter(self._as_controls(rows)), self._columns.take
        every = list(zip(self._arenas, self._players, delays, strict=True))
        for first in range(0, len(every), _AT_ONCE):
            some = every[first : first + _AT_ONCE]
            for match, (arena, cars, late) in enumerate(some, first):
                if match in respawning or match in self._pending:
                    self._step_slowly(match, [[next(controls) for _ in cars]] * ticks, late)
                    continue
                if late:
                    arena.step(late)
                for car in cars:
                    car.set_controls(next(controls))
                if late < ticks:
                    arena.step(ticks - late)
            for arena, cars, _ in some:
                take(arena, cars)

    def _as_controls(self, rows: np.ndarray) -> list[rsim.CarControls]:
        """Return float32 rows as RocketSim's controls; most come again and again."""
        keys = np.ascontiguousarray(rows).view(_ROW_BYTES).ravel().tolist()
        known = self._controls
        try:
            return [known[key] for key in keys]
        except KeyError:
            if len(known) >= _MOST_CONTROLS:
                known.clear()
            for key in set(keys).difference(known):
                known[key] = control_of(np.frombuffer(key, np.float32).tolist())
            return [known[key] for key in keys]

    def _step_slowly(self, match: int, plan: list[CarsControls], late: int) -> None:
        """Go on tick by tick: rows change, or a demolished car comes back where the seed says."""
        arena, cars = self._arenas[match], self._players[match]
        timers = self.state.car_demo_respawn_timer[match].tolist()
        waiting = self._pending.pop(match, [])  # None: what the cars hold anyway
        waiting = [*waiting, *[None] * late][:late]  # the delay may be another than in the last step
        queue = [*waiting, *plan]
        for tick in range(len(plan)):
            due = queue[tick]
            if due is not None:
                for car, controls in zip(cars, due, strict=True):
                    car.set_controls(controls)
            for row, timer in enumerate(timers):
                # RocketSim would choose the spot by itself when the timer ends, one tick from now.
                if timer > 0 and round(timer * TICKS_PER_SECOND) - tick == 1:
                    cars[row].respawn(seed=int(self._random.integers(2**31)))
            arena.step(1)
        if late and plan[-1] is not plan[0]:
            self._pending[match] = queue[len(plan) :]
        elif late:
            for car, controls in zip(cars, plan[-1], strict=True):
                car.set_controls(controls)

    def _respawning(self, ticks: int) -> set[int]:
        """Return the matches in which a demolished car comes back within some ticks."""
        if not self.state.car_is_demoed.any():
            return set()
        timers = self.state.car_demo_respawn_timer
        soon = (timers > 0) & (timers < (ticks + 0.5) * TICK_SECONDS)
        return set(np.flatnonzero(soon.any(1)).tolist())

    def _renew(self, match: int, wanted: MatchState, row: int) -> None:
        """Replace an arena."""
        teams = wanted.car_team[row].astype(int).tolist()
        self._arenas[match], self._players[match] = make_arena(teams)
        self._pads[match] = self._arenas[match].get_boost_pads()
        recorder = _touch_recorder(self._touched, match, self._rows)
        self._arenas[match].set_ball_touch_callback(recorder)


def _touch_recorder(
    touched: list[tuple[int, int]], match: int, rows: list[dict[int, int]]
) -> Callable[..., None]:
    """Return a callback that holds no arena: one that did would keep it alive for ever."""

    def record(arena: rsim.Arena, car: rsim.Car, data: object) -> None:
        touched.append((match, rows[match][car.id]))

    return record
