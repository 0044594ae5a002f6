"""Measure how much a recording leaves open: digits of states, rounding and rate of inputs, noise.

From these, never from the errors of a simulation, follows by how much a window may be off: it is simulated
again and again from states and inputs drawn within what the file leaves open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np

from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.tracks import BALL, POSITION, ROTATION, SPIN, VELOCITY, Drive, Track
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs, TimeBase
from rlgym_bridge.user_input.arguments import count_of

_STATE_PARTS: Final = {"position": POSITION, "velocity": VELOCITY, "spin": SPIN}
_LEAST: Final = {"position": 0.002, "velocity": 0.002, "spin": 0.0001}
"""uu, uu/s, rad/s that are drawn of exact states too: a fifth of what the game itself rounds to. It shows
where the least difference decides, as on an edge."""
_NEARLY_ALL: Final = 0.999  # share of numbers that have no more digits
_QUARTILE: Final = 0.3186  # of a normal distribution's absolute values: 25th percentile, in deviations
_THIRD: Final = np.sqrt(20.0)  # noise of a third difference, in noises of one number
_DIFFERENT: Final = 20  # numbers
_REST: Final = 5  # ticks
_CHANGES: Final = 16  # of sticks, that tell for how long inputs are held
_PLACES: Final = 2  # where a body was before
_FIELD: Final = ((-3500.0, -4500.0, 300.0), (3500.0, 4500.0, 1700.0))  # uu, lowest and highest of these
_BALL_SPIN: Final = 6.0  # rad/s, the most
_STICKS: Final = (0, 1, 2, 3, 4)


@dataclass
class BodyNoise:
    """The exactness with which a recording holds a body."""

    # half of the last digit of position (uu), velocity (uu/s) and spin (rad/s), and of the rotation
    # (rad)
    rounding: dict[str, float] = field(default_factory=dict)
    # standard deviation of noise beyond that, of the same
    deviation: dict[str, float] = field(default_factory=dict)

    def of(self, part: str) -> float:
        """Return the standard deviation of one number of a part, rounding included."""
        return float(np.hypot(self.rounding.get(part, 0.0) / np.sqrt(3), self.deviation.get(part, 0.0)))


@dataclass
class Noise:
    """The digits, noise and inputs that a recording leaves open."""

    bodies: dict[int, BodyNoise]  # by body
    sticks: dict[int, float]  # half of the last digit of each car's sticks
    slack: int  # ticks from most rows to the next of which nothing is known
    held: int = 1  # ticks for which the recorder holds inputs
    known: int = 0  # ticks before each row in which its inputs did not change
    drawn: dict[tuple[int, int, int], Drive] = field(default_factory=dict)  # inputs that were drawn already

    def describe(self) -> str:
        """Return the noise as a sentence."""
        ball = [one for body, one in self.bodies.items() if body == BALL]
        cars = [one for body, one in self.bodies.items() if body != BALL]
        told = []
        for name, some in (("ball", ball), ("cars", cars)):
            if some:
                place, speed = (max(one.of(part) for one in some) for part in ("position", "velocity"))
                told.append(f"{name} {place:.2g} uu, {speed:.2g} uu/s")
        sticks = max(self.sticks.values(), default=0.0)
        more = [f"sticks to {2 * sticks:.2g}"] if sticks else []
        early = max(self.slack, self.held - 1)
        more += [f"inputs up to {count_of(early, 'tick')} earlier than their rows"] if early else []
        return "; ".join([*told, *more])


@cache
def _generator(seed: int, what: int) -> tuple[np.random.Generator, Mapping[str, Any]]:
    """Return a stream of random numbers and its beginning: making one takes longer than going back."""
    random = np.random.default_rng((seed, what))
    return random, random.bit_generator.state


@dataclass(frozen=True)
class Draw:
    """One draw from what a recording leaves open."""

    noise: Noise  # of the recording
    seed: int  # of the draw
    strength: float = 1.0  # multiple of the noise that is drawn
    # whether all other bodies are there too: of even seeds where they were, of odd ones anywhere
    others: bool = False

    def _random(self, what: int) -> np.random.Generator:
        random, begin = _generator(self.seed, what)
        random.bit_generator.state = begin
        return random

    def states(self, values: np.ndarray, bodies: tuple[int, ...]) -> np.ndarray:
        """Return states `(moments, bodies, 18)` with noise."""
        drawn, random = values.copy(), self._random(0)
        for place, body in enumerate(bodies):
            own = self.noise.bodies[body]
            for part, columns in _STATE_PARTS.items():
                half = max(own.rounding.get(part, 0.0), _LEAST[part])
                off = half * random.uniform(-1, 1, (len(values), 3))
                if wide := own.deviation.get(part, 0.0):
                    off += wide * random.standard_normal(off.shape)
                drawn[:, place, columns] += self.strength * off
            if body == BALL and (drawn[:, place, ROTATION] == np.eye(3).ravel()).all():  # it was not recorded
                turn, _ = np.linalg.qr(random.standard_normal((3, 3)))
                drawn[:, place, ROTATION] = (turn * np.linalg.det(turn)).ravel()
                continue
            half = own.rounding.get("rotation", 0.0) + np.sqrt(3) * own.deviation.get("rotation", 0.0)
            if half:
                turns = self.strength * half * random.uniform(-1, 1, (len(values), 3))
                drawn[:, place, ROTATION] = _turned(drawn[:, place, ROTATION], turns)
        return drawn

    def controls(self, rows: np.ndarray, car: int) -> np.ndarray:
        """Return control vectors `(ticks, 8)` with sticks within their rounding; those at an end stay."""
        half = self.noise.sticks.get(car, 0.0)
        if not half:
            return rows
        drawn = rows.copy()
        sticks = drawn[:, _STICKS]
        # Rows that repeat a value were the same number in the game.
        change = np.concatenate([np.zeros((1, 5), int), (np.diff(sticks, axis=0) != 0).cumsum(0)])
        off = self._random(1).uniform(-half, half, (int(change.max()) + 1, 5))
        moved = np.clip(sticks + self.strength * off[change, np.arange(5)], -1, 1)
        drawn[:, _STICKS] = np.where((np.abs(sticks) < 1) & ~_rests(sticks), moved, sticks)
        return drawn

    def handbrake(self, least: float, most: float, car: int) -> float:
        """Return how far a car's handbrake is pulled, between the least and the most that it can be."""
        return float(self._random(80 + car).uniform(least, most))

    def drive(self, drive: Drive, car: int) -> Drive:
        """Return the inputs of a car, each control of which changes at any tick since the row before it."""
        key = (id(drive.rows), self.seed, car)
        if key not in self.noise.drawn:
            late = (self.noise.slack + 1) // 2
            random = self._random(2 + car)
            self.noise.drawn[key] = drive.drawn(random, self.noise.held, late, self.noise.known)
        return self.noise.drawn[key]

    def elsewhere(self, values: np.ndarray) -> np.ndarray:
        """Return states `(2, bodies, 18)` at other places of the field, to begin from.

        The engine handles contacts in an order that comes from where a body was in its whole match, and no
        row holds that.
        """
        places = np.repeat(values[None], _PLACES, axis=0)
        places[..., POSITION] = self._random(60).uniform(*_FIELD, (_PLACES, len(values), 3))
        return places

    def aside(self, body: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return how far other bodies `(n, 18)` move, `(n, 3)` uu, so as not to touch a body `(18,)`."""
        if self.seed % 2 == 0:
            return np.zeros((len(others), 3))
        random = self._random(61)
        places = random.uniform(*_FIELD, (len(others), 3))
        places[:, 2] = random.choice([20.0, 95.0, 300.0, 1000.0], len(others))
        places[:, :2] = -np.sign(body[:2]) * np.abs(places[:, :2])
        return np.asarray(places - others[:, POSITION])

    def lead(self, lead: float, every: float) -> tuple[float, float]:
        """Return another lead, and other ticks from one followed moment to the next."""
        random = self._random(50)
        return lead * float(random.uniform(0.5, 1.0)), every * float(random.uniform(0.5, 1.5))


def _rests(sticks: np.ndarray) -> np.ndarray:
    """Tell where sticks `(ticks, 5)` are let go: 0 for longer than one that passes through it."""
    zero = sticks == 0
    rests = zero.copy()
    for shift in range(1, _REST):
        rests[shift:] &= zero[:-shift]
    for shift in range(1, _REST):  # all of a run that is long enough
        rests[:-shift] |= rests[shift:] & zero[:-shift]
    return np.asarray(rests)


def measure_noise(scene: TimedRecording) -> Noise:
    """Find out how exactly a recording holds states and inputs."""
    recording = scene.recording
    exact = isinstance(recording, MatchRecording)
    bodies = {body: BodyNoise() if exact else _body_noise(scene, body) for body in scene.bodies}
    sticks = {}
    for car in scene.cars:
        rows = recording.state.car_controls[:, car][:, _STICKS]
        sticks[car] = 0.0 if exact or not scene.driven else _stick_rounding(rows)
    slack = 0 if scene.at_rows or recording.inputs is Inputs.NONE else scene.unseen
    held = 1 if exact or scene.at_rows or not scene.driven else _held_ticks(scene)
    return Noise(bodies, sticks, slack, held, scene.unseen if scene.at_rows else 0)


def _held_ticks(scene: TimedRecording) -> int:
    """Return for how many ticks a table holds its inputs, 4 at most; 1 if sticks hardly change."""
    ticks = []
    for segment in scene.recording.segments():
        rows = scene.recording.state.car_controls[segment][:, :, _STICKS]
        changes = (np.diff(rows, axis=0) != 0).any((1, 2))
        ticks.append(scene.recording.tick[segment][1:][changes])
    together = np.concatenate([*ticks, np.zeros(0, np.int64)])
    if len(together) < _CHANGES:
        return 1
    return next((held for held in (4, 3, 2) if np.ptp(together % held) == 0), 1)


def _body_noise(scene: TimedRecording, body: int) -> BodyNoise:
    noise = BodyNoise()
    tracks = [track for track in scene.tracks((body,)) if len(track.times) > 2]
    tracks = tracks or scene.tracks((body,))
    values = np.concatenate([track.values[:, 0] for track in tracks])
    if scene.recording.clock is TimeBase.FRAMES:  # of uneven ticks, and of the game's own numbers
        tracks = []
    for part, columns in (_STATE_PARTS | {"rotation": ROTATION}).items():
        noise.rounding[part] = 1e-6 if part == "rotation" else rounding(values[:, columns])
        noise.deviation[part] = _beyond(noise.rounding[part], _deviation(tracks, columns))
    if body == BALL and scene.spinless:
        noise.rounding["spin"] = _BALL_SPIN  # any: bounces are as open
    return noise


def rounding(values: np.ndarray) -> float:
    """Return half of the last digit of float32 numbers `(n,)`: of their decimals, or significant digits.

    The significant digits are those of the largest number.
    """
    numbers = values[np.isfinite(values) & (values != 0)]
    if not len(numbers):
        return 0.0
    single = numbers.astype(np.float32)
    fixed = significant = np.inf
    for digits in range(7):
        if (np.round(numbers, digits).astype(np.float32) == single).mean() >= _NEARLY_ALL:
            fixed = 0.5 * 10.0**-digits
            break
    size = np.floor(np.log10(np.abs(numbers)))
    for digits in range(4, 8):
        scale = 10.0 ** (digits - 1 - size)
        if ((np.round(numbers * scale) / scale).astype(np.float32) == single).mean() >= _NEARLY_ALL:
            significant = 0.5 * 10.0 ** (float(np.percentile(size, 95)) - digits + 1)
            break
    smallest = 3e-8 * float(np.abs(numbers).max())
    halves = [half for half in (fixed, significant) if np.isfinite(half)]
    if not halves:
        return smallest
    few = len(np.unique(single)) < _DIFFERENT  # a body at rest has few significant digits by chance
    return max(smallest, halves[0] if few else max(halves))


def _deviation(tracks: Sequence[Track], columns: slice) -> float:
    """Return the standard deviation of the noise of numbers, from their third differences row by row."""
    found = []  # of which the lower quartile counts: where a body moves smoothly nothing but noise is left
    for track in tracks:
        steps = np.diff(track.times)
        if len(steps) < 8:
            continue
        usual = np.median(steps)
        third = np.abs(np.diff(track.values[:, 0, columns], n=3, axis=0))
        even = np.abs(steps - usual) < 0.1 * usual + 0.3
        third = third[even[:-2] & even[1:-1] & even[2:]]
        found.append(third[(third > 0).any(1)].ravel())
    together = np.concatenate([*found, np.zeros(0)])
    return float(np.percentile(together, 25) / _QUARTILE / _THIRD) if len(together) > 30 else 0.0


def _beyond(half: float, deviation: float) -> float:
    """Return the part of a deviation that rounding does not explain."""
    own = half / np.sqrt(3)
    return float(np.sqrt(max(deviation**2 - own**2, 0.0))) if deviation > 1.5 * own else 0.0


def _stick_rounding(rows: np.ndarray) -> float:
    """Return half of the step of sticks `(rows, 5)`; 0 where they are exact, or at their ends alone."""
    values = np.unique(np.abs(rows[(rows != 0) & (np.abs(rows) < 1)]).astype(float))
    for steps in (10, 20, 50, 100, 127, 128, 255, 256, 1000) if len(values) >= 5 else ():
        if (np.abs(values * steps - np.round(values * steps)) < 1e-3).mean() >= _NEARLY_ALL:
            return 0.5 / steps
    return 0.0


def _turned(rotation: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Return rotations `(n, 9)` turned by small `(n, 3)` rad about world axes."""
    matrix = rotation.reshape(-1, 3, 3)
    x, y, z = turn.T
    zero = np.zeros_like(x)
    skew = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(-1, 3, 3)
    small = np.eye(3) + skew + skew @ skew / 2
    return np.asarray((small @ matrix).reshape(-1, 9))
