"""Many RocketSim arenas and one `MatchState` that shows them all.

    rows (matches, cars, 8) -> step -> RocketSim -> columns of the state

One call into RocketSim an arena, and one more a car, fetch most of what there is; numpy puts it into the
state for all matches at once. What costs extra (`EXTRA_FIELDS`) is read where it is asked for.
"""

from collections.abc import Callable, Collection, Sequence
from itertools import chain
from operator import attrgetter
from typing import Final

import numpy as np
import RocketSim as rsim

from rlgym_bridge.game import BLUE, ORANGE, PAD_COUNT, TICK_SECONDS, TICKS_PER_SECOND
from rlgym_bridge.sim.arena import make_arena
from rlgym_bridge.sim.reader import control_of, write_arena
from rlgym_bridge.state import KNOWN_FIELDS, MatchState, derive

EXTRA_FIELDS: Final = (
    "car_wheels_with_contact", "car_flip_torque", "car_is_autoflipping", "car_autoflip_timer",
    "car_autoflip_direction", "car_bump_victim",
)  # fmt: skip
"""Attributes of `MatchState` that are filled only where they are asked for."""

# Columns of `Arena.get_gym_state()`: 34 pads, 25 numbers of the ball, 36 of each car (RocketSim 2.2.1,
# found by experiment; a test holds them against `ArenaReader`).
_PADS, _BALL, _CAR = PAD_COUNT, 25, 36
_BODY = {"position": 0, "linear_velocity": 7, "angular_velocity": 10, "rotation": 13}
_CAR_BODY, _CAR_DEMOED, _CAR_GROUND, _CAR_BOOST = 11, 7, 8, 10

_SCALARS: Final = {
    "demo_respawn_timer": "demo_respawn_timer",
    "supersonic_time": "supersonic_time",
    "boost_active_time": "time_spent_boosting",
    "handbrake": "handbrake_val",
    "has_jumped": "has_jumped",
    "is_jumping": "is_jumping",
    "jump_time": "jump_time",
    "has_flipped": "has_flipped",
    "has_double_jumped": "has_double_jumped",
    "air_time_since_jump": "air_time_since_jump",
    "flip_time": "flip_time",
}
_EXTRAS: Final = {
    "is_autoflipping": "is_auto_flipping",
    "autoflip_timer": "auto_flip_timer",
    "autoflip_direction": "auto_flip_torque_scale",
}
_CONTACT: Final = ("car_contact_cooldown_timer", "car_contact_id")
_JUMP: Final = 5  # of a control row
_TICK = np.float32(TICK_SECONDS)
_MOST_CONTROLS = 10_000  # rows remembered as RocketSim's controls

