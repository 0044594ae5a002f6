"""A recording with its times, ready to be simulated."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from rlgym_bridge.compare.clock_fit import Timeline
from rlgym_bridge.compare.tracks import (
    BALL,
    POSITION,
    TRIAL,
    VELOCITY,
    Drive,
    Track,
    body_values,
    knows_spin,
    make_tracks,
    shown,
)
from rlgym_bridge.game import (
    BALL_RADIUS,
    CONTROL_NAMES,
    STANDING_LEAST_UP,
    STANDING_MOST_Z,
    TICK_SECONDS,
    TICKS_PER_SECOND,
)
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from rlgym_bridge.sim.simulator import mode_number

_OLDEST: Final = 8  # ticks: two bodies of a replay are of different ages, 4 at most
_CAR_REACH: Final = 100.0  # uu from a car's origin to its farthest corner and a little, an Octane's 93
_ROLLS: Final = 15.0  # uu/s upwards, of a car on its wheels; the game of 2018 shows 8.3
_ROLLING_ROWS: Final = 30
_ABOVE, _HIGHEST = 3.0, 90.0
"""uu above a car's usual height that still count; usual heights beyond are no floor."""
_SLEEPS: Final = 60.0  # uu/s
_LOW: Final = 100.0  # uu, height of a ball that rolls
_LAST_BOOST: Final = 4.0  # of 100: 12 ticks burn 3.3
_LATEST_BURN: Final = 8.0  # ticks after a press in which a rounded tank begins to sink
_PRESS: Final = 4.5  # ticks: a press that is shorter is rare
_BOOST_LASTS: Final = 14.0  # ticks
_LONGEST_BURN: Final = 30.0  # ticks that a press between rows can make a rounded tank sink
_BOOST: Final = CONTROL_NAMES.index("boost")
_JUMP: Final = CONTROL_NAMES.index("jump")
_HANDBRAKE: Final = CONTROL_NAMES.index("handbrake")
_RISES, _FALLS = 5.0 * TICK_SECONDS, 2.0 * TICK_SECONDS  # of a handbrake from 0 to 1, in a tick [RocketSim]


