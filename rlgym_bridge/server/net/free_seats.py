"""Keep the seats of a match that no client has taken."""

from collections.abc import Iterable, Sequence

from rlgym_bridge.server.game.roster import SCRIPT_TEAM, AgentSeat


class FreeSeats:
    """The seats that no client has taken, in the order in which they are given out.

    Args:
        seats: All of them, bots first.
    """

    def __init__(self, seats: Sequence[AgentSeat] = ()) -> None:
        self._seats = list(seats)
        self._given: set[AgentSeat] = set()

    def has_given(self, seat: AgentSeat) -> bool:
        """Tell whether somebody has taken a seat, and may have left it since."""
        return seat in self._given

    def has_one_for(self, agent_id: str | None) -> bool:
        """Tell whether a seat with this agent id is free."""
        return self.first_for(agent_id) is not None

    def first_for(self, agent_id: str | None) -> AgentSeat | None:
        """Return the first free seat with an agent id; None where there is none."""
        return next((seat for seat in self._seats if seat.agent_id == agent_id), None)

    def take(self, agent_id: str) -> list[AgentSeat]:
        """Give out the first seat with an agent id; to a hivemind all of its team.

        Returns:
            The seats; none where no seat with this agent id is free.
        """
        first = self.first_for(agent_id)
        if first is None:
            return []
        taken = [first]
        if first.hivemind:
            taken = [one for one in self._seats if one.agent_id == agent_id and one.team == first.team]
        self._seats = [seat for seat in self._seats if seat not in taken]
        self._given.update(taken)
        return taken

    def give_back(self, seats: Iterable[AgentSeat]) -> None:
        """Take back the seats of a client that has left."""
        self._seats += seats
        self._seats.sort(key=lambda seat: (seat.team == SCRIPT_TEAM, seat.index))
