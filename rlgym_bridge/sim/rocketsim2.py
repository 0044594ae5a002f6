"""Step matches in RocketSim 2.2.1, the package `RocketSim`, which plays all modes, one by one."""

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import RocketSim as rsim

from rlgym_bridge.game import BLUE, GOAL_THRESHOLD_Y, ORANGE, TICKS_PER_SECOND
from rlgym_bridge.sim import arena as arenas
from rlgym_bridge.sim import simulator
from rlgym_bridge.sim.simulator import EventKind
from rlgym_bridge.state import CAR_COLUMNS, MATCH_COLUMNS, MatchState

GAME_BOOST_AIR: Final = 991.667 / 1058.333
"""Multiple of RocketSim's `boost_accel_air`, beside which throttle adds 66.67 uu/s^2."""

_MOST_CONTROLS: Final = 10_000  # control vectors remembered as RocketSim's objects
_FLAGS: Final = frozenset({"unlimited_flips", "unlimited_double_jumps", "enable_team_demos"})
_DEMO_MODES: Final = (rsim.DemoMode.NORMAL, rsim.DemoMode.ON_CONTACT, rsim.DemoMode.DISABLED)
_KEPT: Final = [
    *(MATCH_COLUMNS[name] for name in ("phase", "clock", "overtime", "score", "dodge_deadzone")),
    MATCH_COLUMNS["score"] + 1,
]
"""Columns of a match that stay as they were put."""

_OF_BALL: Final = MATCH_COLUMNS["ball_position"]


