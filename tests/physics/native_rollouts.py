"""Roll windows of recordings in RocketSim 3, where `compare` rolls them in RocketSim 2.2.1."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

import numpy as np

from rlgym_bridge.compare.findings import drift
from rlgym_bridge.compare.fit import input_lag
from rlgym_bridge.compare.simulate.leads import followed_moments
from rlgym_bridge.compare.simulate.rollout import Adjust, Path
from rlgym_bridge.compare.simulate.tracks import (
    BALL,
    BODY_SIZE,
    POSITION,
    ROTATION,
    SPIN,
    VELOCITY,
    Drive,
    Track,
    stands,
)
from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.derived_fields import derive
from rlgym_bridge.game import ORANGE
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.game_rules import ROCKETSIM
from rlgym_bridge.sim.simulator import ROCKETSIM3, make_simulator
from rlgym_bridge.state import MatchState

_FULL_TANK: Final = 100.0
_PARKED: Final = (0.0, 0.0, 5000.0)  # uu: a ball that takes no part
_PARTS: Final = (
    ("position", POSITION), ("linear_velocity", VELOCITY), ("angular_velocity", SPIN), ("rotation", ROTATION),
)  # fmt: skip
_SIDE_SPEED: Final = 15.0  # uu/s along its up axis below which a car on its wheels is settled


class NativeRollout:
    """Some bodies of a recording in RocketSim 3, with the face of `compare`'s `RolloutArena`.

    Args:
        recording: Whose match it is.
        bodies: Rows of the cars, ascending, and `BALL` last where it takes part.
        adjust: Must be None: constants are RocketSim's own.
        rules: Not looked at: RocketSim 3 has the game's.
    """

    def __init__(
        self, recording: Recording, bodies: Sequence[int], adjust: Adjust | None = None,
        rules: frozenset[str] = ROCKETSIM,
    ) -> None:  # fmt: skip
        assert adjust is None
        self.bodies = tuple(bodies)
        self._cars = len([body for body in bodies if body != BALL])
        rows = list(self.bodies[: self._cars])
        self._orange = int((recording.state.car_team[0, rows] == ORANGE).sum())
        self._hitboxes = recording.state.car_hitbox[0, rows]
        self._simulator = make_simulator(ROCKETSIM3, 1, self._cars - self._orange, self._orange)

    def roll(
        self, track: Track, start: int, ticks: int, lead: float, drives: Sequence[Drive | None], skip: int = 0
    ) -> Path:
        """Follow a track up to one of its moments, and go on freely from there; see `RolloutArena.roll`."""
        moments = followed_moments(track, start, lead)
        times = track.times[moments]
        apart = [*np.maximum(np.round(np.diff(times)), 1).astype(int).tolist(), ticks]
        ends = np.concatenate(
            [time + np.arange(1, length + 1) for time, length in zip(times, apart, strict=True)]
        )
        rows = np.zeros((1, self._cars, len(ends), 8), np.float32)
        for car, drive in enumerate(drives[: self._cars]):
            if drive is not None:
                rows[0, car] = drive.during(int(track.rows[start]), ends)
        state, tick = self._simulator.state, 0
        self._simulator.put([0], self._desired(track.values[moments[0]]))
        for moment, length in zip(moments[1:], apart, strict=False):
            self._simulator.step(rows[:, :, tick : tick + length], delay=[0])
            tick += length
            desired = self._desired(track.values[moment], state)
            self._simulator.nudge([0], desired, BALL in self.bodies, np.ones((1, self._cars), bool))
        values = np.empty((ticks + 1, len(self.bodies), BODY_SIZE))
        wheels = np.zeros((ticks + 1, len(self.bodies)), int)
        jumped = np.zeros(len(self.bodies), bool)
        used = (state.car_has_jumped + state.car_has_flipped + state.car_has_double_jumped)[0] > 0
        jumped[: self._cars] = used | (state.car_is_jumping[0] > 0)
        for free in range(ticks + 1):
            if free:
                self._simulator.step(rows[:, :, tick + free - 1 : tick + free], delay=[0])
            values[free] = self._values()
            wheels[free, : self._cars] = state.car_wheels_with_contact[0].sum(1)
        values[0] = track.values[start]
        return Path(values[skip:], wheels[skip:], jumped)

    def _desired(self, bodies: np.ndarray, now: MatchState | None = None) -> MatchState:
        """Return a state with the bodies `(bodies, 18)` at their places.

        Args:
            bodies: See `tracks.BODY_SIZE`.
            now: What the simulator shows; None before it shows any.
        """
        state = blank_state(self._cars - self._orange, self._orange, 1)
        state.car_hitbox[0], state.car_boost_amount[:] = self._hitboxes, _FULL_TANK
        state.boost_consumption[:] = 0
        state.ball_position[:] = _PARKED
        for place, body in enumerate(self.bodies):
            for name, part in _PARTS:
                numbers = bodies[place, part]
                if body != BALL:
                    view = getattr(state, f"car_{name}")[0, place]
                    view[:] = numbers.reshape(view.shape)
                elif name != "rotation":
                    getattr(state, f"ball_{name}")[0] = numbers
            if body != BALL and stands(bodies[place]):
                state.car_wheels_with_contact[0, place] = 1
        if now is not None:
            _keep_settled(state, now)
        derive(state)
        return state

    def _values(self) -> np.ndarray:
        """Return what the simulator shows of the bodies, `(bodies, 18)`."""
        state, values = self._simulator.state, np.empty((len(self.bodies), BODY_SIZE))
        for place, body in enumerate(self.bodies):
            for name, part in _PARTS:
                whole = getattr(state, f"ball_{name}" if body == BALL else f"car_{name}")[0]
                values[place, part] = (whole if body == BALL else whole[place]).ravel()
        return values


def _keep_settled(state: MatchState, now: MatchState) -> None:
    """Keep the upward speed of cars on four wheels: old recordings show 8.3 uu/s that moves them nowhere."""
    up = state.car_rotation[0, :, :, 2]
    theirs = (state.car_linear_velocity[0] * up).sum(1)
    ours = (now.car_linear_velocity[0] * up).sum(1)
    settled = now.car_wheels_with_contact[0].all(1) & (abs(theirs) < _SIDE_SPEED) & (abs(ours) < _SIDE_SPEED)
    state.car_linear_velocity[0] += np.where(settled, ours - theirs, 0.0)[:, None] * up


@contextmanager
def native_windows() -> Iterator[None]:
    """Let `measure` and `fit_lag` simulate with RocketSim 3."""
    with (
        patch.object(drift, "RolloutArena", NativeRollout),
        patch.object(input_lag, "RolloutArena", NativeRollout),
    ):
        yield
