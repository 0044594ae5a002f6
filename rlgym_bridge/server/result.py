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
    """A bot without which a match could not begin."""

    car: int  # its place in the match; for a script that among the scripts
    label: str  # its name, agent id and team
    started_with: str | None  # its command and folder; None where it is started by hand
    connected: bool  # whether it connected, and then did not get ready
    # exit code of its process, None while that runs or where this server did not start it
    exit_code: int | None
    log_path: str | None  # file with its output; None where this server did not start it
    log_tail: str
    # agent ids under which processes of the match connected, and which it does not have
    strangers: tuple[str, ...]


class MatchCalledOff(Failure):
    """A match could not begin because a bot never connected or got ready, or its simulator failed."""

    def __init__(self, message: str, absent: Sequence[AbsentBot] = ()) -> None:
        super().__init__(message)
        self.absent = tuple(absent)  # the bots that were waited for, as far as known
        self.cars = tuple(bot.car for bot in absent)  # their places in the match


_TROUBLE_SHARE: Final = 0.1  # of its packets without an answer: something is wrong with the bot


@dataclass(frozen=True)
class BotResult:
    """The result of one car."""

    name: str
    team: int  # 0 blue, 1 orange
    index: int  # index of the car in packets
    agent_id: str
    connected: bool  # whether the bot stayed until the end
    crashed: bool  # whether it left before the end: its process died or its connection broke
    exit_code: int | None = None  # exit code of its process, if that ended before the match did
    log_path: str | None = None  # its output; None without, or where it is not kept
    log_tail: str = ""  # the last lines of that file, for a bot that has crashed
    exceptions: int = 0  # Python's tracebacks in that file
    touches: int = 0  # contacts with the ball
    goals: int = 0
    demolitions: int = 0
    bumps: int = 0
    boost_used: float = 0.0  # boost used; a full tank is 100
    replies: int = 0  # packets answered
    late: int = 0  # packets not answered before the next tick, of those that were sent
    unanswered: int = 0  # packets in play that were never answered, as far as the number of its inputs tells
    reply_p50_ms: float = math.nan  # median time from sending a packet to reading its answer, NaN without any
    reply_p99_ms: float = math.nan  # 99th percentile of that time, NaN without any
    invalid_inputs: int = 0  # inputs dropped because a value was not finite
    dropped_messages: int = 0  # messages not sent because the bot did not read
    was_told_to_end: bool = False  # whether its process did not end by itself after the match
    foreign_ids: tuple[str, ...] = ()  # other agent ids under which its process connected

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
    """The result of a match."""

    score: tuple[int, int]  # goals of blue and orange
    winner: str  # "blue", "orange" or "draw"
    overtime: bool
    # "time", "overtime goal", "max score", "max overtime: draw", "kickoff not touched", "no bots left" or
    # "stopped"
    ended_by: str
    ticks: int  # ticks of the match with that of the first packet; each has a packet, unless `world` loses it
    playing_ticks: int  # ticks in play, from GO to a goal or the end
    seed: int  # seed of kickoffs and respawns
    server_late: int  # packets sent more than a quarter of a tick after they were due; only in real time
    seconds: float  # wall time of the match, s
    # why the match may go otherwise when it is played again, in sentences; empty for a match in lockstep
    # that depended on nothing but seed, bots and versions, as far as can be seen
    unrepeatable: tuple[str, ...]
    bots: tuple[BotResult, ...]  # in packet order


@dataclass(frozen=True)
class MatchStatus:
    """The progress of a match, reported a few times a second."""

    phase: int  # one of `game.Phase`
    score: tuple[int, int]  # goals of blue and orange
    clock: float  # seconds on the in-game clock
    overtime: bool
    ticks: int  # packets sent so far
    ticks_per_second: float  # packets sent per second of wall time since the last status
    teams: tuple[int, ...]  # team of each car, 0 blue, 1 orange, in packet order
    reply_p50_ms: tuple[float, ...]  # median of each bot's latest 512 times, NaN without any
