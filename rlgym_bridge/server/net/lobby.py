"""Give a match's seats to clients, and handle their messages: handshake, inputs, pings.

Messages to clients, and the treatment of clients that misbehave, follow RLBot's core.
"""

import math
import socket
import time
from collections.abc import Callable, Sequence

from rlbot import flat

from rlgym_bridge.server.bot_account import BotAccount, ScriptAccount
from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.game.packer import field_info, framed
from rlgym_bridge.server.game.roster import SCRIPT_TEAM, AgentSeat, Roster
from rlgym_bridge.server.net.admission import Admission
from rlgym_bridge.server.net.clients import Clients
from rlgym_bridge.server.net.connected_client import Client, after_settings
from rlgym_bridge.server.net.impairments import Lines
from rlgym_bridge.server.net.orders import Drawings, MatchComms, Orders

_log = client_log(__name__)


class Lobby:
    """The seats of the current match.

    `take_input` is called with a car's index and its input, and returns False for an invalid one; `release`
    with the index of a car that nobody drives any more.
    """

    def __init__(self, listener: socket.socket) -> None:
        self.admission = Admission(lambda connection, heard: self.clients.watch(connection, heard))
        self.orders = Orders(self.admission)
        self.comms = MatchComms(lambda: self.clients.everyone)
        self.drawings = Drawings(lambda: self.clients.everyone)
        self.clients = Clients(
            listener,
            {
                flat.PlayerInput: self._on_input,
                flat.ConnectionSettings: self._on_settings,
                flat.InitComplete: after_settings(self._on_ready),
                flat.DisconnectSignal: lambda client, _: self.clients.dismiss(client, "it said goodbye"),
                flat.PingRequest: lambda client, ping: client.link.send(
                    framed(flat.PingResponse(ping.cookie), named=True)
                ),
                **self.orders.handlers,
                **self.comms.handlers,
                **self.drawings.handlers,
            },
            self._on_gone,
            self.admission,
        )
        self._on_input_for_other = after_settings(self._drive_other)
        self.accounts: list[BotAccount] = []  # one for each car, in packet order
        self.awaited = 0  # cars whose answer to the present packet is still waited for
        self.has_skippers = False  # some car leaves so many unanswered that lockstep hardly waits for it
        self.take_input: Callable[[int, flat.ControllerState], bool] | None = None
        self.release: Callable[[int], None] | None = None
        self._roster: Roster | None = None
        self._free: list[AgentSeat] = []  # in the order in which they are given out: bots first
        self._given: set[AgentSeat] = set()  # those that somebody has taken, and may have left since
        self._scripts: list[ScriptAccount] = []  # of the clients that are scripts
        self._lines: Lines | None = None
        self._missed = False  # a car or script may owe an answer to an earlier packet

    def open_match(self, roster: Roster, lines: Lines | None = None) -> None:
        """Offer the seats of a match to all clients; `lines` are the ways of packets that may be late."""
        self._roster = roster
        self.admission.starts_bots = roster.configuration.auto_start_agents
        self.orders.sets_states = roster.configuration.enable_state_setting
        self._lines = lines
        self._free, self._given = list(roster.agents), set()
        self.accounts, self.has_skippers = [BotAccount(seat) for seat in roster.cars], False
        for client in self.clients.everyone:
            if client.agent_id is not None:
                self._welcome(client)

    def close_match(self) -> None:
        """Take the seats away and send those home who do not stay between matches."""
        self._roster = self._lines = None
        self._free, self._given = [], set()
        self.take_input = self.release = self.orders.take_state = self.orders.take_input = None
        self.comms.close()
        self.drawings.close()
        for client in self.clients.everyone:
            for account in self._driven(client):
                account.dropped += client.link.dropped
            self._seat(client, ())
            if client.agent_id is not None and client.closes_between_matches:
                self.clients.dismiss(client, "the match is over")
        self.clients.see_off()

    def missing(self) -> list[AgentSeat]:
        """List the seats for which no agent is ready."""
        ready = {seat.identifier for client in self.clients.audience for seat in client.seats}
        agents = self._roster.agents if self._roster else []
        return [seat for seat in agents if seat.identifier not in ready]

    def is_taken(self, seat: AgentSeat) -> bool:
        """Tell whether an agent has come for a seat; it may have left since."""
        return seat in self._given

    def send_packet(self, data: bytes, prediction: bytes = b"") -> float:
        """Send a framed packet, empty for a tick without one, after the prediction to those who want it.

        Answers count for it from now on. Return when it had been sent, on `time.perf_counter`'s clock.
        """
        if self._missed:
            everyone = (*self.accounts, *self._scripts)
            self._missed = any(account.misses and account.ready for account in everyone)
            if self._missed:
                self.clients.pump(0.0)  # an answer to an earlier packet does not count for this one
        self.awaited, now = 0, self.clients.begin_tick()
        if self._lines is not None:
            if data:
                self._lines.put(self.clients.audience, data, now, prediction)
            self.send_due()
            return time.perf_counter()
        for account in self.accounts:
            account.sent(now)
            if account.waited_for:
                self.awaited += 1
        for script in self._scripts:
            script.sent(now)
        self.clients.broadcast(data, prediction)
        return time.perf_counter()

    def send_due(self) -> float:
        """Send the packets that leave late and are due; return the seconds until the next one."""
        lines = self._lines
        if lines is None:
            return math.inf
        audience, now, broken = self.clients.audience, time.perf_counter(), False
        for client in audience:
            packets = lines.take(client, now)
            if not packets:
                continue
            for account in self._driven(client):
                self.awaited -= account.waited_for
                account.sent(now)
                self.awaited += account.waited_for
            if client.script is not None:
                client.script.sent(now)
            client.link.send_together(packets)
            broken |= client.link.broken
        left = lines.next_at(audience) - now
        if broken:
            self.clients.lose_broken()
        return left

    @property
    def nothing_sent(self) -> bool:
        """Tell whether nobody is waited for only because this tick had no packet for the bots."""
        return self._lines is not None and any(one.is_awaited for one in self.accounts)

    def wait_for_scripts(self) -> float:
        """Return how long lockstep waits before it asks again, s; 0 where it need not wait for scripts."""
        now = time.perf_counter()
        return max((script.wait(now) for script in self._scripts), default=0.0)

    @property
    def patience(self) -> float:
        """Return how long lockstep waits for the answers that are pending, in seconds."""
        return max((account.patience for account in self.accounts if account.waited_for), default=0.0)

    def book_late(self, in_play: bool = True) -> None:
        """Count the answers that have not come before the tick; none is owed to a match that is stopped."""
        if self.orders.latest is not None:
            return
        for account in self.accounts:
            if account.pending:
                account.missed(in_play)
                self._missed = True
                self.has_skippers |= account.skips
        for script in self._scripts:
            if script.pending:
                script.missed(in_play)
                self._missed = True

    def _on_input(self, client: Client, message: flat.PlayerInput) -> None:
        index = message.player_index
        if index not in client.cars:
            self._on_input_for_other(client, message)
            return
        account = self.accounts[index]
        if account.ready and not account.answered:
            if account.waited_for:
                self.awaited -= 1
            account.reply(time.perf_counter())
        else:
            account.note_extra_input()
        take = self.take_input
        if take is not None and not take(index, message.controller_state):
            account.invalid += 1
            if account.invalid == 1:
                _log.warning("%s sent controls that are not finite: the last ones stay", account.seat.label)

    def _drive_other(self, client: Client, message: flat.PlayerInput) -> None:
        if not self.orders.drive(client, message):
            index = message.player_index
            client.warn_once("%s sent an input for car %d, which is not its own: ignored", index)

    def _on_settings(self, client: Client, message: flat.ConnectionSettings) -> None:
        if client.agent_id is not None:
            return  # only the first one counts
        agent_id = message.agent_id.strip()
        if agent_id and not message.close_between_matches:
            _log.error("agent %r does not close between matches; disconnected", agent_id)
            self.clients.dismiss(client, "agents must close between matches")
            return
        client.introduce(message)
        self._welcome(client)

    def _welcome(self, client: Client) -> None:
        """Tell a client of the match, if there is one, and give it its seats.

        A client that has seen one match is not sent the configuration of the next one.
        """
        roster = self._roster
        if roster is None or client not in self.clients.everyone:
            return
        if client.agent_id and not self.admission.knows(client, lambda: self._welcome(client)):
            return
        if not client.informed:
            client.link.send(framed(roster.configuration, named=True))
        self._reserve(client, roster)
        if not client.informed:
            client.link.send(framed(field_info()))
        client.informed = True
        self._note_ready(client)

    def _reserve(self, client: Client, roster: Roster) -> None:
        """Give a client the first free seat with its agent id; a hivemind all of its team."""
        if not client.agent_id:
            return
        self.admission.note_agent_id(client)
        seats = [seat for seat in self._free if seat.agent_id == client.agent_id]
        if not seats:
            known = sorted({seat.agent_id for seat in roster.agents})
            _log.error("no free seat for agent_id %r; the match has %s", client.agent_id, known)
            return
        first = seats[0]
        if not self.admission.may_drive(client, first):
            return
        seats = [seat for seat in seats if seat.team == first.team] if first.hivemind else [first]
        self._free = [seat for seat in self._free if seat not in seats]
        self._given.update(seats)
        self._seat(client, seats)
        client.link.name = f"agent {seats[0].label}"
        driven = [flat.ControllableInfo(seat.index, seat.identifier) for seat in seats]
        client.link.send(framed(flat.ControllableTeamInfo(seats[0].team, driven)))

    def _on_ready(self, client: Client, _: flat.InitComplete) -> None:
        client.ready = True
        self.clients.refresh()
        self._note_ready(client)

    def _seat(self, client: Client, seats: Sequence[AgentSeat]) -> None:
        client.sit(seats)
        self._scripts = [one.script for one in self.clients.everyone if one.script is not None]

    def _note_ready(self, client: Client) -> None:
        if client.script is not None and client.ready and not client.script.ready:
            client.script.ready = client.script.answered = True
        for account in self._driven(client):
            if client.ready and not account.ready:
                account.ready, account.misses = True, 0
                account.answered = True  # the present packet was not sent to it

    def _on_gone(self, client: Client, reason: str) -> None:
        for account in self._driven(client):
            _log.warning("no client controls %s any more: %s", account.seat.label, reason)
            account.dropped += client.link.dropped
            if account.waited_for:
                self.awaited -= 1
            account.left()
            if self.release is not None:
                self.release(account.seat.index)
        freed = client.seats
        self.drawings.forget(client)
        self._free = sorted((*self._free, *freed), key=lambda seat: (seat.team == SCRIPT_TEAM, seat.index))
        self._seat(client, ())
        if self._lines is not None:
            self._lines.forget(client)
        self._seat_waiting({seat.agent_id for seat in freed})

    def _seat_waiting(self, agent_ids: set[str]) -> None:
        """Give free seats to agents that came while they were taken, such as one that connects again."""
        waiting = [one for one in self.clients.everyone if one.informed and not one.seats]
        for client in waiting:
            is_free = client.agent_id in agent_ids and any(
                seat.agent_id == client.agent_id for seat in self._free
            )
            if self._roster is not None and is_free:
                self._reserve(client, self._roster)
                self._note_ready(client)

    def _driven(self, client: Client) -> list[BotAccount]:
        return [self.accounts[index] for index in sorted(client.cars)]
