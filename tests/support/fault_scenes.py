"""Play scenes in which a fault acts, and record them in the forms that files have.

    Form, Fault -> scenes, players -> simulator (the fault acts) -> recorder -> Recording

The fault is the game's: a recording holds what its recorder believed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from rlgym.rocket_league.action_parsers import LookupTableAction

from rlgym_bridge.components.mutators import RandomStateMutator, blank_state
from rlgym_bridge.game import BALL_REST_Z, CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.policy.chaser import Chaser
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from rlgym_bridge.recording.tables.table_recording import rise
from rlgym_bridge.rotations import from_euler, from_quaternions, to_quaternions
from rlgym_bridge.sim.simulator import ROCKETSIM3, make_simulator
from rlgym_bridge.state import MatchState, derive

SCENES: Final = 16
TICKS: Final = 480  # of a scene
_SHORTEST: Final = 60  # ticks of a scene that a goal or a demolition ends
_SKIP: Final = 8  # ticks between decisions of a bot
_BREAK: Final = 1200  # ticks between scenes
_AIMED: Final = 100  # ticks for which a car drives straight at what it is to hit
_TABLE: Final = LookupTableAction.make_lookup_table()
_STEER, _PITCH, _YAW, _ROLL, _JUMP, _BOOST, _HANDBRAKE = range(1, 8)  # columns of a control vector
_STICKS: Final = 5  # columns before the buttons
_NOISE: Final = {"position": 0.02, "linear_velocity": 0.1}  # uu, uu/s

Applied = Callable[[np.ndarray, int], np.ndarray]
"""Returns the control vectors `(scenes, cars, 8)` that drive a tick, of all `(scenes, cars, ticks, 8)`."""
Push = Callable[[MatchState, MatchState], None]
"""Changes velocities after a tick: takes the states before it and after it, and writes the latter."""
Believed = Callable[[MatchState, MatchState], None]
"""Changes the frames that a recorder shows: takes them, and those of a tick before."""


@dataclass(frozen=True)
class Form:
    """The form in which a file shows a match.

    Attributes:
        table: A table, else a match with all that is hidden.
        rate: Rows a second.
        digits: Of states: "exact", "6 digits", "2 decimals", or the game's "integers".
        noisy: Whether positions and velocities have Gaussian noise of 0.02 uu and 0.1 uu/s.
        sticks: Steps of a stick from 0 to 1; 0 for exact ones.
        clock: Rounding of times: "exact", "ms" or "float32".
        sent: Whether rows hold inputs that act `lag` ticks later, else those that were applied.
        lag: In ticks.
        lost: Share of rows that are lost, as their times show.
        fast: Share by which the clock runs fast.
        held: Whether players change inputs only at rows.
        cars: 1 or 2.
    """

    table: bool = False
    rate: int = TICKS_PER_SECOND
    digits: str = "exact"
    noisy: bool = False
    sticks: int = 0
    clock: str = "exact"
    sent: bool = False
    lag: int = 0
    lost: float = 0.0
    fast: float = 0.0
    held: bool = True
    cars: int = 2

    def __str__(self) -> str:
        """Return the form in words."""
        if not self.table:
            return f"match of {self.cars}"
        told = [f"table of {self.rate}, {self.cars} cars", f"states {self.digits}", f"times {self.clock}"]
        told += ["noise"] * self.noisy + [f"sticks 1/{self.sticks}"] * bool(self.sticks)
        told += [f"sent, lag {self.lag}"] * self.sent + [f"{self.lost:.1%} lost"] * bool(self.lost)
        told += [f"clock {self.fast:+.2%}"] * bool(self.fast)
        return ", ".join(told + ["inputs change between rows"] * (not self.held))


@dataclass(frozen=True)
class Fault:
    """A way in which the game differs from what a recording and a simulator say.

    Attributes:
        text: The fault with its size.
        names: Patterns of the names that are right for it; none where nothing that is tried describes it.
        cars: Whose inputs it changes.
        quiet: Whether "no gap" is right too.
        applied: What the game makes of control vectors; None changes nothing.
        push: What the game does to velocities; None for nothing.
        believed: What the recorder makes of states; None for nothing.
        row_inputs: Ticks for which a table keeps showing the same inputs.
        lost: Share of rows that are lost without a trace in the times.
        unrecorded: A control that the recording does not have.
        factors: Of the game's constants.
        simulator: Name of what plays.
        scenes: "mixed", or "hit" and "meet" for more hits and bumps.
        form: What the form has to be.
    """

    text: str
    names: tuple[str, ...] = ()
    cars: tuple[int, ...] = ()
    quiet: bool = False
    applied: Applied | None = None
    push: Push | None = None
    believed: Believed | None = None
    row_inputs: int = 1
    lost: float = 0.0
    unrecorded: str = ""
    factors: Mapping[str, float] = field(default_factory=dict)
    simulator: str = ROCKETSIM3
    scenes: str = "mixed"
    form: Mapping[str, Any] = field(default_factory=dict)


def make_recording(source: str, fault: Fault, form: Form, random: np.random.Generator) -> Recording:
    """Play scenes in which a fault acts, and record them."""
    frames, pressed = _play(fault, form, random)
    step = TICKS_PER_SECOND // form.rate
    scene, tick = np.divmod(np.arange(SCENES * TICKS), TICKS)  # frame 0 is the state that was put
    kept = (tick > 0) & (tick % step == 0) & (tick < _lengths(frames, form.cars)[scene])
    kept &= random.random(len(tick)) >= form.lost + fault.lost
    scene, tick = scene[kept], tick[kept]
    before = MatchState(*_teams(form), len(tick), frames[scene, tick - 1])
    state = MatchState(*_teams(form), len(tick), frames[scene, tick])
    shown = tick - tick % fault.row_inputs + (0 if form.sent else -1)  # ticks that the inputs drive
    state.car_controls[:] = pressed[scene, shown.clip(0)]
    recorded = np.ones((form.cars, 8), bool)
    if fault.unrecorded:
        recorded[:, CONTROL_NAMES.index(fault.unrecorded)] = bool(random.random() < 0.5)
    if fault.believed is not None:
        fault.believed(state, before)
    if form.table:
        state = _as_table(state, form, random)
    if fault.lost:  # every row is said to come a step after the row before
        tick = step * (np.arange(len(tick)) - np.searchsorted(scene, scene))
    tick = 1000 + scene * (TICKS + _BREAK) + tick
    seconds = tick / TICKS_PER_SECOND * (1 + form.fast)
    if form.table:
        rounded = {"ms": np.round(seconds, 3), "float32": seconds.astype(np.float32).astype(float)}
        seconds = rounded.get(form.clock, seconds)
        tick = np.round((seconds - seconds[0]) * TICKS_PER_SECOND).astype(np.int64)
    new, tick = rise(np.arange(len(tick)), tick, seconds)
    state = MatchState(*_teams(form), len(new), state.buffer[new])
    state.frame[:] = tick
    there = np.ones((len(new), form.cars), bool)
    return Recording(
        source, state, tick, seconds[new],
        scene[new].astype(np.int32), there[:, 0], there,
        TimeBase.SECONDS if form.table else TimeBase.TICKS, Inputs.SENT if form.sent else Inputs.APPLIED,
        recorded,
    )  # fmt: skip


def _teams(form: Form) -> tuple[int, int]:
    return 1, form.cars - 1


def _lengths(frames: np.ndarray, cars: int) -> np.ndarray:
    """Return ticks of each scene up to a goal or a demolition, `(scenes,)`; 0 for too few."""
    flat = MatchState(1, cars - 1, len(frames) * TICKS, frames.reshape(-1, frames.shape[2]))
    over = ((flat.goal_scored > 0) | (flat.car_is_demoed > 0).any(1)).reshape(len(frames), TICKS)
    ends = np.where(over.any(1), over.argmax(1), TICKS)
    return np.asarray(np.where(ends < _SHORTEST, 0, ends))


def _play(fault: Fault, form: Form, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return all frames `(scenes, TICKS, size)`, and what players pressed `(scenes, TICKS, cars, 8)`.

    Frame k is the state before tick k.
    """
    simulator = make_simulator(fault.simulator, SCENES, *_teams(form), seed=int(random.integers(1 << 30)))
    start, aims = _draw_start(form, fault.scenes, random)
    pressed = _draw_presses(aims, random)
    bots = (np.arange(form.cars) > 0) & (random.random((SCENES, 1)) < 0.5) & ~aims
    if fault.unrecorded:
        pressed[..., CONTROL_NAMES.index(fault.unrecorded)] = 0
    chaser = Chaser(int(random.integers(1000)))
    chaser.reset([form.cars - 1], int(random.integers(1000)))
    for match in range(SCENES):
        simulator.set_mutators(match, fault.factors)
    simulator.put(range(SCENES), start)
    grain = TICKS_PER_SECOND // form.rate if form.held else 1
    frames = np.empty((SCENES, TICKS, start.layout.size), np.float32)
    alive, now = np.ones((SCENES, form.cars), bool), np.zeros((SCENES, form.cars), np.int64)
    for tick in range(TICKS):
        frames[:, tick] = simulator.state.buffer
        if bots.any() and tick % _SKIP == 0:
            decided = _TABLE[chaser.act(None, simulator.state)]
            if fault.unrecorded:
                decided[..., CONTROL_NAMES.index(fault.unrecorded)] = 0
            pressed[:, :, tick : tick + _SKIP][bots] = decided[bots[:, -1]]
        pressed[:, :, tick] = pressed[:, :, tick - tick % grain]
        late = max(tick - form.lag, 0)
        given = pressed[:, :, late].copy() if fault.applied is None else fault.applied(pressed, late)
        simulator.step(np.ascontiguousarray(np.clip(given, -1, 1)[:, :, None]), delay=now)
        if fault.push is not None:
            before, after = MatchState(*_teams(form), SCENES, frames[:, tick].copy()), simulator.state.copy()
            fault.push(before, after)
            simulator.nudge(range(SCENES), after, True, alive & (after.car_is_demoed == 0))
    return frames, np.swapaxes(pressed, 1, 2)


