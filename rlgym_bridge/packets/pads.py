"""Follow the boost pads of a live match: they are matched by position and counted down by ticks."""

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
from rlgym_bridge.packets.dialect_detector import DialectDetector

_LOG = logging.getLogger(__name__)
_IS_ACTIVE = attrgetter("is_active")
_NOT_YET = 1e-4  # s; the timer of an inactive pad never reaches 0, however late it comes back
_MATCH_DISTANCE = 100.0  # uu; pads lie at least 700 uu apart, maps differ by a few


class PadTimers:
    """Seconds until each of the 34 pads is active again, RLGym's order.

    The schema says that a pad's timer counts the seconds since pickup; some servers send the seconds left.
    The first pickup shows which, or two packets of an inactive pad; until then the schema is believed.

    Args:
        field: The match's field info; its pads may come in any order.
        detector: What is known of the server's dialect; what packets show is added.

    Attributes:
        timers: Seconds until each pad is active again, 0 for active pads.
    """

    def __init__(self, field: flat.FieldInfo, detector: DialectDetector) -> None:
        self._detector = detector
        self._away: tuple[int, float] | None = None  # an inactive pad of the last packet, and its timer
        self._order = _match_pads(field)
        self._seconds = [
            BIG_PAD_SECONDS if pad in BIG_PADS else SMALL_PAD_SECONDS for pad in range(PAD_COUNT)
        ]
        self._active = [True] * PAD_COUNT
        self._fresh = True
        self.timers = [0.0] * PAD_COUNT

    def forget(self) -> None:
        """Treat the next packet as the first."""
        self._fresh = True

    def update(self, states: Sequence[flat.BoostPadState], ticks: int) -> list[float]:
        """Update the timers from one packet and return them.

        Args:
            states: The packet's pads, in the order of the field info.
            ticks: Ticks since the last packet; 0 for a repeated frame.
        """
        active = list(map(_IS_ACTIVE, states))
        if self._detector.elapsed is None:
            self._detect(states, active, ticks)
        if active == self._active and not self._fresh:
            if ticks and not all(active):
                step = ticks * TICK_SECONDS
                self.timers = [t and max(t - step, _NOT_YET) for t in self.timers]
                if _NOT_YET in self.timers:
                    self._find_taken_again(states)
            return self.timers
        self._change(states, active, ticks)
        return self.timers

    def _detect(self, states: Sequence[flat.BoostPadState], active: list[bool], ticks: int) -> None:
        """Detect which way the timers run, from a pad that is inactive in two packets."""
        away, self._away = self._away, None
        if all(active):
            return
        index = active.index(False)
        self._away = index, states[index].timer
        if away is not None and away[0] == index and 0 < ticks <= 12:
            change = states[index].timer - away[1]
            if abs(abs(change) - ticks * TICK_SECONDS) < 0.5 * TICK_SECONDS:
                self._detector.observe("elapsed", change > 0)
                self._fresh = True  # read all timers again, now that their meaning is known

    def _left(self, timer: float, full: float) -> float:
        """Return the seconds until a pad is active again; the full time where its timer is NaN."""
        left = timer if self._detector.elapsed is False else full - timer
        return max(_NOT_YET, min(full, left))

    def _find_taken_again(self, states: Sequence[flat.BoostPadState]) -> None:
        """Restart pads that came back and were taken in the same tick, so that no packet showed them."""
        for index, state in enumerate(states[: len(self._order)]):
            pad = self._order[index]
            if pad >= 0 and self.timers[pad] == _NOT_YET:
                full = self._seconds[pad]
                left = self._left(state.timer, full)
                if left > 0.5 * full:
                    self.timers[pad] = left

    def _change(self, states: Sequence[flat.BoostPadState], active: list[bool], ticks: int) -> None:
        timers = [0.0] * PAD_COUNT
        fresh = self._fresh or len(active) != len(self._active)  # pads were added or removed
        for index, state in enumerate(states[: len(self._order)]):
            pad = self._order[index]
            if state.is_active or pad < 0:
                continue
            full = self._seconds[pad]
            if fresh:
                timers[pad] = self._left(state.timer, full)
            elif self._active[index]:
                self._detector.observe("elapsed", state.timer < 0.5 * full)
                timers[pad] = self._left(state.timer, full)
            else:
                timers[pad] = max(self.timers[pad] - ticks * TICK_SECONDS, _NOT_YET)
        self.timers, self._active, self._fresh = timers, active, False


def _match_pads(field: flat.FieldInfo) -> list[int]:
    """Return each pad's index in `game.PAD_POSITIONS`, -1 where it matches none."""
    order: list[int] = []
    for index, pad in enumerate(field.boost_pads):
        x, y = pad.location.x, pad.location.y
        distances = [hypot(x - px, y - py) for px, py in PAD_POSITIONS]
        nearest = min(range(PAD_COUNT), key=distances.__getitem__)
        free = nearest not in order and distances[nearest] < _MATCH_DISTANCE
        order.append(nearest if free and pad.is_full_boost == (nearest in BIG_PADS) else -1)
        if order[-1] < 0:
            _LOG.warning(
                "boost pad %d at (%.0f, %.0f), %s, is not one of standard soccar's 34: ignored",
                index, x, y, "big" if pad.is_full_boost else "small",
            )  # fmt: skip
    missing = PAD_COUNT - sum(pad >= 0 for pad in order)
    if missing:
        _LOG.warning(
            "%d of standard soccar's 34 boost pads are not on this map: always shown as active", missing
        )
    return order
