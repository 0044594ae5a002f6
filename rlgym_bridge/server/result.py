"""Define what a match returns: its result, its progress while it is played, and why it is not played."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rlgym_bridge.user_input.arguments import count_of
from rlgym_bridge.user_input.failures import Failure


class ConfigError(ValueError):
    """A match cannot be played as described: unreadable, unknown, inconsistent or unsupported."""


class ServerError(OSError):
    """The server cannot listen on its address and port."""


@dataclass(frozen=True)
class AbsentBot:
    """A bot without which a match could not begin.

    Attributes:
        car: Its place in the match; for a script that among the scripts.
        label: Its name, agent id and team.
        started_with: Its command and folder; None where it is started by hand.
        connected: Whether it connected, and then did not get ready.
        exit_code: Exit code of its process, None while that runs or where this server did not start it.
        log_path: File with its output; None where this server did not start it.
        strangers: Agent ids under which processes of the match connected, and which it does not have.
    """

    car: int
    label: str
    started_with: str | None
    connected: bool
    exit_code: int | None
    log_path: str | None
    log_tail: str
    strangers: tuple[str, ...]


class MatchCalledOff(Failure):
    """A match could not begin because a bot never connected or got ready, or its simulator failed.

    Attributes:
        absent: The bots that were waited for; empty where nothing is known of them.
        cars: Their places in the match.
    """

    def __init__(self, message: str, absent: Sequence[AbsentBot] = ()) -> None:
        super().__init__(message)
        self.absent = tuple(absent)
        self.cars = tuple(bot.car for bot in absent)


_TROUBLE_SHARE: Final = 0.1  # of its packets without an answer: something is wrong with the bot


@dataclass(frozen=True)
class BotResult:
    """The result of one car.

    Attributes:
        team: 0 blue, 1 orange.
        index: Index of the car in packets.
        connected: Whether the bot stayed until the end.
        crashed: Whether it left before the end: its process died or its connection broke.
        exit_code: Exit code of its process, if that ended before the match did.
        log_path: File with its output; None where this server did not start it, or did not keep it.
        log_tail: The last lines of that file, for a bot that has crashed.
        exceptions: Python's tracebacks in that file.
        touches: Contacts with the ball.
        boost_used: Boost used; a full tank is 100.
        replies: Packets answered.
        late: Packets not answered before the next tick, of those that were sent.
        unanswered: Packets in play that were never answered, as far as the number of its inputs tells.
        reply_p50_ms: Median time from sending a packet to reading its answer, NaN without any.
        reply_p99_ms: 99th percentile of that time, NaN without any.
        invalid_inputs: Inputs dropped because a value was not finite.
        dropped_messages: Messages not sent because the bot did not read.
        was_told_to_end: Whether its process did not end by itself after the match.
        foreign_ids: Other agent ids under which its process has connected, as if it were another bot.
    """

    name: str
    team: int
    index: int
    agent_id: str
    connected: bool
    crashed: bool
    exit_code: int | None = None
    log_path: str | None = None
    log_tail: str = ""
    exceptions: int = 0
    touches: int = 0
    goals: int = 0
    demolitions: int = 0
    bumps: int = 0
    boost_used: float = 0.0
    replies: int = 0
    late: int = 0
    unanswered: int = 0
    reply_p50_ms: float = math.nan
    reply_p99_ms: float = math.nan
    invalid_inputs: int = 0
    dropped_messages: int = 0
    was_told_to_end: bool = False
    foreign_ids: tuple[str, ...] = ()

    @property
    def last_code(self) -> str:
        """Return its exit code as a clause that follows a sentence; empty where there is none."""
        return "" if self.exit_code is None else f", exit code {self.exit_code}"

    @property
    def intrusions(self) -> tuple[str, ...]:
        """Return what it did to take another bot's car, in words that follow its name."""
        return tuple(f"connected as {agent_id!r} too" for agent_id in self.foreign_ids)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Return what its author should look at, in words that follow its name."""
        found = list(self.intrusions)
        share = self.unanswered / max(1, self.replies + self.unanswered)
        if share > _TROUBLE_SHARE:
            found.append(f"left {share:.0%} of its packets unanswered")
        if self.exceptions:
            found.append(f"wrote {count_of(self.exceptions, 'traceback')}")
        if self.crashed:
            found.append(f"left before the end{self.last_code}")
        return tuple(found)


@dataclass(frozen=True)
class MatchResult:
    """The result of a match.

    Attributes:
        score: Goals of blue and orange.
        winner: "blue", "orange" or "draw".
        ended_by: "time", "overtime goal", "max score", "max overtime: draw", "kickoff not
            touched", "no bots left" or "stopped".
        ticks: Ticks of the match with that of the first packet; each has a packet, unless `world` loses it.
        playing_ticks: Ticks in play, from GO to a goal or the end.
        seed: Seed of kickoffs and respawns.
        server_late: Packets sent more than a quarter of a tick after they were due; only in
            real time.
        seconds: Wall time of the match, s.
        unrepeatable: Why the match may go otherwise when it is played again, in sentences; empty for a
            match in lockstep that depended on nothing but seed, bots and versions, as far as can be seen.
        bots: In packet order.
    """

    score: tuple[int, int]
    winner: str
    overtime: bool
    ended_by: str
    ticks: int
    playing_ticks: int
    seed: int
    server_late: int
    seconds: float
    unrepeatable: tuple[str, ...]
    bots: tuple[BotResult, ...]


@dataclass(frozen=True)
class MatchStatus:
    """The progress of a match, reported a few times a second.

    Attributes:
        phase: One of `game.Phase`.
        score: Goals of blue and orange.
        clock: Seconds on the in-game clock.
        ticks: Packets sent so far.
        ticks_per_second: Packets sent per second of wall time since the last status.
        teams: Team of each car, 0 blue, 1 orange, in packet order.
        reply_p50_ms: Median of each bot's latest 512 reply times, NaN without any; as `teams`.
    """

    phase: int
    score: tuple[int, int]
    clock: float
    overtime: bool
    ticks: int
    ticks_per_second: float
    teams: tuple[int, ...]
    reply_p50_ms: tuple[float, ...]