class RocketSim2:
    """N matches of equal team sizes in RocketSim 2.2.1; arguments and errors as of `make_simulator`.

    Equal seeds, states and control vectors give equal matches, to the bit: cars are taken off and put on
    again at every `put`, and demolished cars come back where the seed says. With `thrust` boost in the air
    pushes as in the real game with full throttle (1,058 uu/s^2 in place of 1,125).
    """

    def __init__(
        self, matches: int, blue: int, orange: int, *, mode: str = "Soccar", seed: int = 0,
        thrust: bool = True,
    ) -> None:  # fmt: skip
        if matches < 1:
            raise ValueError(f"matches is {matches}, expected 1 or more")
        self.state = MatchState(blue, orange, matches)
        self._mode, self._thrust = simulator.mode_number(mode), thrust
        self._shape = (matches, blue + orange)
        self._events: list[tuple[Any, ...]] = []
        self._matches = [self._make(number) for number in range(matches)]
        self._alone: rsim.Arena | None = None  # of the forecasts
        self._controls: dict[bytes, rsim.CarControls] = {}
        self._waiting = np.zeros((*self._shape, 1, 8), np.float32)
        """Vectors of the next ticks; after the last of them it goes on."""
        self.seed(seed)

    def _make(self, number: int) -> "_Match":
        teams = [BLUE] * self.state.layout.blue + [ORANGE] * self.state.layout.orange
        return _Match(number, *arenas.make_arena(teams, None, self._mode), self._events)

    def seed(self, seed: int) -> None:
        """Begin the random stream of the respawns anew."""
        self._random = np.random.default_rng((seed, 1))

    def set_mutators(
        self, match: int, factors: Mapping[str, float], values: Mapping[str, float] | None = None
    ) -> None:
        """Set the physics of a match from its next `put` on; see `Simulator.set_mutators`."""
        one = self._matches[match]
        one.factors, one.values = dict(factors), dict(values or {})

    def put(self, matches: Sequence[int], desired: MatchState) -> None:
        """Put some matches into new states, with fresh cars; raises ValueError for another number."""
        if desired.matches != len(matches):
            raise ValueError(f"{desired.matches} states for {len(matches)} matches, expected one each")
        for row, number in enumerate(matches):
            try:
                self._matches[number].put(self._own(number), desired, row, self.state)
            except RuntimeError:  # this arena does not give the pinned order of cars any more
                new, old = self._make(number), self._matches[number]
                new.factors, new.values = old.factors, old.values
                self._matches[number] = new
                new.put(self._own(number), desired, row, self.state)
            self._waiting[number] = desired.car_controls[row][:, None]
        self.state.buffer[matches] = desired.buffer
        for number in matches:
            if not self._matches[number].values.get("boost_pads_enabled", 1.0):
                self.state.pad_timer[number] = simulator.NEVER
        self.state.car_known[:] = 1

    def _own(self, number: int) -> dict[str, float]:
        own = dict(self._matches[number].factors)
        if self._thrust:
            own["boost_accel_air"] = own.get("boost_accel_air", 1.0) * GAME_BOOST_AIR
        return own

    def nudge(self, matches: Sequence[int], desired: MatchState, ball: bool, cars: np.ndarray) -> None:
        """Move the ball and the cars that `cars`, `(n, cars)` bool, names; contacts are forgotten."""
        layout = self.state.layout
        firsts = range(layout.car_start + CAR_COLUMNS["position"], layout.size, layout.car_stride)
        for row, match in enumerate(matches):
            one, given, shown = self._matches[match], desired.buffer[row], self.state.buffer[match]
            moved = [(one.reader.cars[car], firsts[car]) for car in np.flatnonzero(cars[row]).tolist()]
            for body, first in [(one.arena.ball, _OF_BALL), *moved] if ball else moved:
                place = slice(first, first + arenas.BODY_SIZE)
                body.set_state(arenas.set_body(body.get_state(), given[place].tolist()))
                shown[place] = given[place]
        np.greater(np.abs(self.state.ball_position[:, 1]), GOAL_THRESHOLD_Y, out=self.state.goal_scored)

    def step(
        self, rows: np.ndarray, delay: Sequence[int] | np.ndarray | None = None,
        times: simulator.PartTimes | None = None,
    ) -> None:  # fmt: skip
        """Step all matches by control vectors `(matches, cars, ticks, 8)`; see `Simulator.step`.

        As RLGym's engine with `rlbot_delay=True` where the delay is 1: the first tick is still driven by the
        last step's last vector.
        """
        rows = np.asarray(rows, np.float32)
        late = simulator.spread_delays([1] if delay is None else delay, self._shape)
        if late.any():
            played = self._plan(rows, late)
        else:
            played, self._waiting = rows, rows[:, :, -1:].copy()
        self._events.clear()
        back = self._coming_back(rows.shape[2])
        for number, match in enumerate(self._matches):
            self._play(match, played[number], back.get(number, {}))
        if times is not None:
            times.end("physics")
        self._read(rows.shape[2])
        if times is not None:
            times.end("reading")

    def play(self, rows: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
        """Play `(matches, cars, ticks, 8)`; return `(matches, ticks, size)`; see `Simulator.play`."""
        rows, ticks = np.asarray(rows, np.float32), rows.shape[2]
        frames = np.full((len(lengths), ticks, self.state.layout.size), np.nan, np.float32)
        self._events.clear()
        for number, length in enumerate(lengths):
            match = self._matches[number]
            for tick in range(length):
                self._play(match, rows[number, :, tick : tick + 1], {})
                match.reader.read_into(self.state, number)
                frames[number, tick] = self.state.buffer[number]
        return frames

    def forecast_ball(self, match: int, ticks: int, every: int = 1) -> np.ndarray:
        """Return where the untouched ball goes, shape `(ticks // every, 9)`; see `Simulator`."""
        arena = self._matches[match].arena
        if self._alone is None:
            self._alone, _ = arenas.make_arena([], None, self._mode)
        alone = self._alone
        arenas.set_mutators(alone, arena.get_mutator_config())
        alone.ball.set_state(arena.ball.get_state())
        numbers: list[float] = []
        for _ in range(ticks // every):
            alone.step(every)
            body = alone.ball.get_state()
            numbers += (*body.pos.as_tuple(), *body.vel.as_tuple(), *body.ang_vel.as_tuple())
        packed = struct.pack(f"{len(numbers)}f", *numbers)
        return np.frombuffer(packed, np.float32).reshape(-1, 9)

    def forecast(self, matches: Sequence[int], rows: np.ndarray, ahead: MatchState) -> None:
        """Refuse, by `SimulatorError`, to play copies on, whatever `rows`, `(n, cars, ticks, 8)`, are."""
        why = "RocketSim 2.2.1 cannot copy a match to the bit; rocketsim3 forecasts matches"
        raise simulator.SimulatorError(why)

    def events(self) -> np.ndarray:
        """Return the latest step's events, shape `(events,)`, without landings and bounces."""
        return np.array(self._events, simulator.EVENT)

    def target_speed(self, match: int) -> float:
        """Return the speed that a homing ball aims at, uu/s; 0 for any other."""
        if self._mode != rsim.GameMode.HEATSEEKER:
            return 0.0
        return float(self._matches[match].arena.ball.get_state().heatseeker_target_speed)

    # --- stepping --------------------------------------------------------------------------------

    def _plan(self, rows: np.ndarray, late: np.ndarray) -> np.ndarray:
        """Put vectors behind those that wait, `late` ticks later; return those of the next ticks."""
        ticks = rows.shape[2]
        most = int(late.max(initial=0)) + ticks
        if most == ticks:  # they act at once, and nothing waits
            self._waiting = rows[:, :, -1:].copy()
            return rows
        waiting = self._waiting
        if (missing := most - waiting.shape[2]) > 0:
            waiting = np.concatenate([waiting, np.repeat(waiting[:, :, -1:], missing, axis=2)], axis=2)
        for one in np.unique(late).tolist():
            some = late == one
            waiting[some, one : one + ticks] = rows[some]
            waiting[some, one + ticks :] = rows[some, -1:]
        rest = waiting[:, :, ticks:] if waiting.shape[2] > ticks else waiting[:, :, -1:]
        self._waiting = rest.copy()
        return np.asarray(waiting[:, :, :ticks])

    def _play(self, match: "_Match", played: np.ndarray, back: Mapping[int, Sequence[int]]) -> None:
        """Step one match by `(cars, ticks, 8)`; `back` has the cars that come back before a tick."""
        ticks = played.shape[1]
        ends = [ticks]
        if ticks > 1:
            changes = (played[:, 1:] != played[:, :-1]).any(axis=(0, 2))
            ends = sorted({*(np.flatnonzero(changes) + 1).tolist(), *back, ticks} - {0})
        match.listener.began = match.arena.tick_count  # from which ticks of events count
        for first, end in zip([0, *ends], ends, strict=False):
            for car in back.get(first, ()):  # RocketSim would choose the spot by itself one tick later
                match.reader.cars[car].respawn(seed=int(self._random.integers(2**31)))
            vectors = played[:, first].tobytes()
            if vectors != match.held:
                match.held = vectors
                for car, number in zip(match.reader.cars, range(0, len(vectors), 32), strict=True):
                    car.set_controls(self._as_controls(vectors[number : number + 32]))
            match.arena.step(end - first)

    def _as_controls(self, vector: bytes) -> rsim.CarControls:
        """Return a float32 vector's bytes as RocketSim's object; most come again and again."""
        known = self._controls.get(vector)
        if known is None:
            if len(self._controls) >= _MOST_CONTROLS:
                self._controls.clear()
            known = self._controls[vector] = arenas.control_of(np.frombuffer(vector, np.float32).tolist())
        return known

    def _coming_back(self, ticks: int) -> dict[int, dict[int, list[int]]]:
        """Return the cars whose wrecks come back within some ticks, by match and tick."""
        found: dict[int, dict[int, list[int]]] = {}
        if self.state.car_is_demoed.any():
            timers = self.state.car_demo_respawn_timer
            for match, car in np.argwhere(timers > 0).tolist():
                tick = round(float(timers[match, car]) * TICKS_PER_SECOND) - 1
                if 0 <= tick < ticks:
                    found.setdefault(match, {}).setdefault(tick, []).append(car)
        return found

    def _read(self, ticks: int) -> None:
        state = self.state
        frames, kept, ids = state.frame + ticks, state.buffer[:, _KEPT].copy(), state.car_player_id.copy()
        for number, match in enumerate(self._matches):
            match.reader.read_into(state, number)
        state.frame[:], state.buffer[:, _KEPT], state.car_player_id[:] = frames, kept, ids
        for match, _, kind, car, *_ in self._events:
            if kind == EventKind.TOUCH:
                state.car_ball_touches[match, car] += 1


class _Match:
    """One arena, its cars in their order, and its physics."""

    def __init__(
        self, number: int, arena: rsim.Arena, cars: Sequence[rsim.Car], events: list[tuple[Any, ...]]
    ) -> None:
        self.number, self.arena = number, arena
        self.reader = arenas.ArenaReader(arena, cars)
        self.factors: dict[str, float] = {}
        self.values: dict[str, float] = {}
        self.held = b""
        self._homing: bool = arena.game_mode == rsim.GameMode.HEATSEEKER
        pads = {pad.get_pos().as_tuple(): place for place, pad in enumerate(arena.get_boost_pads())}
        self.listener = _Listener(number, pads, events)
        self.listener.listen(arena, not self._homing)

    def put(
        self, factors: Mapping[str, float], desired: MatchState, row: int, shown: MatchState,
    ) -> None:  # fmt: skip
        """Put the arena into a state; a homing ball that is not moved keeps what it aims at."""
        ball = None
        if self._homing:
            numbers = slice(*(shown.layout.column(name) for name in ("ball_position", "pad_timer")))
            if (desired.buffer[row, numbers] == shown.buffer[self.number, numbers]).all():
                ball = self.arena.ball.get_state()
        self.listener.places.clear()
        cars = arenas.write_arena(self.arena, desired, row, self._config(), factors)
        if ball is not None:
            self.arena.ball.set_state(ball)
        self.reader = arenas.ArenaReader(self.arena, cars, desired.car_hitbox[row].astype(int).tolist())
        self.listener.places.update((car.id, place) for place, car in enumerate(cars))
        self.held = desired.car_controls[row].tobytes()
        if not self.values.get("boost_pads_enabled", 1.0):
            gone = rsim.BoostPadState()
            gone.is_active, gone.cooldown = False, simulator.NEVER
            for pad in self.arena.get_boost_pads():
                pad.set_state(gone)

    def _config(self) -> rsim.MutatorConfig:
        """Return the mode's own mutators with the values of this match."""
        config = rsim.MutatorConfig(self.arena.game_mode)
        for name, value in self.values.items():
            if name == "demo_mode":
                config.demo_mode = _DEMO_MODES[int(value)]
            elif name != "boost_pads_enabled":
                setattr(config, name, bool(value) if name in _FLAGS else value)
        return config


class _Listener:
    """Appends what happens in an arena to the events, rows of `EVENT`; `places` are the cars by their ids.

    It holds no arena: one that is held by its own callbacks would live for ever.
    """

    def __init__(self, match: int, pads: Mapping[Any, int], events: list[tuple[Any, ...]]) -> None:
        self.places: dict[int, int] = {}
        self.began = 0
        self._match, self._pads, self._events = match, pads, events
        self._in_goal = -10  # tick in which the ball was last in a goal

    def listen(self, arena: rsim.Arena, credits: bool) -> None:
        """Take an arena's callbacks; Heatseeker refuses those of shots, saves and assists."""
        arena.set_ball_touch_callback(self._on_touch)
        arena.set_car_bump_callback(self._on_bump)
        arena.set_car_demo_callback(self._on_demolition)
        arena.set_boost_pickup_callback(self._on_pad)
        arena.set_goal_score_callback(self._on_goal)
        if credits:
            arena.set_shot_event_callback(self._on_shot)
            arena.set_save_event_callback(self._on_save)
            arena.set_goal_event_callback(self._on_credit)

    def _add(self, arena: rsim.Arena, kind: EventKind, car: int, other: int = -1, *numbers: float) -> None:
        padded = (*numbers, *(0.0,) * (6 - len(numbers)))
        self._events.append((self._match, max(0, arena.tick_count - self.began), kind, car, other, padded))

    def _add_of(
        self, arena: rsim.Arena, kind: EventKind, car: rsim.Car, other: rsim.Car | None, *numbers: float
    ) -> None:
        place = self.places.get(car.id)
        if place is not None:  # else `place_cars` tries where its cars lie
            self._add(arena, kind, place, -1 if other is None else self.places.get(other.id, -1), *numbers)

    def _on_touch(self, arena: rsim.Arena, car: rsim.Car, data: object) -> None:
        hit = car.get_state().ball_hit_info
        ball, from_centre = hit.ball_pos.as_tuple(), hit.relative_pos_on_ball.as_tuple()
        place = (a + b for a, b in zip(ball, from_centre, strict=True))
        self._add_of(arena, EventKind.TOUCH, car, None, *place, *from_centre)

    def _on_bump(
        self, arena: rsim.Arena, bumper: rsim.Car, victim: rsim.Car, is_demo: bool, data: object
    ) -> None:
        if not is_demo:
            self._add_of(arena, EventKind.BUMP, bumper, victim, *victim.get_state().pos.as_tuple())

    def _on_demolition(self, arena: rsim.Arena, bumper: rsim.Car, victim: rsim.Car, data: object) -> None:
        self._add_of(arena, EventKind.DEMOLITION, bumper, victim, *victim.get_state().pos.as_tuple())

    def _on_pad(self, arena: rsim.Arena, car: rsim.Car, boost_pad: rsim.BoostPad, data: object) -> None:
        if car.id in self.places:
            self._add(arena, EventKind.PAD, self.places[car.id], self._pads[boost_pad.get_pos().as_tuple()])

    def _on_goal(self, arena: rsim.Arena, team: int, data: object) -> None:
        if arena.tick_count - self._in_goal > 1:  # it is called again in every tick
            speed = math.hypot(*arena.ball.get_state().vel.as_tuple())
            self._add(arena, EventKind.GOAL, -1, -1, float(team), speed)
        self._in_goal = arena.tick_count

    def _on_shot(self, arena: rsim.Arena, shooter: rsim.Car, passer: rsim.Car | None, data: object) -> None:
        self._add_of(arena, EventKind.SHOT, shooter, passer)

    def _on_save(self, arena: rsim.Arena, saver: rsim.Car, data: object) -> None:
        self._add_of(arena, EventKind.SAVE, saver, None)

    def _on_credit(self, arena: rsim.Arena, shooter: rsim.Car, passer: rsim.Car | None, data: object) -> None:
        self._add_of(arena, EventKind.CREDIT, shooter, passer)