# --- scenes and players ----------------------------------------------------------------------------


def _draw_start(form: Form, scenes: str, random: np.random.Generator) -> tuple[MatchState, np.ndarray]:
    """Return states to begin with, and which cars drive straight at something, `(scenes, cars)` bool."""
    state = blank_state(*_teams(form), SCENES)
    RandomStateMutator(ground_share=0.6, car_speed=1800.0, ball_speed=2500.0).apply_batch(state, random)
    state.car_boost_amount[:] = random.uniform(30, 100, (SCENES, form.cars))
    aims = np.zeros((SCENES, form.cars), bool)
    usual = {"mixed": ("free", "hit", "wall", "free", "hit", "meet")}.get(scenes, (scenes, scenes, "free"))
    for scene in range(SCENES):
        kind = str(usual[scene % len(usual)])
        if kind == "wall":
            _put_on_wall(state, scene, random)
        elif kind == "hit" or (kind == "meet" and form.cars == 2):
            _aim(state, scene, kind, random)
            aims[scene, 0] = True
            aims[scene, -1] |= kind == "meet"
    derive(state)
    return state, aims


def _put_on_wall(state: MatchState, scene: int, random: np.random.Generator) -> None:
    """Put the first car on a side wall, driving along it or up."""
    side, angle = random.choice([-1.0, 1.0]), random.uniform(0, np.pi)
    forward = np.array([0, np.cos(angle), np.sin(angle)])
    up = np.array([-side, 0, 0])
    state.car_position[scene, 0] = side * (4096 - 17), random.uniform(-2500, 2500), random.uniform(400, 1200)
    state.car_rotation[scene, 0] = np.stack([forward, np.cross(up, forward), up], -1)
    state.car_linear_velocity[scene, 0] = random.uniform(700, 1700) * forward
    state.car_angular_velocity[scene, 0] = 0
    state.car_wheels_with_contact[scene, 0] = 1


