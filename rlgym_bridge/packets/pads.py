"""Boost pads of a live match: found by position, counted down by ticks."""

import logging
from collections.abc import Sequence
from math import hypot
from operator import attrgetter

from rlbot import flat

from rlgym_bridge.game import (
    BIG_PAD_SECONDS,
    BIG_PADS,
    PAD_COUNT,
    PAD_POSITIONS,
    SMALL_PAD_SECONDS,
    TICK_SECONDS,
)
from rlgym_bridge.packets.dialect_detector import Settled

_LOG = logging.getLogger(__name__)
_IS_ACTIVE = attrgetter("is_active")
_NOT_YET = 1e-4  # s; an inactive pad is never 0, however late the server brings it back
_MATCH_DISTANCE = 100.0  # uu; pads lie at least 700 uu apart, maps differ by a few


class PadTimers:
    """Seconds until each of the 34 pads is back, from packets that say only whether it is there.

    The schema says that a pad's timer counts seconds since pickup; some servers send seconds left. Which
    it is shows at the first pickup, or in two packets of a pad that is away; until then the schema's
    reading is taken.

    Args:
        field: The match's field info; its pads may come in any order.
        settled: What is known of the server's dialect; what is heard is added.
    """

    def __init__(self, field: flat.FieldInfo, settled: Settled) -> None:
        self._settled = settled
        self._away: tuple[int, float] | None = None  # a pad away in the last packet, and its timer
        self._order = _match_pads(field)
        self._seconds = [
            BIG_PAD_SECONDS if pad in BIG_PADS else SMALL_PAD_SECONDS for pad in range(PAD_COUNT)
        ]
        self._active = [True] * PAD_COUNT
        self._fresh = True
        self.timers = [0.0] * PAD_COUNT  # s, RLGym's order

    def forget(self) -> None:
        """Take the next packet as the first."""
        self._fresh = True

    def update(self, states: Sequence[flat.BoostPadState], ticks: int) -> list[float]:
        """Take in one packet and return `timers`.

        Args:
            states: The packet's pads, in the order of the field info.
            ticks: Ticks since the last packet; 0 for a repeated frame.
        """
        active = list(map(_IS_ACTIVE, states))
        if self._settled.elapsed is None:
            self._listen(states, active, ticks)
        if active == self._active and not self._fresh:
            if ticks and not all(active):
                step = ticks * TICK_SECONDS
                self.timers = [t and max(t - step, _NOT_YET) for t in self.timers]
                if _NOT_YET in self.timers:
                    self._find_taken_again(states)
            return self.timers
        self._change(states, active, ticks)
        return self.timers

    def _listen(self, states: Sequence[flat.BoostPadState], active: list[bool], ticks: int) -> None:
        """Settle which way the timers run, by a pad that is away in two packets."""
        away, self._away = self._away, None
        if all(active):
            return
        index = active.index(False)
        self._away = index, states[index].timer
        if away is not None and away[0] == index and 0 < ticks <= 12:
            change = states[index].timer - away[1]
            if abs(abs(change) - ticks * TICK_SECONDS) < 0.5 * TICK_SECONDS:
                self._settled.hear("elapsed", change > 0)
                self._fresh = True  # read anew what was there before

    def _left(self, timer: float, full: float) -> float:
        """Return the seconds until a pad is back; all of them where the timer is no number."""
        left = timer if self._settled.elapsed is False else full - timer
        return max(_NOT_YET, min(full, left))

    def _find_taken_again(self, states: Sequence[flat.BoostPadState]) -> None:
        """Restart pads that came back and were taken on one tick: no packet showed them there."""
        for index, state in enumerate(states[: len(self._order)]):
            pad = self._order[index]
            if pad >= 0 and self.timers[pad] == _NOT_YET:
                full = self._seconds[pad]
                left = self._left(state.timer, full)
                if left > 0.5 * full:
                    self.timers[pad] = left

    def _change(self, states: Sequence[flat.BoostPadState], active: list[bool], ticks: int) -> None:
        timers = [0.0] * PAD_COUNT
        fresh = self._fresh or len(active) != len(self._active)  # pads that come or go are not the same
        for index, state in enumerate(states[: len(self._order)]):
            pad = self._order[index]
            if state.is_active or pad < 0:
                continue
            full = self._seconds[pad]
            if fresh:
                timers[pad] = self._left(state.timer, full)
            elif self._active[index]:
                self._settled.hear("elapsed", state.timer < 0.5 * full)
                timers[pad] = self._left(state.timer, full)
            else:
                timers[pad] = max(self.timers[pad] - ticks * TICK_SECONDS, _NOT_YET)
        self.timers, self._active, self._fresh = timers, active, False


def _match_pads(field: flat.FieldInfo) -> list[int]:
    """Return, for each pad of the field, its number in `PAD_POSITIONS`, -1 where there is none."""
    order: list[int] = []
    for index, pad in enumerate(field.boost_pads):
        x, y = pad.location.x, pad.location.y
        distances = [hypot(x - px, y - py) for px, py in PAD_POSITIONS]
        nearest = min(range(PAD_COUNT), key=distances.__getitem__)
        free = nearest not in order and distances[nearest] < _MATCH_DISTANCE
        order.append(nearest if free and pad.is_full_boost == (nearest in BIG_PADS) else -1)
        if order[-1] < 0:
            _LOG.warning(
                "boost pad %d at (%.0f, %.0f), %s, is none of standard soccar's 34: ignored",
                index, x, y, "big" if pad.is_full_boost else "small",
            )  # fmt: skip
    missing = PAD_COUNT - sum(pad >= 0 for pad in order)
    if missing:
        _LOG.warning(
            "%d of standard soccar's 34 boost pads are not on this map: always shown as there", missing
        )
    return order
