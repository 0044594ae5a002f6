"""Pace the ticks: by the clock, or as soon as all bots and scripts have answered."""

import ctypes
import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.server.bot_account import ANSWER_SECONDS
from rlgym_bridge.server.net.lobby import Lobby

_LATE_SECONDS: Final = 0.25 * TICK_SECONDS  # a packet sent this much after it was due is late
_GIVE_UP_SECONDS: Final = 0.25  # behind by more, the lost time is not made up for
_UNANSWERED_SECONDS: Final = 0.5 * TICK_SECONDS  # before a tick, from which on nobody waits for answers

_ANSWERS_ALONE_SECONDS: Final = 0.0005
"""Before a tick: other messages wait for the next one, since the longest take about as long to take in."""

AHEAD_SECONDS: Final = 0.0015  # before a tick: a whole prediction of the ball takes 1.1 ms, as measured

# `select` sleeps about 0.1 ms too long on Linux and macOS (measured), and up to the timer's
# period, 1 ms as set by `steady_ticks`, on Windows; the rest is spent looking.
_SPIN_SECONDS: Final = 0.002 if sys.platform == "win32" else 0.0004


@contextmanager
def steady_ticks() -> Iterator[None]:
    """Have Windows sleep in steps of 1 ms instead of 15, and garbage collections look at new objects only.

    A collection of all that numpy has takes two ticks and more.
    """
    timer = getattr(ctypes, "windll").winmm if sys.platform == "win32" else None  # noqa: B009
    if timer is not None:
        timer.timeBeginPeriod(1)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if timer is not None:
            timer.timeEndPeriod(1)


def _serve(lobby: Lobby, left: float) -> None:
    left = min(left, lobby.send_due())
    lobby.clients.pump(left - _SPIN_SECONDS if left > _SPIN_SECONDS else 0.0)


class RealTime:
    """120 ticks a second; every tick is due at a fixed time after the first one.

    Packets that were sent more than a quarter of a tick after they were due are late.
    """

    def __init__(self) -> None:
        self.late = 0
        self._due: float | None = None

    def wait(
        self,
        lobby: Lobby,
        sent_at: float,
        meanwhile: Callable[[], None] | None = None,
        speed: float = 1.0,
        ahead: float = 0.0,
    ) -> None:
        """Take in what comes until the next tick is due.

        `meanwhile` is called once, when all have answered or half of the tick is over. Where all have
        answered, return `ahead` seconds before the tick is due; `hold` then waits for it.
        """
        if self._due is None:
            self._due = sent_at
        behind = sent_at - self._due
        if behind > _LATE_SECONDS:
            self.late += 1
        if behind > _GIVE_UP_SECONDS:
            self._due = sent_at
        self._due += TICK_SECONDS / speed
        lobby.clients.hear_until = self._due - _ANSWERS_ALONE_SECONDS
        if self._due <= time.perf_counter():
            lobby.clients.pump(0.0)  # there is no time to wait, but answers that have come count
        while (left := self._due - time.perf_counter()) > 0.0:
            if meanwhile is not None:
                if lobby.awaited <= 0 or left <= _UNANSWERED_SECONDS:
                    meanwhile()
                    meanwhile = None
                    continue
                left -= _UNANSWERED_SECONDS
            elif ahead and lobby.awaited <= 0:
                left -= ahead
                if left <= 0.0:
                    break
            _serve(lobby, left)
        if meanwhile is not None:
            meanwhile()

    def hold(self, lobby: Lobby) -> None:
        """Take in what comes until the packet is due, where the tick was computed ahead."""
        while self._due is not None and (left := self._due - time.perf_counter()) > 0.0:
            _serve(lobby, left)

    def pause(self) -> None:
        """Forget the schedule; it begins anew with the next packet."""
        self._due = None


class Lockstep:
    """The next tick comes when every bot has answered, or after a second; nothing is late.

    It waits ten seconds for a bot's first answer, which may take long on a busy machine, and without limit
    for an engine: a learner may pause for as long as it likes. A bot that leaves more than one packet in a
    hundred unanswered gets ten times its median reply time, one tick at least. Where there is nobody to wait
    for, time goes on as in real time; where bots only have no packet to answer, at once. An order, such as to
    stop the match, ends the waiting. When the bots have answered, it waits for scripts (`ScriptAccount`).
    """

    def __init__(self) -> None:
        self.late = 0
        self._alone = RealTime()

    def wait(
        self,
        lobby: Lobby,
        sent_at: float,
        meanwhile: Callable[[], None] | None = None,
        speed: float = 1.0,
        ahead: float = 0.0,
    ) -> None:
        """Take in what comes until all have answered; `meanwhile` comes first, `ahead` has no effect."""
        if meanwhile is not None:
            meanwhile()
        if lobby.awaited > 0:
            self._alone.pause()
            self._wait_for_bots(lobby, sent_at)
        elif lobby.nothing_sent:
            lobby.clients.pump(0.0)
        else:
            self._alone.wait(lobby, sent_at, speed=speed)
        while lobby.orders.latest is None and (left := lobby.wait_for_scripts()) > 0.0:
            lobby.clients.pump(left)

    def _wait_for_bots(self, lobby: Lobby, sent_at: float) -> None:
        waited = 0.0
        patience = lobby.patience if lobby.has_skippers else ANSWER_SECONDS
        while lobby.orders.latest is None and waited < patience:
            lobby.clients.pump(min(patience - waited, ANSWER_SECONDS))
            if lobby.awaited <= 0:
                return
            waited = time.perf_counter() - sent_at
            if waited >= patience or lobby.has_skippers:
                patience = lobby.patience

    def pause(self) -> None:
        """Forget the schedule of matches in which nobody is waited for."""
        self._alone.pause()

    def hold(self, lobby: Lobby) -> None:
        """Return at once: a packet is sent as soon as there is one."""
