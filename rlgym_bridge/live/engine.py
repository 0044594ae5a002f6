"""RLGym's `TransitionEngine` over a live match: the real game's, or the match server's.

    RLGym(..., transition_engine=SimEngine())     # RocketSim
    RLGym(..., transition_engine=LiveEngine())    # a match

Every agent has a connection of its own, as RLBot has it for bots, and answers every packet. A step's rows
are sent one a tick: on the state of frame k was decided, row 0 answers packet k + 1, and the step ends
with the packet that the last row answers. So actions act one tick after their state, as with RLGym's
`rlbot_delay`, and the next ones may take a tick to be thought of.
"""

import logging
from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np
from rlbot import flat
from rlgym.api import TransitionEngine
from rlgym.rocket_league.api import GameState

from rlgym_bridge.client.players import agents_of, match_of, with_own_ids
from rlgym_bridge.client.seats import Seats, start_match
from rlgym_bridge.controls import NEUTRAL
from rlgym_bridge.dialect import Dialect
from rlgym_bridge.engine_base import base_state, checked_state, rows_of_actions
from rlgym_bridge.game import PLAYING_PHASES, TICKS_PER_SECOND, Phase
from rlgym_bridge.live.agent import server_address
from rlgym_bridge.live.decoder import Decoder
from rlgym_bridge.live.inputs import player_input
from rlgym_bridge.live.set_state import LeftOut, can_be_set, shows, state_message
from rlgym_bridge.rlgym_view import to_rlgym
from rlgym_bridge.settable import WantedMatch, wanted
from rlgym_bridge.state import MatchState

_LOG = logging.getLogger(__name__)

_SET_TICKS: Final = 120  # in which a state that was asked for has to show
_WAIT_TICKS: Final = 60 * TICKS_PER_SECOND  # for a goal's replay, a countdown, a respawn


class LiveEngineError(RuntimeError):
    """The match does not go on as it has to; the message says why."""


