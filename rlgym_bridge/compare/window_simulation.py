"""Simulate windows in batches, as recorded or with alterations applied.

A simulator is put into a recorded state, follows the recording for the window's lead, so that what no row
shows (timers, contacts, suspension) comes about, and is free from the window's start on.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rlgym_bridge.compare.alterations import Applied, alter_drive, alter_values, factors_of, time_scale
from rlgym_bridge.compare.noise import Draw
from rlgym_bridge.compare.tracks import (
    BALL,
    BODY_SIZE,
    FROM_STATE,
    POSITION,
    ROTATION,
    SPIN,
    VELOCITY,
    Track,
    body_values,
    shown,
    stands,
)
from rlgym_bridge.compare.windows import Window, kink_of
from rlgym_bridge.game import GRAVITY, TICK_SECONDS
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3, Simulator, make_simulator, simulator_for
from rlgym_bridge.state import MatchState

_EVERY: Final = {ROCKETSIM3: 8.0, ROCKETSIM2: 4.0}
"""Ticks; a simulation stays within a hundredth of a uu of what it follows."""
_CHUNK: Final = {ROCKETSIM3: 400, ROCKETSIM2: 2}  # matches played at a time: bounded memory, few arenas
_CORES: Final = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
_FULL_TANK: Final = 100.0
_SETTLED: Final = 24.0  # ticks after which a car that was elsewhere drives as if it had not been
_AWAY: Final = (0.0, 0.0, 5000.0)  # uu: where a ball that takes no part lies asleep
_MUTATED_GRAVITY: Final = 0.1
"""Share by which a recorded gravity has to differ from 1 to be the match's rule and no gap: the game's own
mutators are 0, 0.5, 1.75 and more [RLBot's match configuration]; a recording that knows none has 0."""
_TO_STATE: Final = np.argsort(FROM_STATE)


@dataclass
class Simulated:
    """The simulated ends of some windows; what a window lacks is nan."""

    values: np.ndarray  # `(n, ends, bodies, 18)`, see `tracks.BODY_SIZE`
    # `(n, ends, bodies, 2)` int, least and most wheels on something from the start to the end
    wheels: np.ndarray
    kicked: np.ndarray  # `(n, ends, bodies)` bool, whether the velocity has a kink by then
    jumped: np.ndarray  # `(n, bodies)` bool, whether a jump or dodge is in the car's memory at the start


@dataclass
class _Plan:
    """A window as it is played: bodies, states to follow, control vectors, and when to look."""

    window: Window
    bodies: tuple[int, ...]
    first: int  # row of the recording
    values: np.ndarray
    apart: list[int]
    controls: np.ndarray
    handbrakes: list[float]  # of its cars, at first
    after: np.ndarray
    applied: Applied


class Bench:
    """Simulators for windows, kept from one call to the next: making one takes long.

    Without `thrust` RocketSim 2.2.1 is as RLGym has it, see `RocketSim2`.
    """

    def __init__(self, simulator: str = ROCKETSIM3, *, thrust: bool = True) -> None:
        self.simulator, self._thrust = simulator, thrust
        self._made: dict[tuple[int, int, int, str], Simulator] = {}
        self._other: Bench | None = None

    @property
    def other(self) -> "Bench":
        """The other simulator."""
        if self._other is None:
            self._other = Bench(ROCKETSIM2 if self.simulator == ROCKETSIM3 else ROCKETSIM3)
        return self._other

    def of_draws(self, mode: str) -> "Bench":
        """Return what draws are simulated by in a mode: RocketSim 3 if it can, which is far quicker.

        How far the draws of a window are apart follows from the file.
        """
        return self.other if self.simulator != simulator_for(mode)[0] else self

    def of(self, matches: int, blue: int, orange: int, mode: str) -> tuple[Simulator, int]:
        """Return a simulator with so many matches or more, and how many it has."""
        size = min(1 << (matches - 1).bit_length(), _CHUNK[self.simulator])
        key = (size, blue, orange, mode)
        if key not in self._made:
            self._made[key] = make_simulator(
                self.simulator, size, blue, orange, mode=mode, thrust=self._thrust, threads=_CORES
            )
        return self._made[key], size


def simulate(
    windows: Sequence[Window],
    applied: Applied = (),
    *,
    bench: Bench,
    draw: Draw | None = None,
    each: Sequence[Applied] = (),
) -> Simulated:
    """Simulate windows of any recordings from their starts to their ends, and return these in their order.

    All of `applied` acts; if `each` has alterations for each window, those act in place of it. `draw` is one
    of what the file leaves open; None for what it says.

    Raises:
        FileNotFoundError: The collision meshes are not installed.
    """
    most = max((len(window.ends) for window in windows), default=0)
    bodies = max((len(window.bodies) for window in windows), default=0)
    found = Simulated(
        np.full((len(windows), most, bodies, BODY_SIZE), np.nan),
        np.zeros((len(windows), most, bodies, 2), int), np.zeros((len(windows), most, bodies), bool),
        np.zeros((len(windows), bodies), bool),
    )  # fmt: skip
    groups: dict[tuple[int, int, bool, str, tuple[int, ...]], list[int]] = {}
    for number, window in enumerate(windows):
        there = _together(window, draw)
        teams = window.scene.recording.state.car_team[0, [one for one in there if one != BALL]]
        key = (int((teams < 1).sum()), int((teams >= 1).sum()), BALL in there)
        key = (1, 0, False) if key == (0, 1, False) else key
        places = tuple(there.index(body) for body in window.bodies)
        groups.setdefault((*key, window.scene.recording.mode, places), []).append(number)
    every, chunk = _EVERY[bench.simulator], _CHUNK[bench.simulator]
    for group, numbers in groups.items():
        numbers.sort(key=lambda number: len(windows[number].ends))
        for first in range(0, len(numbers), chunk):
            some = numbers[first : first + chunk]
            plans = [_plan(windows[one], each[one] if each else applied, draw, every) for one in some]
            _Chunk(bench, plans, group).play(found, some)
    return found


def _together(window: Window, draw: Draw | None) -> tuple[int, ...]:
    """Return the bodies of a window, and in some draws all others that are shown meanwhile."""
    if draw is None or not draw.others:  # others far away change the order in which contacts are solved
        return window.bodies
    scene, track = window.scene, window.track
    first = int(np.searchsorted(track.times, track.times[window.start] - window.lead - 1))
    rows = slice(int(track.rows[first]), int(track.rows[window.ends[-1]]) + 1)
    return tuple(
        body
        for body in scene.bodies
        if body in window.bodies or (scene.moves(body) and shown(scene.recording, body, rows).all())
    )


def _plan(window: Window, applied: Applied, draw: Draw | None, every: float) -> _Plan:
    scene, track = window.scene, window.track
    moments = _followed(track, window.start, window.lead, every, draw)
    scale = time_scale(applied)
    times = track.times[moments] * scale
    values = alter_values(applied, track, moments)
    bodies, before = _together(window, draw), 0
    if draw is not None:
        values = draw.states(values, window.bodies)
        if len(bodies) > len(window.bodies):
            values = _with_others(window, bodies, moments, values, draw)
        if times[-1] - times[0] > _SETTLED:
            elsewhere = draw.elsewhere(values[0])
            before, values = len(elsewhere), np.concatenate([elsewhere, values])
    ends = track.times[list(window.ends)] * scale
    after = ends - times[-1]
    free = max(int(np.ceil(after.max() - 1e-6)), 1)
    apart = [*np.maximum(np.round(times[1:] - times[:-1]), 1).astype(int).tolist(), free]
    begun = np.cumsum([0, *apart])
    ticks = np.repeat(times - begun[:-1], apart) + np.arange(1, begun[-1] + 1)
    cars = [body for body in bodies if body != BALL]
    controls = np.zeros((len(cars), before + len(ticks), 8))
    for place, car in enumerate(cars):
        drive = alter_drive(applied, scene, car, None if draw is None else draw.drive)
        if drive is not None:
            given = drive(window.row, ticks / scale)
            controls[place, before:] = given if draw is None else draw.controls(given, car)
    first = int(track.rows[moments[0]])
    open_ = [(*scene.handbrakes[car][first].tolist(), car) for car in cars]
    pulled = [least if draw is None else draw.handbrake(least, most, car) for least, most, car in open_]
    return _Plan(window, bodies, first, values, [1] * before + apart[:-1], controls, pulled, after, applied)


def _with_others(
    window: Window, bodies: tuple[int, ...], moments: Sequence[int], values: np.ndarray, draw: Draw
) -> np.ndarray:
    """Return states `(moments, bodies, 18)` of a window's bodies and of all others."""
    recording, rows = window.scene.recording, window.track.rows[moments]
    together: np.ndarray = np.stack([body_values(recording, body, rows) for body in bodies], axis=1)
    others = [place for place, body in enumerate(bodies) if body not in window.bodies]
    together[:, [bodies.index(body) for body in window.bodies]] = values
    together[:, others, POSITION] += draw.aside(values[0, 0], together[0, others])
    return together


def _followed(track: Track, start: int, lead: float, every: float, draw: Draw | None) -> list[int]:
    """Return the moments that the simulation is set to: now and then in the lead, then the last two."""
    if draw is not None:
        lead, every = draw.lead(min(lead, float(track.times[start] - track.times[0])), every)
    first = int(np.searchsorted(track.times, track.times[start] - lead - 0.01))
    first = max(min(first, start - 1), 0)
    if not start:
        return [0]
    step = np.floor((track.times[first : start - 1] - track.times[first] + 0.01) / every)
    chosen = first + 1 + np.flatnonzero(step[1:] > step[:-1])
    return [first, *chosen.tolist(), *range(max(start - 1, first + 1), start + 1)]


class _Chunk:
    """Windows of the same teams that are played together."""

    def __init__(
        self, bench: Bench, plans: Sequence[_Plan], group: tuple[int, int, bool, str, tuple[int, ...]]
    ) -> None:
        self._blue, self._orange, self._ball, mode, self._places = group
        self._plans = plans
        self._simulator, self._size = bench.of(len(plans), self._blue, self._orange, mode)
        self._padded = [*plans, *[plans[-1]] * (self._size - len(plans))]  # all matches begin somewhere
        self._cars = self._blue + self._orange
        layout = self._simulator.state.layout
        self._columns = [layout.column("position", car=car) for car in range(self._cars)]
        self._columns += [layout.column("ball_position")] if self._ball else []
        self._played = np.zeros(len(plans), int)

    def play(self, found: Simulated, numbers: Sequence[int]) -> None:
        """Play all windows and enter their ends."""
        simulator, plans = self._simulator, self._plans
        gravity = np.ones(self._size)
        for match, plan in enumerate(self._padded):
            factors, gravity[match] = factors_of(plan.applied)
            simulator.set_mutators(match, factors, {"boost_pads_enabled": 0.0})
        every = [*range(len(plans))]
        simulator.put([*range(self._size)], self._begin(gravity))
        self._nudge(0, every)
        for phase in range(max(len(plan.apart) for plan in plans)):
            self._advance([plan.apart[phase] if phase < len(plan.apart) else 0 for plan in plans])
            self._nudge(phase + 1, [one for one in every if phase < len(plans[one].apart)])
        state = simulator.state
        remembers = (state.car_has_jumped > 0) | (state.car_has_flipped > 0) | (state.car_is_jumping > 0)
        wheels = state.car_wheels_with_contact[: len(plans)].sum(-1)
        total = np.array([plan.controls.shape[1] for plan in plans])
        frames = self._advance((total - self._played).tolist())
        self._enter(found, numbers, frames, wheels, remembers[: len(plans)])

    def _begin(self, gravity: np.ndarray) -> MatchState:
        desired = MatchState(self._blue, self._orange, self._size)
        layout = desired.layout
        for number, plan in enumerate(self._padded):
            scene = plan.window.scene
            theirs, own = scene.recording.state, [body for body in plan.bodies if body != BALL]
            cars = theirs.buffer[plan.first, theirs.layout.car_start :].reshape(-1, layout.car_stride)
            desired.buffer[number, layout.car_start :] = cars[own].ravel()
            desired.car_handbrake[number] = plan.handbrakes
            mutated = scene.gravity and abs(scene.gravity - 1) > _MUTATED_GRAVITY
            desired.gravity[number] = gravity[number] * (scene.gravity if mutated else 1.0)
            desired.dodge_deadzone[number] = float(theirs.dodge_deadzone[0]) or 0.5
        desired.car_boost_amount[:] = _FULL_TANK
        desired.car_demo_respawn_timer[:] = 0.0
        desired.car_autoflip_timer[:] = np.maximum(desired.car_autoflip_timer, 0.0)  # it counts a tick below
        desired.car_bump_victim[:] = -1
        desired.car_team[:, self._blue :] = 1.0
        desired.car_team[:, : self._blue] = 0.0
        desired.ball_rotation[:] = np.eye(3)
        desired.ball_position[:] = _AWAY
        for place, column in enumerate(self._columns):
            given = np.stack([plan.values[0, place] for plan in self._padded])
            desired.buffer[:, column : column + BODY_SIZE] = given[:, _TO_STATE]
            if place < self._cars:
                still = desired.car_wheels_with_contact[:, place].sum(1) == 0
                still &= stands(given)
                desired.car_wheels_with_contact[still, place] = 1.0
        return desired

    def _nudge(self, phase: int, which: Sequence[int]) -> None:
        """Set bodies to the moments of a phase."""
        if not which:
            return
        desired = MatchState(self._blue, self._orange, len(which))
        desired.buffer[:] = self._simulator.state.buffer[which]
        for place, column in enumerate(self._columns):
            given = np.stack([self._plans[one].values[phase, place] for one in which])[:, _TO_STATE]
            some = np.arange(BODY_SIZE)
            if place == self._cars and phase:  # a ball goes on turning: hardly any file holds how it lies
                some = np.delete(some, range(3, 12))
            desired.buffer[:, column + some] = given[:, some]
        self._simulator.nudge(which, desired, self._ball, np.ones((len(which), self._cars), bool))

    def _advance(self, lengths: Sequence[int]) -> np.ndarray:
        """Play some ticks of each window, and return `(windows, ticks, size)`."""
        most = max(max(lengths), 1)
        rows = np.zeros((self._size, self._cars, most, 8), np.float32)
        for number, (plan, length) in enumerate(zip(self._plans, lengths, strict=True)):
            played = int(self._played[number])
            rows[number, :, :length] = plan.controls[:, played : played + length]
        frames = self._simulator.play(rows, [*lengths, *(0,) * (self._size - len(lengths))])
        self._played += np.array(lengths)
        return frames[: len(lengths)]

    def _enter(
        self, found: Simulated, numbers: Sequence[int], frames: np.ndarray, wheels: np.ndarray,
        remembers: np.ndarray,
    ) -> None:  # fmt: skip
        """Fill in the ends of the windows from their frames."""
        layout = self._simulator.state.layout
        there = np.array([len(plan.after) for plan in self._plans])[:, None] > np.arange(
            found.values.shape[1]
        )
        ends = np.zeros(there.shape)
        ends[there] = np.concatenate([plan.after for plan in self._plans])
        rows = np.arange(len(ends))[:, None]
        for slot, place in enumerate(self._places):
            column = self._columns[place]
            start = np.stack([plan.values[-1, place] for plan in self._plans])
            body = frames[:, :, column : column + BODY_SIZE][..., FROM_STATE].astype(float)
            path = np.concatenate([start[:, None], body], axis=1)
            values = _between(path, ends)
            change = np.diff(path[..., VELOCITY], axis=1)
            change[..., 2] += GRAVITY * TICK_SECONDS
            kink = kink_of(BALL if place == self._cars else 0)
            kicks = np.cumsum(np.linalg.norm(change, axis=2) > kink, axis=1)
            last = np.clip(np.ceil(ends - 1e-6).astype(int) - 1, 0, kicks.shape[1] - 1)
            kicked = kicks[rows, last] > 0
            touch = np.zeros((*ends.shape, 2), int)
            if place < self._cars:
                first = layout.column("wheels_with_contact", car=place)
                rolling = frames[:, :, first : first + 4].sum(-1)
                count = np.concatenate([wheels[:, place, None], rolling], axis=1)
                touch[..., 0] = np.minimum.accumulate(count, axis=1)[rows, last + 1]
                touch[..., 1] = np.maximum.accumulate(count, axis=1)[rows, last + 1]
                found.jumped[numbers, slot] = remembers[:, place]
            values[~there] = np.nan
            found.values[numbers, :, slot] = values
            found.kicked[numbers, :, slot] = kicked & there
            found.wheels[numbers, :, slot] = touch


def _between(path: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return paths `(n, ticks, 18)` at moments `(n, ends)`, by a cubic between ticks (Hermite's)."""
    rows = np.arange(len(path))[:, None]
    tick = np.clip((after + 1e-9).astype(int), 0, path.shape[1] - 1)
    part = np.where(after - tick < 1e-6, 0.0, after - tick)[..., None]
    one, two = path[rows, tick], path[rows, np.minimum(tick + 1, path.shape[1] - 1)]
    blend: np.ndarray = np.where(part > 0, one + part * (two - one), one)
    first, second = one[..., VELOCITY] * TICK_SECONDS, two[..., VELOCITY] * TICK_SECONDS
    square, cube = part * part, part * part * part
    curve = (
        (2 * cube - 3 * square + 1) * one[..., POSITION] + (cube - 2 * square + part) * first
        + (3 * square - 2 * cube) * two[..., POSITION] + (cube - square) * second
    )  # fmt: skip
    blend[..., POSITION] = np.where(part > 0, curve, one[..., POSITION])
    return blend


def recorded(windows: Sequence[Window], applied: Applied = (), each: Sequence[Applied] = ()) -> np.ndarray:
    """Return what was recorded at the ends of windows, `(n, ends, bodies, 18)`; nan for what is lacking."""
    most = max((len(window.ends) for window in windows), default=0)
    bodies = max((len(window.bodies) for window in windows), default=0)
    values = np.full((len(windows), most, bodies, BODY_SIZE), np.nan)
    for number, window in enumerate(windows):
        given = alter_values(each[number] if each else applied, window.track, list(window.ends))
        values[number, : given.shape[0], : given.shape[1]] = given
    return values


PARTS: Final = ("position", "velocity", "rotation", "spin")
"""Parts of a residual: uu, uu/s, rad, rad/s."""


def residuals(theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
    """Return the differences of states `(..., 18)`, `(..., 12)`: three numbers for each of `PARTS`.

    The rotation is the small turn from one to the other, in world axes.
    """
    off = theirs - ours
    turn = theirs[..., ROTATION].reshape(*theirs.shape[:-1], 3, 3)
    other = ours[..., ROTATION].reshape(*ours.shape[:-1], 3, 3)
    step = turn @ np.swapaxes(other, -1, -2)
    across = step - np.swapaxes(step, -1, -2)
    skew = np.stack([across[..., 2, 1], across[..., 0, 2], across[..., 1, 0]], axis=-1) / 2
    trace = np.trace(step, axis1=-2, axis2=-1)
    far = (trace < 1.0)[..., None]  # more than a right angle: the sine would fall again
    length = np.maximum(np.linalg.norm(skew, axis=-1, keepdims=True), 1e-12)
    skew = np.where(far, skew / length * np.arccos(np.clip((trace - 1) / 2, -1, 1))[..., None], skew)
    return np.concatenate([off[..., POSITION], off[..., VELOCITY], skew, off[..., SPIN]], axis=-1)


def apart(windows: Sequence[Window], real: np.ndarray, ours: np.ndarray) -> np.ndarray:
    """Return residuals `(n, ends, bodies, 12)` of recorded and simulated ends `(n, ends, bodies, 18)`.

    Ends move in time as far as theirs is open, and what is left after the best moment counts. A replay's
    states are of whole ticks, and their ages may be a tick or two off; a clock between ticks is as exact as
    its steps.
    """
    off = residuals(real, ours)
    for number, window in enumerate(windows):
        slack = window.scene.time_slack
        if not slack:
            continue
        step = real[number, ..., VELOCITY] * TICK_SECONDS
        along = (off[number, ..., :3] * step).sum(-1) / np.maximum((step * step).sum(-1), 1e-9)
        along = np.nan_to_num(np.clip(np.round(along) if slack > 1 else along, -slack, slack))
        rates = _rates(window)
        here, own, moved = off[number, : len(rates)], rates.shape[1], along[: len(rates), :, None]
        here[..., :3] -= moved * step[: len(rates)]
        here[..., 2] -= moved[..., 0] ** 2 * GRAVITY * TICK_SECONDS**2 / 2
        here[:, :own, 3:] -= moved[:, :own] * rates
    return off


def _rates(window: Window) -> np.ndarray:
    """Return the changes of velocity, rotation and spin in a tick at a window's ends, `(ends, bodies, 9)`."""
    track, ends = window.track, np.array(window.ends)
    ticks = (track.times[ends] - track.times[ends - 1])[:, None, None]
    now, before = track.values[ends], track.values[ends - 1]
    turn = now[..., SPIN] * TICK_SECONDS
    velocity, spin = ((now[..., part] - before[..., part]) / ticks for part in (VELOCITY, SPIN))
    return np.concatenate([velocity, turn, spin], axis=-1)