def _aim(state: MatchState, scene: int, kind: str, random: np.random.Generator) -> None:
    """Put cars on the floor that drive at the ball, or at each other, with some offset."""
    target = np.array([*random.uniform(-1800, 1800, 2), 0.0])
    if kind == "hit":
        height = BALL_REST_Z + random.choice([0, 0, 60])
        state.ball_position[scene] = (*target[:2], height)
        state.ball_linear_velocity[scene] = [*random.uniform(-150, 150, 2), 0]
        state.ball_angular_velocity[scene] = 0
    turn = random.uniform(-np.pi, np.pi)
    for car in range(state.layout.cars if kind == "meet" else 1):
        angle = turn + car * random.uniform(0.4 * np.pi, np.pi)
        forward, right = np.array([np.cos(angle), np.sin(angle), 0]), [-np.sin(angle), np.cos(angle), 0]
        offset = random.uniform(-70, 70) * np.array(right)
        speed = random.uniform(600, 1200)
        state.car_position[scene, car] = target - 0.6 * speed * forward + offset + (0, 0, 17)
        state.car_rotation[scene, car] = np.stack([forward, right, (0, 0, 1)], -1)
        state.car_linear_velocity[scene, car] = speed * forward
        state.car_angular_velocity[scene, car] = 0
        state.car_wheels_with_contact[scene, car] = 1


