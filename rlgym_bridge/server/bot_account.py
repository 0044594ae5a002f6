"""Count what a bot or a script answers in a match, how quickly, and why the match cannot be repeated."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import numpy as np

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.server.game.roster import AgentSeat
from rlgym_bridge.user_input.arguments import count_of

REAL_TIME: Final = ("ticks came by the clock, not when all had answered",)
"""The reason that no match in real time can be repeated."""


class Deviation(Enum):
    """Kinds of events that a repetition may not have: a noun to count them by, and a sentence."""

    ABSENT = ("connection", "the match began without {count} of {who}")
    LATE = ("answer", "lockstep went on without {count} of {who}")
    LEFT = ("connection", "{count} of {who} ended")
    EXTRA = ("input", "{count} of {who} came when no answer was awaited")
    STATE = ("state", "{count} of {who} came when no answer of its cars was awaited")
    STATES = ("state", "{count} of {who} came in the same tick as another client's")


class Repeatability:
    """Events of a lockstep match that depended on the machine's timing."""

    def __init__(self, tick: Callable[[], int]) -> None:
        self._tick = tick
        self._last_state = (-1, "")  # its tick, and whose it was
        self._noted: dict[tuple[Deviation, str], list[int]] = {}  # number, and the tick of the first

    def note(self, who: str, deviation: Deviation) -> None:
        """Count an event of a bot or client that a repetition may not have."""
        noted = self._noted.setdefault((deviation, who), [0, self._tick()])
        noted[0] += 1

    def note_state(self, who: str, awaited: bool) -> None:
        """Count a state that a client sets, where a repetition may take it in another tick or order.

        Where an answer of its cars is awaited, the state always comes before that answer.
        """
        last_tick, last_who = self._last_state
        self._last_state = (self._tick(), who)
        if not awaited:
            self.note(who, Deviation.STATE)
        elif last_tick == self._tick() and last_who != who:
            self.note(who, Deviation.STATES)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return a sentence for each kind of event and each bot, in the order of their first ticks."""
        made = []
        for (deviation, who), (times, first) in sorted(self._noted.items(), key=lambda item: item[1][1]):
            noun, sentence = deviation.value
            when = f"at tick {first:,}" if times == 1 else f"the first at tick {first:,}"
            made.append(f"{sentence.format(count=count_of(times, noun), who=who)}, {when}")
        return tuple(made)


_log = logging.getLogger(__name__)

_KEPT_TIMES: Final = 1 << 16  # latest reply times, those of nine minutes
_USUAL_TIMES: Final = 1024  # of these, by which lockstep is patient
FIRST_ANSWER_SECONDS: Final = 10.0  # lockstep waits this long for a bot's first answer
ANSWER_SECONDS: Final = 1.0  # and for every other
_MISSES_FORGIVEN: Final = 3  # packets in a row without an answer until nobody waits for a bot
_SKIPS_FORGIVEN: Final = 10  # packets without an answer, and
_SHARE_FORGIVEN: Final = 0.01  # of all packets, above both of which lockstep hardly waits for a bot
_SKIPPER_REPLIES: Final = 10.0  # of its median reply times: what it is waited for then, but a tick at least
_FIRST_WORD_SECONDS: Final = 0.1  # for a script that has sent nothing yet: most never do
_LOOK_SECONDS: Final = 0.0001  # between two looks whether a script has read its packet
_DECODE_SECONDS: Final = 0.001
"""From reading to working: rlbot's `Script` drops a packet if a newer one has come meanwhile."""


