"""Measure input latency and packet loss with a car whose inputs are numbered.

With latency L the input that answers packet N drives N + L to N + L + 1: packet N + L + 1 shows it first.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from rlbot import flat

from rlgym_bridge.game import TICKS_PER_SECOND

_LEVELS: Final = 64  # of each of two axes; a level is a 32nd, which every float holds
_NEUTRAL: Final = _LEVELS // 2 * (_LEVELS + 1)  # the number of an input that presses nothing: never sent
_NUMBERS: Final = _LEVELS * _LEVELS - 1  # after so many, 34 s, they come again
_MOST_LATENCY: Final = 60  # ticks; what acts later is not told from what never acts
_REGULAR: Final = 1.3  # intervals whose 90th percentile is so many times the 10th come from a frame rate
_MISSED: Final = 0.1  # share of frames without a packet from which on a frame rate is suspected


@dataclass(frozen=True)
class Exchange:
    """A packet of play and what it was answered with.

    Attributes:
        frame: Its number.
        received: When it was taken in, s on any clock.
        shown: Number of the input that it shows as applied; None where that is none of ours.
        sent: Number of the input that answered it; None where a newer packet was there already.
        answered: When, s on the same clock.
    """

    frame: int
    received: float
    shown: int | None
    sent: int | None = None
    answered: float = np.nan


@dataclass(frozen=True)
class TimingReport:
    """The measured timing of a session.

    Attributes:
        packets: Packets in play.
        input_latency: Ticks by which most inputs act late, the least that fits; None where none can be told.
        also_fits: Further ticks that fit as well: packets that leave out ticks do not tell between them.
        latencies: How many inputs acted how many ticks late, of those that can be told to the tick.
        lost_ticks: Frames that no packet showed, beyond those that a frame rate leaves out.
        tick_step: Ticks from most packets to the next.
        reply_ms: From taking a packet in to its answer, p50 and p99.
        interval_ms: From a packet to the next, p10, p50, p90 and p99.
        frame_rate: Frames a second that the game seems to render, where that is not 120 or more.
    """

    packets: int
    input_latency: int | None
    also_fits: tuple[int, ...]
    latencies: dict[int, int]
    lost_ticks: int
    tick_step: int
    reply_ms: tuple[float, float]
    interval_ms: tuple[float, float, float, float]
    frame_rate: float | None

    @property
    def action_delay(self) -> tuple[int, int] | None:
        """Range of action delays to train with: no decision acts sooner than inputs do, or than a tick."""
        if self.input_latency is None:
            return None
        told = sorted(Counter(self.latencies).elements()) or [self.input_latency]
        latest = told[int(0.99 * (len(told) - 1))]
        return max(1, self.input_latency), max(1, self.input_latency, latest)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        delay = self.action_delay
        return {
            "packets": self.packets,
            "input_latency_ticks": self.input_latency,
            "also_fits": list(self.also_fits),
            "latencies": {str(ticks): count for ticks, count in sorted(self.latencies.items())},
            "lost_ticks": self.lost_ticks,
            "tick_step": self.tick_step,
            "reply_ms": dict(zip(("p50", "p99"), self.reply_ms, strict=True)),
            "interval_ms": dict(zip(("p10", "p50", "p90", "p99"), self.interval_ms, strict=True)),
            "frame_rate": self.frame_rate,
            "settings": {
                "input_latency": self.input_latency,
                "action_delay": None if delay is None else list(delay),
            },
        }


def numbered(number: int) -> flat.ControllerState:
    """Return an input that carries a number, 0 or more, in yaw and roll; they come again after 4,095."""
    code = number % _NUMBERS
    code += code >= _NEUTRAL
    yaw, roll = divmod(code, _LEVELS)
    return flat.ControllerState(
        0.0, 0.0, 0.0, yaw / (_LEVELS / 2) - 1, roll / (_LEVELS / 2) - 1, False, False, False, False
    )


def number_of(controls: flat.ControllerState) -> int | None:
    """Return the number, below 4,095, that an input carries; None where it is none of `numbered`'s."""
    levels = [(value + 1) * (_LEVELS / 2) for value in (controls.yaw, controls.roll)]
    whole = [round(level) for level in levels]
    if any(abs(a - b) > 1e-3 for a, b in zip(levels, whole, strict=True)) or not all(
        0 <= one < _LEVELS for one in whole
    ):
        return None
    code = whole[0] * _LEVELS + whole[1]
    return None if code == _NEUTRAL else code - (code > _NEUTRAL)


def judge(session: Sequence[Sequence[Exchange]]) -> TimingReport:
    """Tell what the exchanges of a session show.

    Args:
        session: Stretches of play, each without a break, in order.

    Raises:
        ValueError: There are fewer than two packets.
    """
    packets = sum(map(len, session))
    steps = Counter(b.frame - a.frame for part in session for a, b in pairwise(part))
    if not steps:
        raise ValueError(f"{packets} packets in play, expected two and more in a row")
    tick_step = max(1, steps.most_common(1)[0][0])
    ranges = [one for part in session for one in _ranges(part)]
    exact = Counter(low for low, high in ranges if low == high)
    fits = Counter(ticks for low, high in ranges for ticks in range(low, high + 1))
    likely = sorted(ticks for ticks, count in fits.items() if count == max(fits.values()))
    intervals = [
        1e3 * (b.received - a.received) for part in session for a, b in pairwise(part) if b.frame > a.frame
    ]
    replies = [
        1e3 * (one.answered - one.received) for part in session for one in part if one.sent is not None
    ]
    missed = sum((step - tick_step) * count for step, count in steps.items() if step > tick_step)
    span = sum(step * count for step, count in steps.items() if step > 0)
    low, middle, high, highest = np.percentile(intervals or [np.nan], (10, 50, 90, 99)).tolist()
    rate = None
    if tick_step > 1:
        rate = TICKS_PER_SECOND / tick_step
    elif missed > _MISSED * span and high < _REGULAR * low:
        rate, missed = 1e3 / middle, 0
    return TimingReport(
        packets=packets,
        input_latency=likely[0] if likely else None,
        also_fits=tuple(likely[1:]),
        latencies=dict(exact),
        lost_ticks=missed,
        tick_step=tick_step,
        reply_ms=tuple(np.percentile(replies or [np.nan], (50, 99)).tolist()),
        interval_ms=(low, middle, high, highest),
        frame_rate=rate,
    )


def _ranges(part: Sequence[Exchange]) -> list[tuple[int, int]]:
    """Return the least and the most latency of every input whose first tick lies between two packets."""
    frames: dict[int, int] = {}  # of the packet that an input answered
    found = []
    before: Exchange | None = None
    for one in part:
        if before is not None and one.shown is not None and one.shown != before.shown and one.shown in frames:
            answered = frames[one.shown]
            low, high = max(0, before.frame - answered), one.frame - 1 - answered
            if 0 <= low <= high <= _MOST_LATENCY:
                found.append((low, high))
        if one.sent is not None:
            frames[one.sent % _NUMBERS] = one.frame
        before = one
    return found
