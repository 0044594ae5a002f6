"""Describe one connected client, and limit what clients may take of the server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rlbot import flat

from rlgym_bridge.server.bot_account import ScriptAccount
from rlgym_bridge.server.client_log import Allowance, client_log
from rlgym_bridge.server.game.roster import SCRIPT_TEAM, AgentSeat
from rlgym_bridge.server.net.wire import ClientLink, SocketEvents
from rlgym_bridge.user_input.arguments import show_value

_MOST_DEBT: Final = 3.0  # ticks: longer nobody is left unheard for one message that took long
_TICKS_TOGETHER: Final = 64  # who has sent nothing for so long may send as much at once

CLIENTS_TOGETHER: Final = 8  # all clients may send as much as so many


def time_budget(seconds: float) -> Allowance:
    """Return the time [s] that some clients may take of each tick; what one message takes more is owed."""
    return Allowance(seconds, seconds, most_debt=_MOST_DEBT * seconds)


def per_tick(size: float, tick: int) -> Allowance:
    """Return how much may come from a tick on: some more with every tick, 64 times as much at once."""
    return Allowance(size, size * _TICKS_TOGETHER, tick)


_log = client_log(__name__)

NO_TEAM: Final = 3  # team number of clients that have no seat [RLBot core, `Team.cs`]
_SEATED_SECONDS: Final = 0.001  # of a tick's 8.3 ms, for the messages of a client that drives cars


@dataclass(eq=False)
class Client:
    """A connected client."""

    link: ClientLink
    agent_id: str | None = None  # what it announced; "" for match managers and observers, None before that
    closes_between_matches: bool = True  # whether it is disconnected when a match starts or is stopped
    wants_prediction: bool = False
    wants_comms: bool = False
    seats: tuple[AgentSeat, ...] = ()  # what it drives; `cars` are the indices of its cars
    cars: frozenset[int] = frozenset()
    script: ScriptAccount | None = None  # what it answers, where it is a script of the match
    ready: bool = False  # it has sent InitComplete after its settings, so it gets packets
    informed: bool = False  # it has been sent the match configuration
    has_spoken: bool = False
    warned_of: set[str] = field(default_factory=set)  # said of it in the log
    heard_tick: int = -1  # number of the tick in which it was heard last, while it drives cars
    # of the server's time, while it drives cars: for all but its first message in a tick
    budget: Allowance = field(default_factory=lambda: time_budget(_SEATED_SECONDS))

    def introduce(self, settings: flat.ConnectionSettings) -> None:
        """Take in what the client says of itself, and what it wants."""
        self.agent_id = settings.agent_id.strip()
        if self.agent_id:
            self.link.name = f"agent {show_value(self.agent_id)}"
        self.closes_between_matches = settings.close_between_matches
        self.wants_prediction = settings.wants_ball_predictions
        self.wants_comms = settings.wants_comms

    @property
    def team(self) -> int:
        """Return the team of its seats, 2 for scripts; 3 without a seat [RLBot core]."""
        return self.seats[0].team if self.seats else NO_TEAM

    def sit(self, seats: Sequence[AgentSeat]) -> None:
        """Give the client these seats and no others."""
        self.seats = tuple(seats)
        self.cars = frozenset(seat.index for seat in seats if seat.team != SCRIPT_TEAM)
        scripts = [seat for seat in seats if seat.team == SCRIPT_TEAM]
        self.script = ScriptAccount(scripts[0], self.link.is_read) if scripts else None

    def warn_once(self, warning: str, *values: object) -> None:
        """Write a warning, with `%s` for the client's name, then for `values`, to the log, the first time."""
        if warning not in self.warned_of:
            self.warned_of.add(warning)
            _log.warning(warning, self.link.name, *values)

    def watch(self, sockets: SocketEvents, events: int) -> None:
        """Have the connection watched for some events and no others; 0 for none."""
        sockets.watch(self.link.socket, events, self)


Handler = Callable[[Client, Any], None]  # a function that acts on a message of a client


def after_settings(handler: Handler) -> Handler:
    """Return a handler that ignores clients before their `ConnectionSettings`, as RLBot's core does."""

    def act(client: Client, message: Any) -> None:
        if client.agent_id is None:
            client.warn_once(f"%s sent {type(message).__name__} before ConnectionSettings: ignored")
        else:
            handler(client, message)

    return act