class LiveEngine(TransitionEngine[Hashable, GameState[Any], np.ndarray]):
    """Cars of a live match.

    The server has to run already: `rlgym-bridge server --pace lockstep`, or RLBotServer with the game.

    Args:
        match: The match to start: team sizes, or a configuration. Bots in it that have an agent id and no
            run command are the engine's; all others the server starts.
        server: Address and port; None for `RLBOT_SERVER_IP` and `RLBOT_SERVER_PORT`, 127.0.0.1:23234 where
            they are not set.
        set_states: Whether `set_state` sets the state. If not, an episode begins where the match is: with its
            next kickoff after a goal, else right where it goes on.
        patience: Seconds to wait for each step of the start, and for each packet.
        dialect: What is known of the server's dialect.
        shadow: Whether a simulation follows the match; None: where RocketSim is installed.

    Attributes:
        lost_ticks: Ticks so far whose row was not sent, because packets were lost or the step came late.

    Raises:
        NoServer: There is none, or it does not let the agents play.
        ValueError: No car of the match is the engine's.
    """

    def __init__(
        self,
        match: tuple[int, int] | flat.MatchConfiguration = (1, 1),
        server: tuple[str, int] | None = None,
        *,
        set_states: bool = True,
        patience: float = 60.0,
        dialect: Dialect | None = None,
        shadow: bool | None = None,
    ) -> None:
        configuration = with_own_ids(match_of(*match) if isinstance(match, tuple) else match)
        agents = agents_of(configuration)
        if not agents:
            raise ValueError("no car of the match is the engine's, expected a bot without a run command")
        self.lost_ticks = 0
        self._set_states, self._patience = set_states, patience
        self._server = server_address() if server is None else server
        start_match(self._server, configuration, patience)
        self._seats = Seats(self._server, agents, patience)
        self._decoder = Decoder(self._seats.field, self._seats.match, shadow, dialect)
        self._seating: list[tuple[int, int]] | None = None
        self._rows: list[int] = []  # of the seats, in the decoder's state
        self._slots: list[int] = []  # in the packets
        self._frame = 0
        self._phase = -1
        self._left_out = LeftOut()
        self._shown: MatchState | None = None
        self._state: GameState[Any] | None = None
        self._over = False  # a goal has ended the episode
        self._closed = False
        try:
            self._await([NEUTRAL] * len(agents))
        except BaseException:
            self._seats.close()
            raise

    # --- what RLGym asks -------------------------------------------------------------------------

    @property
    def agents(self) -> list[Hashable]:
        """The cars that are driven, blue first: `blue-0` and so on, of all cars in the match."""
        assert self._shown is not None  # set by the constructor
        return [self._shown.agents[row] for row in sorted(self._rows)]

    @property
    def max_num_agents(self) -> int:
        """As many as there are: a match keeps its cars."""
        return len(self._rows)

    @property
    def state(self) -> GameState[Any]:
        """The state that the latest step ended with, all cars of the match in it.

        Raises:
            ValueError: There is none yet.
        """
        if self._state is None:
            raise ValueError("there is no state yet, expected `set_state` or `RLGym.reset` first")
        return self._state

    @property
    def config(self) -> dict[str, Any]:
        """`rlbot_delay`, which is True: a match has it so."""
        return {"rlbot_delay": True}

    @config.setter
    def config(self, value: dict[str, Any]) -> None:
        if not value.get("rlbot_delay", True):
            raise ValueError("rlbot_delay is False, expected True: actions act a tick late in a match")

    def create_base_state(self) -> GameState[Any]:
        """Return a state without cars, for mutators to fill."""
        return base_state()

    def set_state(self, desired_state: GameState[Any], shared_info: dict[str, Any]) -> GameState[Any]:
        """Begin an episode, when the game is in play: after a goal it imposes replay and countdown.

        Args:
            desired_state: As mutators leave it. A match sets places, turns and speeds, whole numbers of boost
                and gravity; what else differs from the state that comes out is logged, once for each field.
            shared_info: Not read.

        Returns:
            The state as the first packet shows it.

        Raises:
            ValueError: The state has other cars than the match, or numbers that no match can have.
            LiveEngineError: The game does not take the state, or does not get back into play.
            EOFError, OSError: The server is gone.
        """
        asked = checked_state(desired_state)
        assert self._shown is not None
        mine, theirs = self._shown.layout, asked.layout
        if mine is not theirs:
            raise ValueError(
                f"the state has {theirs.blue} blue and {theirs.orange} orange cars, expected {mine.blue} and "
                f"{mine.orange}: those of the match. LiveEngine((blue, orange)) starts one of other sizes"
            )
        self._get_into_play()
        if self._set_states:
            self._set(wanted(asked))
            self._left_out.tell(asked, self._shown)
        self._over = False
        return self._show()

    def step(self, actions: dict[Hashable, np.ndarray], shared_info: dict[str, Any]) -> GameState[Any]:
        """Send each agent's rows tick by tick; a goal ends the step, as does the last row.

        While the game is paused neutral rows are sent, and the step goes on afterwards.

        Args:
            actions: `(ticks, 8)` for each agent, see `game.CONTROL_NAMES`.
            shared_info: Not read.

        Returns:
            The state of the last packet. `ball_touches` are those of the step.

        Raises:
            KeyError, ValueError: See `rows_of_actions`; or the episode has ended with a goal.
            LiveEngineError: The match has ended.
            EOFError, OSError: The server is gone.
        """
        if self._state is None or self._over:
            raise ValueError("step without an episode, expected `RLGym.reset` first, and again after a goal")
        order = np.argsort(np.argsort(self._rows))  # of each seat among the agents
        rows = rows_of_actions(actions, self.agents)[order]
        ticks, first, sent = rows.shape[1], self._frame + 1, 0
        self._decoder.clear_touches()
        while True:
            before = self._frame
            state = self._receive()
            if self._phase == Phase.GOAL_SCORED or state.goal_scored[0]:
                state.goal_scored[0] = 1
                self._over = True
                self._answer([NEUTRAL] * len(rows))
                break
            if self._phase not in PLAYING_PHASES:
                self._check_goes_on()
                self._answer([NEUTRAL] * len(rows))
                first += self._frame - before
                continue
            tick = self._frame - first
            self._answer([own[min(tick, ticks - 1)] for own in rows])
            sent += 1
            if tick >= ticks - 1:
                self.lost_ticks += tick + 1 - sent
                break
        return self._show()

    def close(self) -> None:
        """End the match and hang up; again is fine."""
        if not self._closed:
            self._closed = True
            self._seats.stop_match()
            self._seats.close()

    # --- packets ---------------------------------------------------------------------------------

    def _receive(self) -> MatchState:
        """Take in what packets there are, at least one."""
        if self._closed:
            raise ValueError("the engine is closed, expected a new LiveEngine")
        where = "{}:{}".format(*self._server)
        try:
            packets = self._seats.packets(self._patience)
        except (EOFError, OSError) as error:
            raise EOFError(
                f"the match on {where} is over: {error}. Was it stopped, the server ended, or another match "
                "started there?"
            ) from error
        if not packets:
            raise LiveEngineError(f"no packet from {where} for {self._patience:g} s")
        for packet in packets:
            state = self._decoder.update(packet)
            self._frame, self._phase = packet.match_info.frame_num, int(packet.match_info.match_phase)
            if self._phase == Phase.GOAL_SCORED:
                break
        self._shown = state
        if self._decoder.seating is not self._seating:
            self._seating = self._decoder.seating
            order = self._decoder.rows
            row_of = {packet.players[index].player_id: row for row, index in enumerate(order)}
            missing = [one for one in self._seats.ids if one not in row_of]
            if missing:
                raise LiveEngineError(f"no car with identifier {missing} in the packet: did it leave?")
            self._rows = [row_of[one] for one in self._seats.ids]
            self._slots = [order[row] for row in self._rows]
        return state

    def _answer(self, rows: Sequence[np.ndarray]) -> None:
        self._seats.answer(
            [player_input(slot, row.tolist()) for slot, row in zip(self._slots, rows, strict=True)]
        )

    def _await(self, rows: Sequence[np.ndarray]) -> MatchState:
        """Receive and answer."""
        state = self._receive()
        self._answer(rows)
        return state

    def _check_goes_on(self) -> None:
        if self._phase == Phase.ENDED:
            raise LiveEngineError("the match has ended: start it without a limit (match_length Unlimited)")

    # --- beginning an episode --------------------------------------------------------------------

    def _get_into_play(self) -> None:
        """Send neutral rows until the game is in play and all cars can be set."""
        neutral = [NEUTRAL] * len(self._rows)
        # One more packet at least: what held before has been let go of by then.
        for _ in range(_WAIT_TICKS):
            state = self._await(neutral)
            self._check_goes_on()
            ready = self._phase in PLAYING_PHASES and not state.goal_scored[0]
            if ready and (not self._set_states or can_be_set(state)):
                return
        raise LiveEngineError(
            f"the game was not in play for {_WAIT_TICKS // TICKS_PER_SECOND} s of game time, its phase is "
            f"{flat.MatchPhase(self._phase)}"
        )

    def _set(self, asked: WantedMatch) -> None:
        neutral = [NEUTRAL] * len(self._rows)
        message = state_message(asked, self._decoder.rows)
        assert self._shown is not None
        for tick in range(_SET_TICKS):
            if tick % 10 == 0:
                self._seats.send(message)
            state = self._await(neutral)
            if shows(state, asked):
                return
        raise LiveEngineError(
            f"the game did not set the state within {_SET_TICKS} ticks, expected it in the next packet: does "
            "the match have enable_state_setting?"
        )

    def _show(self) -> GameState[Any]:
        assert self._shown is not None
        self._state = to_rlgym(self._shown)
        return self._state
