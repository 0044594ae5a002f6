"""Predict the ball's next six seconds, as RLBot sends them to bots that read a prediction.

    ball of the match -> an arena without cars, 720 ticks ahead of it -> 720 slices -> bytes of the message

As long as nobody touches the ball, each tick adds one slice at the end. Otherwise all are computed anew.
"""

import math
import struct
from typing import Final

import numpy as np
import RocketSim as rsim
from rlbot import flat

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.server.framing import framed
from rlgym_bridge.server.game.match_physics import Physics
from rlgym_bridge.sim.arena import make_arena, set_mutators

SLICES: Final = 720
"""Slices of a prediction, a tick apart, the first one a tick ahead of the packet [RLBot core]."""

_WIDTH: Final = 13  # float32: time, place, rotation, velocity, spin [flatbuffers, `PredictionSlice`]
_BALL: Final = (1, 2, 3, 7, 8, 9, 10, 11, 12)  # columns of what a ball's motion depends on
_ROUNDING: Final = 0.005  # uu, uu/s, rad/s: ten times the last bit of 6,000 in float32
_KEPT: Final = 4 * SLICES  # slices between two copies
_FIRST_TIMES: Final = np.arange(1, SLICES + 1)


class BallPrediction:
    """The prediction of a match's ball.

    Slices are RocketSim's ticks of the ball alone, with the mutators, the mode and the rules of the match. So
    they equal the ball of the match until a car touches it, but for the rounding of float32: RocketSim keeps
    lengths in 50 uu, and states that are read and set again differ in their last bit. Slices go on through
    goals: RLBot's core steps a ball alone, too, and looks for none [its BallPredictor.cs]. Here a ball that
    is in bounces in the net. Rotations are 0, as there.

    Args:
        physics: Mode and rules of the match.
        arena: The arena of the match, which has the mutators.
    """

    def __init__(self, physics: Physics, arena: rsim.Arena) -> None:
        self._physics = physics
        self._arena, _ = make_arena([], mode=physics.mode.number)
        self.take_mutators(arena)
        self._slices = np.zeros((_KEPT, _WIDTH), np.float32)
        self._first = self._frame = 0
        self._head = _find_head()
        self._compute(self._arena.ball.get_state())  # the first steps of an arena take 30 ms

    def take_mutators(self, arena: rsim.Arena) -> None:
        """Predict with the mutators of an arena from now on: call it where they were changed."""
        set_mutators(self._arena, arena.get_mutator_config())
        self._step = self._physics.stepper(self._arena, [], [])  # it knows gravity
        self._shown: tuple[float, ...] = ()

    def message(self, ball: rsim.BallState, frame: int, touched: bool = False) -> bytes:
        """Return the message that goes before a packet.

        Args:
            ball: The ball that the packet shows.
            frame: Number of the packet's frame.
            touched: Whether a car has touched the ball in the latest tick.

        Returns:
            A framed `flat.BallPrediction` of `SLICES` slices; the first one's `game_seconds` [s] is a tick
            later than the packet's `seconds_elapsed`.
        """
        shown = (*ball.pos.as_tuple(), *ball.vel.as_tuple(), *ball.ang_vel.as_tuple())
        elapsed = frame - self._frame
        foreseen = self._shown and not touched and 0 < elapsed <= SLICES
        if foreseen and math.dist(shown, self._slices[self._first + elapsed - 1, _BALL].tolist()) < _ROUNDING:
            self._go_on(elapsed)
        elif shown != self._shown:  # else it stands still, as in a replay
            self._compute(ball)
        self._shown, self._frame = shown, frame
        window = self._slices[self._first : self._first + SLICES]
        window[:, 0] = (_FIRST_TIMES + frame) / TICKS_PER_SECOND
        return self._head + window.tobytes()

    def _compute(self, ball: rsim.BallState) -> None:
        """Compute all slices from a ball."""
        self._arena.ball.set_state(ball)
        self._first = 0
        self._slices[:SLICES] = self._ticks(SLICES)

    def _go_on(self, ticks: int) -> None:
        """Leave the first slices out, and add as many at the end."""
        end = self._first + SLICES
        if end + ticks > _KEPT:
            self._slices[:SLICES] = self._slices[self._first : end]
            self._first, end = 0, SLICES
        self._first += ticks
        self._slices[end : end + ticks] = self._ticks(ticks)

    def _ticks(self, count: int) -> np.ndarray:
        """Step the ball; return `(count, 13)` float32 without times."""
        numbers: list[float] = []
        step, ball = self._step, self._arena.ball
        for _ in range(count):
            step(1)
            state = ball.get_state()
            numbers += (0.0, *state.pos.as_tuple(), 0.0, 0.0, 0.0)
            numbers += state.vel.as_tuple()
            numbers += state.ang_vel.as_tuple()
        return np.frombuffer(struct.pack(f"{len(numbers)}f", *numbers), np.float32).reshape(count, _WIDTH)


def _find_head() -> bytes:
    """Return what stands before the slices in the framed message.

    Slices lie one after another at its end, 13 numbers each: so flatbuffers writes a vector of structs.
    """
    zero = flat.Vector3(0.0, 0.0, 0.0)
    empty = flat.PredictionSlice(0.0, flat.Physics(zero, flat.Rotator(0.0, 0.0, 0.0), zero, zero))
    return framed(flat.BallPrediction([empty] * SLICES))[: -SLICES * _WIDTH * 4]
