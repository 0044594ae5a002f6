"""Receive the packets of a live match, and answer each with one input a car."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from rlbot import flat

from rlgym_bridge.game import BALL_RADIUS, BLUE, GOAL_THRESHOLD_Y, ORANGE, PLAYING_PHASES, Phase
from rlgym_bridge.live.agent_connections import AgentConnections, agents_of
from rlgym_bridge.packets.decoder import Decoder, player_input
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.failures import Failure

_BEHIND: Final = 8  # packets at once: with more than that the server may hold others back
_QUIET_SECONDS: Final = 0.004  # half a tick without a packet: none is held back
_CATCH_UP_SECONDS: Final = 5.0  # at most, with a server that is faster than we read


class LiveEngineError(Failure):
    """An error for a match that does not go on as it has to; the message says why."""


class MatchStream:
    """The cars of a match, started before, that an engine drives: its bots without a run command.

    `state` is what the newest packet shows, one object that is updated in place, `frame` and `phase` are its
    own. `cars` are the driven ones by their place in the state, in the order of the connections. `answered`
    tells whether `receive` has answered the newest packet. Raises as `AgentConnections` and `receive`.
    """

    def __init__(
        self,
        server: tuple[str, int],
        match: flat.MatchConfiguration,
        patience: float,
        shadow: bool | None = None,
        dialect: ProtocolVariant | None = None,
    ) -> None:
        self._where, self._patience = f"{server[0]}:{server[1]}", patience
        self._connections = AgentConnections(server, agents_of(match), patience)
        self._decoder = Decoder(self._connections.field, self._connections.match, shadow, dialect)
        self._players: list[tuple[int, int]] | None = None
        self._closed = False
        self._score = [0, 0]
        self._inputs: dict[int, tuple[bytes, flat.PlayerInput]] = {}  # by index: row and input sent last
        self.answered = False
        self.cars: list[int] = []
        self.frame, self.phase = 0, int(Phase.INACTIVE)
        try:
            self.state = self.receive()
        except BaseException:
            self._connections.close()
            raise

    @property
    def is_playing(self) -> bool:
        """Tell whether inputs move the cars."""
        return self.phase in PLAYING_PHASES

    @property
    def packet_order(self) -> list[int]:
        """Packet index of each car of the state."""
        return self._decoder.packet_indices

    def begin_episode(self) -> None:
        """Take the present score as that of the episode's beginning."""
        self._score = self.state.score[0].tolist()

    def clear_touches(self) -> None:
        """Count touches of the ball anew, also in the state that is shown."""
        self._decoder.clear_touches()
        self.state.car_ball_touches[:] = 0

    def receive(
        self, to_goal: bool = False, rows: Callable[[int], Sequence[np.ndarray]] | None = None
    ) -> MatchState:
        """Take in all packets that there are, at least one, until none is left; return `state`.

        `to_goal` stops at a goal of this episode, and has the state show it. `rows` is called with the frame
        of a packet that only follows the last one in play. The rows that it returns, `(8,)` each, answer it
        before it is decoded: the server goes on meanwhile. Raises LiveEngineError if no packet came, or a
        driven car has left; EOFError if the match is over or the server gone.
        """
        packets = self._packets(self._patience)
        if not packets:
            raise LiveEngineError(f"no packet from {self._where} for {self._patience:g} s")
        self.answered = rows is not None and len(packets) == 1 and self._follows(packets[0])
        if rows is not None and self.answered:
            self.answer(rows(packets[0].match_info.frame_num))
            self._take(packets[0])
            return self.state
        behind, until = len(packets) > _BEHIND, time.monotonic() + _CATCH_UP_SECONDS
        while packets:
            for packet in packets:
                self._take(packet)
                if to_goal and self._shows_goal():
                    behind = False
                    break
            packets = self._packets(_QUIET_SECONDS) if behind and time.monotonic() < until else []
        if self._decoder.players is not self._players:
            self._find_cars()
        return self.state

    def _take(self, packet: flat.GamePacket) -> None:
        self.state = self._decoder.update(packet)
        self.frame, self.phase = packet.match_info.frame_num, int(packet.match_info.match_phase)

    def _follows(self, packet: flat.GamePacket) -> bool:
        """Tell whether a packet goes on where the last one was: the next tick, in play, and no goal."""
        info, score = packet.match_info, [team.score for team in packet.teams]
        return (
            info.frame_num == self.frame + 1
            and self.is_playing
            and int(info.match_phase) in PLAYING_PHASES
            and score == self._score
            and len(packet.balls) > 0
            and abs(packet.balls[0].physics.location.y) <= GOAL_THRESHOLD_Y
            and self._decoder.has_same_players(packet)
        )

    def answer(self, rows: Sequence[np.ndarray]) -> None:
        """Answer the newest packet with a row `(8,)` of each driven car; raises EOFError, OSError."""
        inputs = []
        for car, row in zip(self.cars, rows, strict=True):
            index, key = self.packet_order[car], row.tobytes()
            sent = self._inputs.get(index)
            if sent is None or sent[0] != key:
                sent = self._inputs[index] = key, player_input(index, row.tolist())
            inputs.append(sent[1])
        self._connections.answer(inputs)

    def send(self, message: object) -> None:
        """Send a message besides; raises OSError where the server is gone."""
        self._connections.send(message)

    def check_goes_on(self) -> None:
        """Raise LiveEngineError where the match has ended."""
        if self.phase != Phase.ENDED:
            return
        mutators = self._connections.match.mutators if self._connections.match is not None else None
        unlimited = mutators is not None and mutators.match_length == flat.MatchLengthMutator.Unlimited
        raise LiveEngineError(
            f"the match on {self._where} has ended "
            + ("though it is unlimited: the server's log says why" if unlimited else
               "with its time: start one without a limit (match_length Unlimited)")
        )  # fmt: skip

    def close(self) -> None:
        """End the match and hang up; again is fine."""
        if not self._closed:
            self._closed = True
            self._connections.stop_match()
            self._connections.close()

    def _packets(self, seconds: float) -> list[flat.GamePacket]:
        if self._closed:
            raise ValueError("the engine is closed, expected a new LiveEngine")
        try:
            return self._connections.packets(seconds)
        except (EOFError, OSError) as error:
            raise EOFError(
                f"the match on {self._where} is over: {error}. Was it stopped, the server ended, or another "
                "match started there?"
            ) from error

    def _shows_goal(self) -> bool:
        """Tell whether a goal has fallen since the episode began, and mark it in the state."""
        state = self.state
        more = [now - before for now, before in zip(state.score[0].tolist(), self._score, strict=True)]
        if self.phase == Phase.GOAL_SCORED:
            state.goal_scored[0] = 1
        elif any(more) and not state.goal_scored[0]:
            state.goal_scored[0] = 1
            beyond = GOAL_THRESHOLD_Y + BALL_RADIUS
            state.ball_position[0, 1] = math.copysign(beyond, more[BLUE] - more[ORANGE])
        return bool(state.goal_scored[0])

    def _find_cars(self) -> None:
        """Find the driven cars among those of the packets."""
        self._players = self._decoder.players
        car_of = {self._players[index][1]: car for car, index in enumerate(self.packet_order)}
        missing = [player_id for player_id in self._connections.ids if player_id not in car_of]
        if missing:
            raise LiveEngineError(f"no car with identifier {missing} in the packet: did it leave?")
        self.cars = [car_of[player_id] for player_id in self._connections.ids]
