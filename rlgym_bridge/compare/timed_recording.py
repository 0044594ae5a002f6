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
    body_motion,
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
        self.near = near_others(self.recording)
        every = (*range(self.recording.state.layout.cars), BALL)
        self.bodies = [body for body in every if shown(self.recording, body).any()]
        self.gravity = float(np.median(self.recording.state.gravity)) if len(self.recording.tick) else 0.0
        self._tracks: dict[tuple[int, ...], list[Track]] = {}
        self._heights: dict[int, float] = {}
        self._spins: dict[int, bool] = {}
        self._unknown: dict[int, np.ndarray] = {}
        self._since: dict[int, np.ndarray] = {}
        steps = np.diff(self.timeline.inputs)[np.diff(self.recording.segment) == 0]
        self.unseen = max(round(float(np.median(steps))) - 1, 0) if len(steps) else 0
        """Ticks from most rows to the next of which nothing is known."""
        self._drives: dict[int, Drive] = {}  # a table of many rows has large ones: the rows are shared

    @property
    def driven(self) -> bool:
        """True if there are inputs, so that cars can be simulated."""
        return self.recording.inputs is not Inputs.NONE and bool(self.recording.inputs_recorded.any())

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

    @property
    def knows_memory(self) -> bool:
        """True if the recording holds jump and dodge timers, as matches of ours do."""
        return isinstance(self.recording, MatchRecording)

    def knows_spin(self, body: int) -> bool:
        """Tell whether angular velocities of a body were recorded."""
        if body not in self._spins:
            self._spins[body] = knows_spin(self.recording, body)
        return self._spins[body]

    def standing_height(self, car: int) -> float:
        """Return the height below which a car is on its wheels, uu, also if it is recorded too high."""
        if car not in self._heights:
            state = self.recording.state
            there = shown(self.recording, car)
            upright = there & (state.car_rotation[:, car, 2, 2] > STANDING_LEAST_UP)
            rolls = upright & (np.abs(state.car_linear_velocity[:, car, 2]) < _ROLLS)
            height = state.car_position[rolls, car, 2]
            usual = float(np.percentile(height, 10)) if len(height) > _ROLLING_ROWS else 0.0
            self._heights[car] = max(STANDING_MOST_Z, usual + _ABOVE if usual < _HIGHEST else 0.0)
        return self._heights[car]

    def presses(self, car: int) -> np.ndarray:
        """Return `(rows,)` bool: rows in which a car's jump is down."""
        return np.asarray(self.recording.state.car_controls[:, car, _JUMP] > 0)

    def unknown_inputs(self, body: int) -> np.ndarray:
        """Return `(rows,)` bool: where a control that was not recorded could move a car otherwise.

        In the air those are pitch, yaw and roll; on the ground throttle, steer and handbrake; always boost
        and jump.
        """
        if body not in self._unknown:
            self._unknown[body] = self._find_unknown(body)
        return self._unknown[body]

    def _find_unknown(self, body: int) -> np.ndarray:
        if body == BALL:
            return self._falls_asleep()
        rows = self._empties(body) | self._lost_presses(body) | self._burns_unseen(body)
        if self.recording.inputs_recorded[body].all():
            return np.asarray(rows)
        known = dict(zip(CONTROL_NAMES, self.recording.inputs_recorded[body].tolist(), strict=True))
        state = self.recording.state
        low = state.car_position[:, body, 2] < STANDING_MOST_Z
        upright = state.car_rotation[:, body, 2, 2] > STANDING_LEAST_UP
        ground = low & upright
        if not (known["boost"] and known["jump"]):
            rows[:] = True
        if not (known["throttle"] and known["steer"]):
            rows |= ground
        if not (known["pitch"] and known["yaw"] and known["roll"]):
            rows |= ~ground
        return np.asarray(rows)

    def _falls_asleep(self) -> np.ndarray:
        """Return `(rows,)` bool: where a ball rolls so slowly, nobody knows since when, that it may stop."""
        state = self.recording.state
        speed = np.linalg.norm(state.ball_linear_velocity, axis=1)
        return np.asarray((speed > 0) & (speed < _SLEEPS) & (state.ball_position[:, 2] < _LOW))

    def _lost_presses(self, car: int) -> np.ndarray:
        """Return `(rows,)` bool: rows after lost ones in which a press of jump may have begun or ended."""
        times = self.timeline.inputs
        steps = np.diff(times, prepend=times[:1])
        lost = np.round(steps) > self.unseen + 1
        pressed = self.presses(car)
        before = np.concatenate([[False], pressed[:-1]])
        return np.asarray(lost & (pressed | before | (steps > _PRESS)))

    def _empties(self, car: int) -> np.ndarray:
        """Return `(rows,)` bool: where a car's tank runs empty while boost burns, or did a little before."""
        # Boost that is let go lasts 0.1 s [RocketSim], what runs out does not. A simulation's tank is full.
        amount = self.recording.state.car_boost_amount[:, car]
        times = self.timeline.inputs
        burns = (self.recording.state.car_controls[:, car, _BOOST] > 0) | (
            np.diff(amount, prepend=amount[:1]) < 0
        )
        low = (amount < _LAST_BOOST) & burns
        if not amount.any() or not low.any():
            return np.zeros(len(times), bool)
        return np.asarray(_ago(low, times) < _BOOST_LASTS)

    def _burns_unseen(self, car: int) -> np.ndarray:
        """Return `(rows,)` bool: where a tank sinks while no row shows boost: it was pressed between rows."""
        amount = self.recording.state.car_boost_amount[:, car]
        times = self.timeline.inputs
        pressed = self.recording.state.car_controls[:, car, _BOOST] > 0
        ago = _ago(pressed, times) - self.lag
        sinks = (np.diff(amount, prepend=amount[:1]) < 0) & (ago > _BOOST_LASTS + _LATEST_BURN + self.unseen)
        at = times[sinks]
        run = np.cumsum(np.abs(np.diff(at, prepend=at[:1])) > _LATEST_BURN)
        first, last = (np.searchsorted(run, run, side=side) for side in ("left", "right"))
        at = at[at[last - 1] - at[first] < _LONGEST_BURN]  # what burns for longer is no press between rows
        after = np.append(at, np.inf)  # what is left is rounded, and sinks some ticks later
        later = after[np.searchsorted(after, times)] - times
        return np.asarray((later >= 0) & (later < _LATEST_BURN))

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
        if car not in self._since:
            self._since[car] = _ago(self.presses(car), self.timeline.inputs)
        lag = self.lag if isinstance(self.lag, float) else self.lag[row]
        return max(float(self._since[car][row] - lag), 0.0)

    @property
    def spinless(self) -> bool:
        """True if nothing says how the ball spins: neither its spin nor its orientation."""
        if BALL not in self.bodies or self.knows_spin(BALL):
            return False
        there, state = self.recording.ball_shown, self.recording.state
        moves = np.ptp(state.ball_position[there], axis=0).any()  # at rest it does not spin
        return bool(moves) and not np.ptp(state.ball_rotation[there], axis=0).any()


def _ago(there: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return for each row how many ticks ago `there` was last true, `(rows,)`; infinity for never."""
    latest = np.maximum.accumulate(np.where(there, np.arange(len(times)), -1))
    return np.where(latest >= 0, times - times[latest.clip(0)], np.inf)


def near_others(recording: Recording) -> np.ndarray:
    """Return `(rows, cars + 1)` bool: where a body is so near to a car (or the ball) that they may touch."""
    cars = recording.state.layout.cars
    bodies = (*range(cars), BALL)
    near = np.zeros((len(recording.tick), cars + 1), bool)
    ever = [place for place, body in enumerate(bodies) if shown(recording, body).any()]
    if len(ever) < 2:  # nobody is there to be near to
        return near
    last = [_last_shown(shown(recording, body)) for body in bodies]
    motion = [body_motion(recording, body, at) for body, at in zip(bodies, last, strict=True)]
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


def _last_shown(there: np.ndarray) -> np.ndarray:
    """Return for each row the latest that shows something, the first that does before that."""
    rows = np.where(there, np.arange(len(there)), -1)
    latest = np.maximum.accumulate(rows) if len(rows) else rows
    first = int(np.argmax(there)) if there.any() else 0
    return np.where(latest < 0, first, latest)


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