Plan = list[list[rsim.CarControls] | None]  # for each tick the cars' controls; None: what they hold


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
        self._reads = frozenset(EXTRA_FIELDS if reads is None else reads)
        made = [make_arena(teams) for _ in range(matches)]
        self._arenas = [arena for arena, _ in made]
        self._players = [cars for _, cars in made]
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
        self._pending: dict[int, Plan] = {}  # rows that have yet to act, where they change from tick to tick
        self._sources, self._targets = _columns(self.state)
        extras = [name for name in _EXTRAS if "car_" + name in self._reads]
        self._names = [*_SCALARS, *extras]
        self._reads_contact = "car_bump_victim" in self._reads
        paths = [*_SCALARS.values(), *(_EXTRAS[name] for name in extras)]
        self._getter = attrgetter(*paths, *(_CONTACT if self._reads_contact else ()))
        self._width = len(paths) + 2 * self._reads_contact
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
            try:
                cars = write_arena(self._arenas[match], wanted, row)
            except RuntimeError:  # this arena does not give the pinned order of cars any more
                self._renew(match, wanted, row)
                cars = write_arena(self._arenas[match], wanted, row)
            self._players[match] = cars
            self._pending.pop(match, None)
            self._rows[match].clear()
            self._rows[match].update((car.id, number) for number, car in enumerate(cars))
            self._ids[match] = [car.id for car in cars]
        self.state.buffer[matches] = wanted.buffer
        self._held[matches] = self._newest[matches] = wanted.car_controls
        known = self.state.car_known
        for name in ("wheels_with_contact", "is_autoflipping", "bump_victim"):
            if "car_" + name not in self._reads:
                known[..., KNOWN_FIELDS.index(name)] = 0
        self._touched.clear()

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
                plan: Plan = [controls[self._cars * tick : self._cars * (tick + 1)] for tick in range(ticks)]
                self._step_slowly(match, plan, late)
        acting = ticks - 1 - np.asarray(delays)  # of the rows, in the latest tick; below 0 the last step's
        latest = rows[np.arange(len(acting)), :, acting.clip(0)]
        self._held = np.where((acting < 0)[:, None, None], self._newest, latest)
        self._newest[:] = rows[:, :, -1]
        self._read(ticks)

    # --- stepping --------------------------------------------------------------------------------

    def _step_held(
        self, rows: np.ndarray, ticks: int, delays: Sequence[int], respawning: Collection[int]
    ) -> None:
        """Hold one row a car through all ticks."""
        controls = iter(self._as_controls(rows))
        for match, (arena, cars, late) in enumerate(zip(self._arenas, self._players, delays, strict=True)):
            if match in respawning or match in self._pending:
                self._step_slowly(match, [[next(controls) for _ in cars]] * ticks, late)
                continue
            if late:
                arena.step(late)
            for car in cars:
                car.set_controls(next(controls))
            if late < ticks:
                arena.step(ticks - late)

    def _as_controls(self, rows: np.ndarray) -> list[rsim.CarControls]:
        """Return float32 rows as RocketSim's controls; most come again and again."""
        data, known = rows.tobytes(), self._controls
        found = []
        for start in range(0, len(data), 32):
            key = data[start : start + 32]
            controls = known.get(key)
            if controls is None:
                if len(known) >= _MOST_CONTROLS:
                    known.clear()
                controls = known[key] = control_of(np.frombuffer(key, np.float32).tolist())
            found.append(controls)
        return found

    def _step_slowly(self, match: int, plan: Plan, late: int) -> None:
        """Go on tick by tick: rows change, or a demolished car comes back where the seed says."""
        arena, cars = self._arenas[match], self._players[match]
        timers = self.state.car_demo_respawn_timer[match].tolist()
        queue = [*self._pending.pop(match, [None] * late), *plan]  # None: what the cars hold anyway
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

    # --- reading ---------------------------------------------------------------------------------

    def _read(self, ticks: int) -> None:
        state, matches = self.state, len(self._arenas)
        # Row 0 of each array is the field as it is, row 1 turned; [0] of each answer holds no physics.
        parts = [part for arena in self._arenas for part in arena.get_gym_state()[1:]]
        numbers = np.concatenate(parts, 1)[0].reshape(matches, -1)
        state.buffer[:, self._targets] = numbers[:, self._sources]
        states = [car.get_state() for cars in self._players for car in cars]
        self._read_cars(states, numbers)
        self._count_pads(numbers[:, :_PADS] > 0, ticks)
        state.frame += ticks
        state.car_ball_touches[:] = 0
        for match, row in self._touched:
            state.car_ball_touches[match, row] += 1
        self._touched.clear()
        state.car_controls[:] = self._held
        state.car_is_holding_jump[:] = self._held[..., _JUMP]
        demoed = numbers[:, _PADS + _BALL + _CAR_DEMOED :: _CAR]
        if demoed.any():
            self._read_wrecks(states, demoed)
        derive(state)

    def _read_cars(self, states: list[rsim.CarState], numbers: np.ndarray) -> None:
        state, shape = self.state, (len(self._arenas), self._cars)
        count = len(states) * self._width
        values = np.fromiter(chain.from_iterable(map(self._getter, states)), np.float64, count)
        values = values.reshape(*shape, self._width)
        for index, name in enumerate(self._names):
            getattr(state, "car_" + name)[:] = values[..., index]
        if self._reads_contact:
            cooling, other = values[..., -2] > 0, values[..., -1, None] == self._ids[:, None, :]
            state.car_bump_victim[:] = np.where(cooling & other.any(-1), other.argmax(-1), -1)
        if "car_wheels_with_contact" in self._reads:
            wheels = chain.from_iterable([one.wheels_with_contact for one in states])
            state.car_wheels_with_contact[:] = np.fromiter(wheels, np.float32, 4 * len(states)).reshape(
                *shape, 4
            )
        else:  # all or none: what follows from them is right
            grounded = numbers[:, _PADS + _BALL + _CAR_GROUND :: _CAR]
            state.car_wheels_with_contact[:] = grounded[..., None]
        if "car_flip_torque" in self._reads:
            torques = [one.flip_rel_torque.as_tuple() for one in states]
            state.car_flip_torque[:] = np.array(torques, np.float32).reshape(*shape, 3)

    def _read_wrecks(self, states: list[rsim.CarState], demoed: np.ndarray) -> None:
        """Read demolished cars one by one: `get_gym_state` turns them on, and inputs do not reach them."""
        state = self.state
        for match, row in np.argwhere(demoed > 0).tolist():
            car = states[match * self._cars + row]
            turn = car.rot_mat
            state.car_position[match, row] = car.pos.as_tuple()
            state.car_linear_velocity[match, row] = car.vel.as_tuple()
            state.car_angular_velocity[match, row] = car.ang_vel.as_tuple()
            axes = (turn.forward.as_tuple(), turn.right.as_tuple(), turn.up.as_tuple())
            state.car_rotation[match, row] = np.array(axes, np.float32).T
            last = car.last_controls
            state.car_is_holding_jump[match, row] = last.jump
            state.car_controls[match, row] = _ROW(last)

    def _count_pads(self, there: np.ndarray, ticks: int) -> None:
        """Count the pads down as RocketSim does, in float32; a pad that has just gone is asked."""
        timers = self.state.pad_timer
        gone = ~there & (timers <= 0)
        if timers.any():
            for _ in range(ticks):
                timers -= _TICK
            np.maximum(timers, 0, out=timers)
        timers[there] = 0
        # A pad that came back and was taken again within the step shows a longer time than the count.
        again = ~there & ~gone & (timers <= 0)
        for match, pad in np.argwhere(gone | again).tolist():
            timers[match, pad] = self._pads[match][pad].get_state().cooldown