@dataclass
class TimedRecording:
    """A recording with its times, ready to be simulated."""

    recording: Recording  # the recording
    timeline: Timeline  # when its rows were
    lag: float | np.ndarray = 0.0  # ticks by which its inputs act late, for all rows or `(rows,)`
    # whether inputs change at rows alone, as `lag` has them: then nothing is open between rows
    at_rows: bool = False

    def __post_init__(self) -> None:
        """Work out what every measurement needs."""
        recording = self.recording
        self.near = near_others(recording)
        every = (*range(recording.state.layout.cars), BALL)
        self.bodies = [body for body in every if shown(recording, body).any()]
        self.cars = [body for body in self.bodies if body != BALL]
        self.gravity = float(np.median(recording.state.gravity)) if len(recording.tick) else 0.0
        steps = np.diff(self.timeline.inputs)[np.diff(recording.segment) == 0]
        self.unseen = max(round(float(np.median(steps))) - 1, 0) if len(steps) else 0
        """Ticks from most rows to the next of which nothing is known."""
        self.driven = recording.inputs is not Inputs.NONE and bool(recording.inputs_recorded.any())
        """True if there are inputs, so that cars can be simulated."""
        self.knows_memory = isinstance(recording, MatchRecording)
        """True if the recording holds jump and dodge timers, as matches of ours do."""
        self.knows_spin = {body: knows_spin(recording, body) for body in self.bodies}
        """True if angular velocities of a body were recorded."""
        self.standing_height = {car: _standing_height(recording, car) for car in self.cars}
        """The height below which a car is on its wheels, uu, also if it is recorded too high."""
        self.lost_presses = {car: self._find_lost_presses(car) for car in self.cars}
        """By car, `(rows,)` bool: after lost rows in which a press of jump may have begun or ended."""
        self.unknown_inputs = {car: self._find_unknown(car) for car in self.cars}
        """By body, `(rows,)` bool: where a control that was not recorded could move it otherwise."""
        if BALL in self.bodies:
            self.unknown_inputs[BALL] = _falls_asleep(recording)
        self._since = {car: _ago(self.presses(car), self.timeline.inputs) for car in self.cars}
        self._tracks: dict[tuple[int, ...], list[Track]] = {}
        self._drives: dict[int, Drive] = {}  # a table of many rows has large ones: the rows are shared
        self.handbrakes = {car: self._find_handbrakes(car) for car in self.cars}
        """By car, `(rows, 2)`: the least and the most that its handbrake can be pulled, 0 to 1."""

    def moves(self, body: int) -> bool:
        """Tell whether a body can be simulated: a ball, or a car with inputs.

        The inputs of a replay come with its frames, and nobody knows in which tick each acted.
        """
        return body == BALL or (self.driven and self.recording.clock is not TimeBase.FRAMES)

    @property
    def time_slack(self) -> float:
        """Ticks by which the time of a row may be off: of a replay's ages, or of a clock between ticks."""
        if self.recording.clock is TimeBase.FRAMES:
            return 2.0
        return 0.0 if self.timeline.clock.on_ticks else 1.0

    def presses(self, car: int) -> np.ndarray:
        """Return `(rows,)` bool: rows in which a car's jump is down."""
        return np.asarray(self.recording.state.car_controls[:, car, _JUMP] > 0)

    def blocked(self, body: int) -> np.ndarray:
        """Return `(rows + 1,)` counts that rise where a body is near another or may move otherwise."""
        return np.concatenate([[0], np.cumsum(self.near[:, body] | self.unknown_inputs[body])])

    def _find_unknown(self, car: int) -> np.ndarray:
        """Return where an unrecorded control counts: on the ground, in the air; boost and jump always."""
        state = self.recording.state
        rows = self._burns_otherwise(car) | self.lost_presses[car]
        known = dict(zip(CONTROL_NAMES, self.recording.inputs_recorded[car].tolist(), strict=True))
        low = state.car_position[:, car, 2] < STANDING_MOST_Z
        ground = low & (state.car_rotation[:, car, 2, 2] > STANDING_LEAST_UP)
        if not (known["boost"] and known["jump"]):
            rows[:] = True
        if not (known["throttle"] and known["steer"]):
            rows |= ground
        if not (known["pitch"] and known["yaw"] and known["roll"]):
            rows |= ~ground
        return np.asarray(rows)

    def _find_handbrakes(self, car: int) -> np.ndarray:
        state, times = self.recording.state, self.timeline.inputs
        if self.knows_memory:
            return np.repeat(state.car_handbrake[:, car, None], 2, axis=1)
        found, drive = np.zeros((len(times), 2)), self.drive(car)
        if drive is None or not (drive.rows[:, _HANDBRAKE] > 0).any():
            return found
        for segment in self.recording.segments():
            pressed = drive.during(segment.start, times[segment])[:, _HANDBRAKE] > 0
            steps = np.diff(times[segment])
            open_ = np.round(steps) > (self.unseen + 1 if self.at_rows else 1)  # nobody knows when it changed
            before = np.where(open_, pressed[:-1], pressed[1:])
            both, either = pressed[1:] & before, pressed[1:] | before
            pulled = [(0.0, 1.0)]  # what was pressed before is not recorded
            for down, up in zip(
                *(np.where(one, _RISES, -_FALLS) * steps for one in (both, either)), strict=True
            ):
                least, most = pulled[-1]
                pulled.append((min(max(least + down, 0.0), 1.0), min(max(most + up, 0.0), 1.0)))
            found[segment] = pulled
        return found

    def _find_lost_presses(self, car: int) -> np.ndarray:
        steps = np.diff(self.timeline.inputs, prepend=self.timeline.inputs[:1])
        lost = np.round(steps) > self.unseen + 1
        pressed = self.presses(car)
        before = np.concatenate([[False], pressed[:-1]])
        return np.asarray(lost & (pressed | before | (steps > _PRESS)))

    def _burns_otherwise(self, car: int) -> np.ndarray:
        """Return `(rows,)` bool: where a tank runs empty or just has, or sinks while no row shows boost."""
        # Boost that is let go lasts 0.1 s [RocketSim], what runs out does not. A simulation's tank is full.
        amount, times = self.recording.state.car_boost_amount[:, car], self.timeline.inputs
        pressed = self.recording.state.car_controls[:, car, _BOOST] > 0
        sinks = np.diff(amount, prepend=amount[:1]) < 0
        low = (amount < _LAST_BOOST) & (pressed | sinks) & amount.any()
        # A press between rows: what burns for longer is none, what is rounded sinks some ticks later.
        sinks &= _ago(pressed, times) - self.lag > _BOOST_LASTS + _LATEST_BURN + self.unseen
        at = times[sinks]
        run = np.cumsum(np.abs(np.diff(at, prepend=at[:1])) > _LATEST_BURN)
        first, last = (np.searchsorted(run, run, side=side) for side in ("left", "right"))
        after = np.append(at[at[last - 1] - at[first] < _LONGEST_BURN], np.inf)
        later = after[np.searchsorted(after, times)] - times
        return np.asarray((_ago(low, times) < _BOOST_LASTS) | ((later >= 0) & (later < _LATEST_BURN)))

    def tracks(self, bodies: Sequence[int]) -> list[Track]:
        """Return the tracks of bodies together."""
        key = tuple(bodies)
        if key not in self._tracks:
            self._tracks[key] = make_tracks(self.recording, self.timeline.times, key)
        return self._tracks[key]

    def longest(self, bodies: Sequence[int]) -> float:
        """Return ticks from the beginning to the end of the longest track of bodies; 0 for trials alone."""
        tracks = [track for track in self.tracks(bodies) if len(track.times) > TRIAL]
        return max((float(track.times[-1] - track.times[0]) for track in tracks), default=0.0)

    def drive(self, body: int) -> Drive | None:
        """Return the inputs of a body as they act with `lag`; None for the ball."""
        if body == BALL or not self.driven:
            return None
        if body not in self._drives or self._drives[body].lag is not self.lag:
            self._drives[body] = Drive(self.recording, body, self.timeline.inputs, self.lag)
        return self._drives[body]

    def since_jump(self, car: int, row: int) -> float:
        """Return how many ticks before a row a car last pressed or let go of jump, as far as is known."""
        lag = self.lag if isinstance(self.lag, float) else self.lag[row]
        return max(float(self._since[car][row] - lag), 0.0)

    @property
    def spinless(self) -> bool:
        """True if nothing says how the ball spins: neither its spin nor its orientation."""
        if self.knows_spin.get(BALL, True):
            return False
        there, state = self.recording.ball_shown, self.recording.state
        moves = np.ptp(state.ball_position[there], axis=0).any()  # at rest it does not spin
        return bool(moves) and not np.ptp(state.ball_rotation[there], axis=0).any()