@dataclass(eq=False)
class BotAccount:
    """Counts for one car during a match."""

    seat: AgentSeat
    note: Callable[[Deviation], None] | None = None  # called with what may differ in a repetition
    ready: bool = False  # an agent is connected for it and has said that it is ready
    answered: bool = False  # an input has come since the latest packet was sent to it
    pending: bool = False  # it was sent a packet in this tick and has not answered yet
    waited_for: bool = False  # it is pending, and a tick in lockstep waits for it
    sent_at: float = 0.0  # when it was sent the latest packet, on `time.perf_counter`'s clock
    misses: int = 0  # packets in a row without an answer
    skips: bool = False  # it leaves so many packets unanswered that lockstep hardly waits for it
    replies: int = 0  # packets answered
    extra: int = 0  # other inputs; some of them are late answers
    late: int = 0  # packets not answered before the next tick, counted once a tick while `ready`
    late_in_play: int = 0  # those of them in which inputs move cars
    invalid: int = 0  # inputs with values that are not finite
    dropped: int = 0  # messages that could not be sent to agents that have left
    _times: np.ndarray = field(default_factory=lambda: np.empty(_KEPT_TIMES, np.float32))  # s, a ring

    @property
    def is_awaited(self) -> bool:
        """Tell whether a tick in lockstep waits for its answer: it is ready, and did not miss too many."""
        return self.ready and (self.misses < _MISSES_FORGIVEN or self.seat.is_engine)

    @property
    def patience(self) -> float:
        """Return how long lockstep waits for its answer, s; without limit for an engine's."""
        if self.seat.is_engine:
            return math.inf
        if self.skips:
            return self._usual_patience()
        return ANSWER_SECONDS if self.replies or self.misses else FIRST_ANSWER_SECONDS

    def _usual_patience(self) -> float:
        """Return ten times the median reply time, a tick at least and a second at most [s]."""
        usual = self.reply_ms(50.0, latest=_USUAL_TIMES)[0] / 1000.0
        return min(max(TICK_SECONDS, _SKIPPER_REPLIES * usual), ANSWER_SECONDS)

    def sent(self, now: float) -> None:
        """Note that a packet goes out to it, if it is ready."""
        self.answered = False
        self.pending = self.ready
        self.waited_for = self.ready and (self.misses == 0 or self.is_awaited)
        self.sent_at = now

    def missed(self, in_play: bool = True) -> None:
        """Note that its answer did not come in time; `in_play` tells whether it could have mattered."""
        self.pending = self.waited_for = False
        self.late += 1
        self.late_in_play += in_play
        self.misses += 1
        counted = self.late_in_play if in_play else self.late  # some bots rest in countdowns alone
        self.skips = self.replies > 0 and counted > _SKIPS_FORGIVEN + _SHARE_FORGIVEN * self.replies
        self._note(Deviation.LATE)

    def left(self) -> None:
        """Note that its agent has left."""
        self.ready = self.pending = self.waited_for = False
        self._note(Deviation.LEFT)

    def note_extra_input(self) -> None:
        """Note an input that answers no packet; behind a late answer it may be an answer after all."""
        self.extra += 1
        if not self.late:
            self._note(Deviation.EXTRA)

    def _note(self, deviation: Deviation) -> None:
        if self.note is not None:
            self.note(deviation)

    def reply(self, now: float) -> None:
        """Count the first input after a packet."""
        self.answered = True
        self.pending = self.waited_for = False
        self.misses = 0
        self._times[self.replies % _KEPT_TIMES] = now - self.sent_at
        self.replies += 1

    def reply_ms(self, *percentiles: float, latest: int = _KEPT_TIMES) -> tuple[float, ...]:
        """Return percentiles (0..100) of the latest 65,536 reply times at most [ms]; NaN without any."""
        if self.replies == 0:
            return (float("nan"),) * len(percentiles)
        places = np.arange(max(0, self.replies - min(latest, _KEPT_TIMES)), self.replies) % _KEPT_TIMES
        return tuple(_percentiles_ms(self._times[places], percentiles))


class ScriptAccount(BotAccount):
    """Counts for a script, which may answer a packet with any message, with several, or with none.

    Lockstep waits until the script has read the packet, if the system tells, for a second at most. A script's
    loop takes in the next packet when it is done with the last one, so it then sees every packet.

    Lockstep also waits for the first message after a packet: for a second at most. For a script that leaves
    more than one packet in a hundred unanswered it is ten times the median reply time, and 0.1 s for one that
    has sent nothing yet. Three packets in a row that it misses end either wait, until the script reads or
    speaks again. `is_read` returns None where the system does not tell.
    """

    def __init__(self, seat: AgentSeat, is_read: Callable[[], bool | None]) -> None:
        super().__init__(seat)
        self._is_read = is_read
        self._unread = 0  # packets in a row that lockstep went on without, since they were not read
        self._gave_up = False  # on the present packet
        self._reads_late = False  # the present packet was unread at the last look
        self._is_told = False  # the log says that nobody waits for it

    @property
    def patience(self) -> float:
        """Return how long lockstep waits for its message, s."""
        if not self.replies:
            return _FIRST_WORD_SECONDS
        return ANSWER_SECONDS if self.late <= _SHARE_FORGIVEN * self.replies else self._usual_patience()

    def sent(self, now: float) -> None:
        """Note that a packet goes out to it now, if it is ready."""
        super().sent(now)
        self._gave_up = self._reads_late = False
        if self._unread >= _MISSES_FORGIVEN and self._is_read():
            self._unread = 0

    def wait(self, now: float) -> float:
        """Return how long to wait for its message, or until to look whether it has read, s; 0: go on."""
        if not self.ready or self._gave_up:
            return 0.0
        waited = now - self.sent_at
        if self.waited_for:
            shortest = TICK_SECONDS if waited < TICK_SECONDS else self.patience
            if waited < shortest:
                return shortest - waited
        read = self._is_read()
        if read is None and self.misses >= _MISSES_FORGIVEN:
            self._tell_once(
                "lockstep does not wait for script %r: it sends nothing after packets, and this system does "
                "not tell whether it has read them. It may miss packets; --pace realtime gives it its time"
            )
        if read is not False:
            self._unread = 0
            reads_late, self._reads_late = self._reads_late, False
            return _DECODE_SECONDS if reads_late else 0.0
        if self._unread < _MISSES_FORGIVEN:
            if waited < ANSWER_SECONDS:
                self._reads_late = True
                return _LOOK_SECONDS
            self._unread += 1
        if self._unread == _MISSES_FORGIVEN:
            self._tell_once(
                "lockstep goes on without script %r until it reads: three packets took it too long"
            )
        self._gave_up = True
        return 0.0

    def _tell_once(self, warning: str) -> None:
        if not self._is_told:
            self._is_told = True
            _log.warning(warning, self.seat.name)


def _percentiles_ms(times: np.ndarray, percentiles: tuple[float, ...]) -> list[float]:
    """Compute percentiles of reply times `(N,)` [s] in ms as `np.percentile` does, in a tenth of its time."""
    ordered = np.sort(times)
    values = []
    for percentile in percentiles:
        whole, part = divmod(percentile / 100.0 * (len(ordered) - 1), 1.0)
        low, high = float(ordered[int(whole)]), float(ordered[min(int(whole) + 1, len(ordered) - 1)])
        values.append((low + (high - low) * part) * 1000.0)
    return values
