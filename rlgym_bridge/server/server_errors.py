"""Exceptions of the match server that a caller may catch."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the roster raises these errors
    from rlgym_bridge.server.game.roster import AgentSeat


class ConfigError(ValueError):
    """A match cannot be played as described: unreadable, unknown, inconsistent or unsupported."""


class ServerError(OSError):
    """The server cannot listen on its address and port."""


class MatchCalledOff(RuntimeError):
    """A match could not begin because a bot never connected or never got ready.

    Attributes:
        cars: Places in the match of the cars whose bots are missing, where that is known.
    """

    def __init__(self, message: str, missing: Iterable["AgentSeat"] = ()) -> None:
        super().__init__(message)
        self.cars = tuple(seat.index for seat in missing)