def _standing_height(recording: Recording, car: int) -> float:
    state = recording.state
    upright = shown(recording, car) & (state.car_rotation[:, car, 2, 2] > STANDING_LEAST_UP)
    rolls = upright & (np.abs(state.car_linear_velocity[:, car, 2]) < _ROLLS)
    height = state.car_position[rolls, car, 2]
    usual = float(np.percentile(height, 10)) if len(height) > _ROLLING_ROWS else 0.0
    return max(STANDING_MOST_Z, usual + _ABOVE if usual < _HIGHEST else 0.0)


def _falls_asleep(recording: Recording) -> np.ndarray:
    """Return `(rows,)` bool: where a ball rolls so slowly, nobody knows since when, that it may stop."""
    state = recording.state
    speed = np.linalg.norm(state.ball_linear_velocity, axis=1)
    return np.asarray((speed > 0) & (speed < _SLEEPS) & (state.ball_position[:, 2] < _LOW))


def _latest(there: np.ndarray) -> np.ndarray:
    """Return for each row the latest in which `there` was true, `(rows,)`; -1 for none."""
    return np.maximum.accumulate(np.where(there, np.arange(len(there)), -1))


def _ago(there: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return for each row how many ticks ago `there` was last true, `(rows,)`; infinity for never."""
    latest = _latest(there)
    return np.where(latest >= 0, times - times[latest.clip(0)], np.inf)


def near_others(recording: Recording) -> np.ndarray:
    """Return `(rows, cars + 1)` bool: where a body is so near to a car (or the ball) that they may touch."""
    cars = recording.state.layout.cars
    bodies = (*range(cars), BALL)
    near = np.zeros((len(recording.tick), cars + 1), bool)
    seen = [shown(recording, body) for body in bodies]
    ever = [place for place, one in enumerate(seen) if one.any()]
    if len(ever) < 2:  # nobody is there to be near to
        return near
    last = [np.where(_latest(one) < 0, np.argmax(one), _latest(one)) for one in seen]  # first, before it is
    motion = [body_values(recording, body, at) for body, at in zip(bodies, last, strict=True)]
    gap = np.minimum(np.diff(recording.tick, append=recording.tick[-1:] + 1).clip(1), TICKS_PER_SECOND)
    if recording.clock is TimeBase.FRAMES:
        gap = gap + _OLDEST
    there = np.ones(near.shape, bool)
    there[:, :cars] = recording.car_present & ~(recording.state.car_is_demoed > 0)
    for one, other in combinations(ever, 2):
        off = motion[one] - motion[other]
        apart, closing = (np.linalg.norm(off[:, part], axis=1) for part in (POSITION, VELOCITY))
        stale = np.abs(last[one] - last[other]) * gap
        reach = _CAR_REACH + (BALL_RADIUS if other == cars else _CAR_REACH)
        close = apart < reach + closing * TICK_SECONDS * (gap + stale)
        close &= there[:, one] & there[:, other]
        near[:, one] |= close
        near[:, other] |= close
    return near


def check_playable(recording: Recording) -> None:
    """Make sure that RocketSim plays a recorded match by the match's own rules.

    Raises:
        ValueError: The match has another game mode, arena or ball, or mutators that change the physics; the
            message says which, and what to do.
    """
    try:
        mode_number(recording.mode)
    except ValueError as error:
        raise ValueError(
            f"{recording.source} is a match of {recording.mode}, which RocketSim cannot play here: {error}. "
            "`inspect` and `view` read it; compare a match of a mode named"
        ) from None
    if recording.mutators:
        raise ValueError(
            f"{recording.source} was played with {', '.join(recording.mutators)}, expected none of these: "
            "each would count as a gap of physics. `inspect` and `view` read it; compare a match without"
        )
