"""A recording with its times, ready to be simulated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rlgym_bridge.compare.fit.clock_fit import Timeline
from rlgym_bridge.compare.simulate.tracks import BALL, Drive, Track, make_tracks, shown
from rlgym_bridge.compare.simulate.windows import near_others
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.sim.game_rules import ROCKETSIM

_JUMP: Final = CONTROL_NAMES.index("jump")


@dataclass
class TimedRecording:
    """A recording with its times, ready to be simulated.

    Attributes:
        recording: The recording.
        timeline: When its rows were.
        lag: Ticks by which its inputs act late, for all rows or `(rows,)`.
        number: Which recording of those compared.
        rules: Names of the game's rules that it is simulated with.
    """

    recording: Recording
    timeline: Timeline
    lag: float | np.ndarray = 0.0
    number: int = 0
    rules: frozenset[str] = ROCKETSIM

    def __post_init__(self) -> None:
        """Work out what every measurement needs."""
        self.near = near_others(self.recording)
        self.bodies = [
            body
            for body in (*range(self.recording.state.layout.cars), BALL)
            if shown(self.recording, body).any()
        ]
        self._tracks: dict[tuple[int, ...], list[Track]] = {}
        self._drives: dict[int, Drive] = {}  # a table of many rows has large ones: the rows are shared

    @property
    def driven(self) -> bool:
        """True if there are inputs, so that cars can be simulated."""
        return self.recording.inputs is not Inputs.NONE and bool(self.recording.inputs_recorded.any())

    @property
    def unseen(self) -> int:
        """Ticks from most rows to the next of which nothing is known."""
        steps = np.diff(self.timeline.inputs)[np.diff(self.recording.segment) == 0]
        return max(round(float(np.median(steps))) - 1, 0) if len(steps) else 0

    def tracks(self, bodies: Sequence[int]) -> list[Track]:
        """Return the tracks of bodies together."""
        key = tuple(bodies)
        if key not in self._tracks:
            self._tracks[key] = make_tracks(self.recording, self.timeline.times, key)
        return self._tracks[key]

    def drive(
        self, body: int, lag: float | np.ndarray | None = None, times: np.ndarray | None = None
    ) -> Drive | None:
        """Return the inputs of a body.

        Args:
            body: A car, or `BALL`, which has none.
            lag: Ticks by which they act late; the scene's own where it is None.
            times: `(rows,)` when they were there; the timeline's own where it is None.
        """
        if body == BALL or not self.driven:
            return None
        times = self.timeline.inputs if times is None else times
        lag = self.lag if lag is None else lag
        if body not in self._drives:
            self._drives[body] = Drive(self.recording, body, times, lag)
        return self._drives[body].delayed(times, lag)

    def since_jump(self, car: int) -> np.ndarray:
        """Return `(rows,)` ticks since a car last pressed or let go of jump, as far as is known."""
        pressed = self.recording.state.car_controls[:, car, _JUMP] > 0
        times = self.timeline.inputs
        latest = np.maximum.accumulate(np.where(pressed, np.arange(len(times)), -1))
        ago = np.where(latest >= 0, times - times[latest], np.inf)
        return np.asarray(np.maximum(ago - self.lag, 0.0))