def _draw_presses(aims: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return what humans press, `(scenes, cars, TICKS, 8)` float32: smooth sticks, jumps, dodges, flights."""
    lines = np.zeros((*aims.shape, TICKS, 8), np.float32)
    for place in np.ndindex(aims.shape):
        line = lines[place]
        for column in (_STEER, _PITCH, _YAW, _ROLL):
            line[:, column] = _smooth_stick(random)
        if random.random() < 0.5:
            line[:, _YAW] = line[:, _STEER]
        line[:, 0] = _held(random, (1.0, 1.0, 1.0, 0.7, 0.4, -1.0, 0.0))
        line[:, _BOOST] = _held(random, (1.0, 0.0, 0.0))
        line[:, _HANDBRAKE] = _held(random, (1.0, 0.0, 0.0, 0.0))
        if aims[place]:
            line[:_AIMED] = (1, *7 * [0])
        tick = int(random.integers(10, 150)) + _AIMED * bool(aims[place])
        while tick < TICKS - 60:
            tick = _jump(line, tick, random) + int(random.integers(40, 300))
    return lines


def _smooth_stick(random: np.random.Generator) -> np.ndarray:
    """Return a stick `(TICKS,)` that moves to a place within 5 to 15 ticks and stays there."""
    line, tick, last = np.zeros(TICKS), 0, 0.0
    while tick < TICKS:
        target = float(random.choice([-1, 0, 0, 1])) if random.random() < 0.5 else random.uniform(-1, 1)
        moves, length = int(random.integers(5, 16)), int(random.integers(20, 70))
        part = np.append(np.linspace(last, target, moves), np.full(length, target))[: TICKS - tick]
        line[tick : tick + len(part)] = part
        tick, last = tick + len(part), target
    return line


def _held(random: np.random.Generator, values: tuple[float, ...]) -> np.ndarray:
    """Return a control `(TICKS,)` that keeps one of some values for 20 to 100 ticks."""
    lengths = random.integers(20, 100, TICKS // 20)
    return np.repeat(random.choice(values, len(lengths)), lengths)[:TICKS]


def _jump(line: np.ndarray, tick: int, random: np.random.Generator) -> int:
    """Write a jump, a double jump or a dodge into a line `(TICKS, 8)`, and return its last tick."""
    held, wait = int(random.integers(4, 28)), int(random.integers(8, 40))
    line[tick : tick + held + 50, _JUMP] = 0
    line[tick : tick + held, _JUMP] = 1
    kind, again = random.choice(["jump", "double", "dodge", "dodge"]), tick + held + wait
    if kind != "jump":
        line[again : again + 8, _JUMP] = 1
        side = random.uniform(0, 2 * np.pi)
        ways = (np.cos(side), np.sin(side), 0) if kind == "dodge" else (0, 0, 0)
        line[again - 4 : again + 10, [_PITCH, _YAW, _ROLL]] = ways
    return again + 10


# --- what a table shows ----------------------------------------------------------------------------


def _as_table(state: MatchState, form: Form, random: np.random.Generator) -> MatchState:
    """Return bodies, boost and controls as a table's reader gives them, and nothing that is hidden."""
    shown = MatchState(*_teams(form), state.matches)
    shown.ball_known[:] = 1
    for name in ("player_id", "team", "hitbox", "controls"):
        getattr(shown, f"car_{name}")[:] = getattr(state, f"car_{name}")
    shown.car_controls[..., :_STICKS] = _rounded_sticks(state.car_controls[..., :_STICKS], form.sticks)
    boost = state.car_boost_amount.astype(float)
    shown.car_boost_amount[:] = np.floor(boost) if form.digits == "integers" else _rounded(boost, form)
    for part in ("ball_", "car_"):
        for name in ("position", "linear_velocity", "angular_velocity"):
            values = getattr(state, part + name).astype(float)
            if form.noisy:
                values += random.normal(0, _NOISE.get(name, 0.0), values.shape)
            getattr(shown, part + name)[:] = _rounded(values, form, name == "angular_velocity")
    shown.car_rotation[:] = _rounded_rotation(state.car_rotation, form)
    return shown


def _rounded_sticks(values: np.ndarray, steps: int) -> np.ndarray:
    return np.round(values * steps) / steps if steps else values


def _rounded(values: np.ndarray, form: Form, spin: bool = False) -> np.ndarray:
    """Return float64 numbers of any shape with a form's digits."""
    if form.digits == "exact":
        return values
    if form.digits != "6 digits":
        return np.round(values, 4 if spin and form.digits == "integers" else 2)
    size = 10.0 ** (5 - np.floor(np.log10(np.maximum(np.abs(values), 1e-30))))
    return np.asarray(np.round(values * size) / size)


def _rounded_rotation(matrices: np.ndarray, form: Form) -> np.ndarray:
    """Return rotations `(rows, cars, 3, 3)` from angles of 32768 to half a turn, or rounded quaternions."""
    flat = matrices.reshape(-1, 3, 3).astype(float)
    if form.digits == "exact":
        return matrices
    if form.digits == "integers":
        angles = np.stack([
            np.arcsin(flat[:, 2, 0].clip(-1, 1)), np.arctan2(flat[:, 1, 0], flat[:, 0, 0]),
            np.arctan2(-flat[:, 2, 1], flat[:, 2, 2]),
        ], -1)  # fmt: skip
        return from_euler(np.round(angles / np.pi * 32768) * np.pi / 32768).reshape(matrices.shape)
    quaternions = to_quaternions(flat)
    digits = _rounded(quaternions, form) if form.digits == "6 digits" else np.round(quaternions, 4)
    return from_quaternions(digits).reshape(matrices.shape)
