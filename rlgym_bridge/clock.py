"""Decide which control vector is sent on which tick. Pure logic: frames and phases in, rows out.

Training with RLGym's `rlbot_delay=True`: an action decided on the state of tick k drives the ticks k+1 -> k+2
... k+T -> k+T+1, and k -> k+1 is still driven by the action before. In a match the input that answers packet
N drives N+L -> N+L+1, L being the input latency. So the row for k+1 -> k+2 answers packet k+1-L:

    packet      k0    k0+1  ...  k0+T   k0+T+1        L = 0, action_delay = 1, T = rows decided
    decision    a0               a1
    sent        neutral a0 ...   a0     a1
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from rlgym_bridge.controls import NEUTRAL
from rlgym_bridge.game import PLAYING_PHASES, Phase
from rlgym_bridge.user_input.arguments import check_whole

GAP_TICKS = 120  # a jump of the frame number beyond this, or backwards, starts anew


class Event(Enum):
    """The next thing to do after a packet."""

    IDLE = "idle"  # not in play, or nothing new: no decision
    PLAY = "play"  # in play, between decisions
    DECIDE = "decide"  # a decision is due on this packet's state
    RESET = "reset"  # as DECIDE, and a new episode begins


@dataclass(frozen=True)
class Timing:
    """The action delay and the input latency of a player, in ticks; raises ValueError for one below 0."""

    # from the state that an action was decided on to the first tick it drives; 1 in RLGym's engine with
    # `rlbot_delay=True`, 0 without
    action_delay: int = 1
    # by which the match applies inputs late (L): 0 where the answer to a packet drives the next tick
    input_latency: int = 0

    def __post_init__(self) -> None:
        check_whole("action_delay", self.action_delay, unit="ticks")
        check_whole("input_latency", self.input_latency, unit="ticks")

    @property
    def unreachable_ticks(self) -> int:
        """Ticks by which every action acts later than in training; 0 where the action delay can be met."""
        return max(0, self.input_latency - self.action_delay)


class Clock:
    """A clock that tells on which packets to decide, and which row answers each packet.

    For every packet: `see` it; if that says DECIDE or RESET, `submit` the rows decided on its state;
    then `row` answers it; `foresee` mostly knows the answer before. A decision falls on the first packet
    at or after its due tick; the due ticks stay on the grid that starts at the first packet of play, and
    rows already past are skipped.

    Args:
        timing: Action delay and input latency.
        cars: Number of cars driven at once.

    Attributes:
        skipped_decisions: Due ticks that passed without a packet of their own.

    Raises:
        ValueError: `cars` is no whole number of 1 or more.
    """

    def __init__(self, timing: Timing | None = None, cars: int = 1) -> None:
        check_whole("cars", cars, 1)
        self.timing = timing if timing is not None else Timing()
        self.skipped_decisions = 0
        self._neutral: Sequence[np.ndarray] = (NEUTRAL,) * cars
        self._frame: int | None = None
        self._phase = -1  # the newest but for pauses
        self._paused = False
        self._since_break = GAP_TICKS  # packets since frame numbers broke off in play
        self._due: int | None = None  # tick of the next decision; None out of play
        self._grid = 0  # tick on the grid that the newest decision stands for
        self._length = 1  # ticks that the newest rows last
        self._plans: list[tuple[int, Sequence[np.ndarray]]] = []  # (first tick driven, rows a car)

    def see(self, frame: int, phase: int) -> Event:
        """Take in a packet, its frame and `game.Phase`, and return the next thing to do.

        A repeated frame needs nothing, unless its phase begins play. Where frame numbers break off again
        within `GAP_TICKS` packets, the packet counts as the next tick: else the car would stay without
        control.
        """
        last_frame, last_phase = self._frame, self._phase
        self._frame = frame
        self._since_break += 1
        self._paused = phase == Phase.PAUSED
        if self._paused:  # what comes after goes on from what was before
            return Event.IDLE
        self._phase = phase
        if phase not in PLAYING_PHASES:
            self._due = None
            self._plans.clear()
            return Event.IDLE
        broken = last_frame is None or not 0 <= frame - last_frame <= GAP_TICKS
        kickoff = phase == Phase.KICKOFF and last_phase != Phase.KICKOFF
        if broken and last_frame is not None and self._due is not None and not kickoff:
            broken = self._since_break >= GAP_TICKS
            if broken:
                self._since_break = 0
            else:
                ticks, last_frame = frame - last_frame - 1, frame - 1
                self._due, self._grid = self._due + ticks, self._grid + ticks
                self._plans = [(first + ticks, rows) for first, rows in self._plans]
        if self._due is None or broken or kickoff:
            return self.restart()
        if frame == last_frame or frame < self._due:
            return Event.PLAY
        behind = (frame - self._due) // self._length
        self.skipped_decisions += behind
        self._grid = self._due + behind * self._length
        return Event.DECIDE

    def restart(self) -> Event:
        """Begin a new episode on the packet just seen; raises RuntimeError before the first."""
        if self._frame is None:
            raise RuntimeError("restart came before the first packet; call see first")
        self._plans.clear()
        self._grid = self._due = self._frame
        return Event.RESET

    def submit(self, rows: Sequence[np.ndarray]) -> None:
        """Take the rows decided on the packet just seen: for each car `(ticks, 8)` float32."""
        self._length = len(rows[0])
        self._due = self._grid + self._length
        self._plans.append((self._grid + self.timing.action_delay, rows))

    def row(self) -> Sequence[np.ndarray]:
        """Return the row that answers the packet just seen, for each car (8,) float32."""
        if self._due is None or self._frame is None or self._paused:
            return self._neutral
        return self._row_of(self._frame)

    def foresee(self, frame: int, phase: int) -> Sequence[np.ndarray] | None:
        """Return the row that will answer a packet before it is seen, where its state does not matter.

        It is what `row` gives later, `(8,)` float32 for each car; None where only the decision can tell. With
        an action delay above the input latency that is so for the first packet of an episode alone.
        """
        if self._due is None or self._frame is None or self._paused or phase not in PLAYING_PHASES:
            return None
        if not 0 < frame - self._frame <= GAP_TICKS:
            return None
        if phase == Phase.KICKOFF != self._phase:  # a new episode
            return None
        late = (frame - self._due) % self._length  # ticks from the decision's place on the grid to here
        if frame >= self._due and self.timing.action_delay <= self.timing.input_latency + late:
            return None
        return self._row_of(frame)

    def _row_of(self, frame: int) -> Sequence[np.ndarray]:
        tick = frame + self.timing.input_latency
        for newest in range(len(self._plans) - 1, -1, -1):
            first, rows = self._plans[newest]
            if first <= tick:
                del self._plans[:newest]
                # A decision that comes late finds the game holding the last row: so does the plan.
                index = min(tick - first, len(rows[0]) - 1)
                return [plan[index] for plan in rows]
        return self._neutral
