"""Drive cars of a match in the server's own process, and let it wait, as the page in the browser does."""

from collections.abc import Callable
from typing import Protocol

from rlbot import flat

from rlgym_bridge.server.game.roster import Roster
from rlgym_bridge.server.game.simulated_match import Match


class MatchControl(Protocol):
    """Follows a match tick by tick, in the thread that plays it.

    Whatever it takes delays the match. `see` is called after a packet was sent, `act` right before the next
    tick, so that what a human pressed meanwhile acts in it.

    Attributes:
        stays: Whether a match that is over, or that all bots have left, goes on until it is stopped.
    """

    stays: bool

    def begin(self, match: Match, roster: Roster, hold: Callable[[int, flat.ControllerState], bool]) -> None:
        """Take a match before its first packet; `hold` takes the inputs of a car, by its index in packets."""

    def see(self, packet: flat.GamePacket) -> None:
        """Take the packet of a tick."""

    def act(self) -> bool:
        """Give the inputs of the next tick.

        Returns:
            Whether the match goes on. If not, it is asked again a few milliseconds later.
        """