_ROW = attrgetter("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")


def _columns(state: MatchState) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of `get_gym_state`'s numbers and where they go in the state."""
    layout = state.layout
    pairs: list[tuple[int, int]] = []
    for name, start in _BODY.items():
        elements = range(9 if name == "rotation" else 3)
        for element in elements:
            # There forward, right and up lie one after another; here they are columns of a matrix.
            at = start + (element % 3 * 3 + element // 3 if name == "rotation" else element)
            pairs.append((_PADS + at, layout.column(f"ball_{name}", element)))
            for car in range(layout.cars):
                source = _PADS + _BALL + _CAR * car + _CAR_BODY + at
                pairs.append((source, layout.column(name, element, car)))
    for car in range(layout.cars):
        pairs.append((_PADS + _BALL + _CAR * car + _CAR_BOOST, layout.column("boost_amount", car=car)))
    sources, targets = np.array(pairs, np.intp).T
    return np.ascontiguousarray(sources), np.ascontiguousarray(targets)


def _touch_recorder(
    touched: list[tuple[int, int]], match: int, rows: list[dict[int, int]]
) -> Callable[..., None]:
    """Return a callback that holds no arena: one that did would keep it alive for ever."""

    def record(arena: rsim.Arena, car: rsim.Car, data: object) -> None:
        touched.append((match, rows[match][car.id]))

    return record
