"""Predict the ball's next six seconds, as RLBot sends them to bots that read a prediction."""

from typing import Final

import numpy as np
from rlbot import flat

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.server.framing import framed
from rlgym_bridge.server.game.simulation import Simulation

SLICES: Final = 720
"""Slices of a prediction, a tick apart, the first one a tick ahead of the packet [RLBot core]."""

_WIDTH: Final = 13  # float32: time, place, rotation, velocity, spin [flatbuffers, `PredictionSlice`]
_BALL: Final = (1, 2, 3, 7, 8, 9, 10, 11, 12)  # columns of what a ball's motion depends on
_ROUNDING: Final = 0.005  # uu, uu/s, rad/s: ten times the last bit of 6,000 in float32
_SPARE: Final = 120  # ticks of a forecast beyond the slices
_TIMES: Final = np.arange(1, SLICES + 1)


class BallPrediction:
    """The prediction of a match's ball, which is forecast anew where it is touched or the forecast ends.

    Slices are ticks of the ball alone, with the mutators and the mode of the match: they equal the ball of
    the match until a car touches it, but for the last bit of states that are read and set again. They go on
    through goals, where a ball bounces in the net, and have rotation 0 [RLBot core, BallPredictor.cs].
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._slices = np.zeros((SLICES + _SPARE, _WIDTH), np.float32)
        self._first = self._frame = 0
        self._head = _find_head()
        self.forget()
        self._compute()  # the first steps of an arena take 30 ms in RocketSim 2.2.1

    def forget(self) -> None:
        """Forecast the ball anew for the next message: call it where gravity was changed."""
        self._shown: tuple[float, ...] = ()

    def message(self, frame: int) -> bytes:
        """Return the framed `flat.BallPrediction` that goes before the packet of a frame.

        The first of its `SLICES` slices is a tick later than the packet.
        """
        ball = self._simulation.ball
        shown = ball[:3] + ball[12:]  # without its rotation
        if shown != self._shown:  # else it stands still, as in a replay
            self._first += frame - self._frame
            if not self._is_foreseen(shown, frame - self._frame):
                self._compute()
        self._shown, self._frame = shown, frame
        window = self._slices[self._first : self._first + SLICES]
        window[:, 0] = (_TIMES + frame) / TICKS_PER_SECOND
        return self._head + window.tobytes()

    def _is_foreseen(self, shown: tuple[float, ...], elapsed: int) -> bool:
        """Tell whether the ball is where the forecast has it, whose first slice shown is now `_first`."""
        if not self._shown or elapsed <= 0 or self._first > _SPARE or self._simulation.events.touches:
            return False
        return bool(np.abs(self._slices[self._first - 1, _BALL] - shown).max() < _ROUNDING)

    def _compute(self) -> None:
        """Forecast the ball of the simulation as it is now."""
        self._first = 0
        self._slices[:, _BALL] = self._simulation.simulator.forecast_ball(0, SLICES + _SPARE)


def _find_head() -> bytes:
    """Return the bytes before the slices of a framed message; the slices lie at its end, 13 numbers each."""
    zero = flat.Vector3(0.0, 0.0, 0.0)
    empty = flat.PredictionSlice(0.0, flat.Physics(zero, flat.Rotator(0.0, 0.0, 0.0), zero, zero))
    return framed(flat.BallPrediction([empty] * SLICES))[: -SLICES * _WIDTH * 4]
