"""Exceptions of the match server that a caller may catch."""

from collections.abc import Sequence
from dataclasses import dataclass

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
        log_tail: The last lines of that file.
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
