"""RLGym's `TransitionEngine` over a live match: the real game's, or the match server's.

    RLGym(..., transition_engine=SimEngine())     # RocketSim
    RLGym(..., transition_engine=LiveEngine())    # a match

Every agent has a connection of its own, as RLBot has it for bots, and answers every packet. A step's rows
are sent one a tick: actions chosen on the state of frame k begin with row 0, which answers packet k + 1. The
step ends with the packet that the last row answers. So actions act one tick after their state, as with
RLGym's `rlbot_delay`, and the next ones may take a tick to compute.

In lockstep the match waits between two steps for as long as it takes. In real time it goes on: a step that
comes so late that none of its rows would act begins with the newest packet, and counts as a gap.
"""

import logging
import time
from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np
from rlbot import flat

from rlgym_bridge.components.conditions import GapCondition
from rlgym_bridge.components.rlgym_state import checked_state, to_rlgym
from rlgym_bridge.components.rlgym_types import Game, SharedInfo
from rlgym_bridge.controls import NEUTRAL
from rlgym_bridge.engines.base import BaseEngine, rows_of_actions
from rlgym_bridge.engines.match_stream import LiveEngineError, MatchStream
from rlgym_bridge.game import GRAVITY, TICK_SKIP, TICKS_PER_SECOND
from rlgym_bridge.live.agent_connections import agents_of, match_of, start_match, with_own_ids
from rlgym_bridge.live.play import server_address
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.rotations import angles_of
from rlgym_bridge.state import CAR_FIELDS, MATCH_FIELDS, MatchState

__all__ = ["LiveEngine", "LiveEngineError"]

_LOG = logging.getLogger(__name__)

_SET_TICKS: Final = 120  # in which a state that was asked for has to show
_WAIT_TICKS: Final = 60 * TICKS_PER_SECOND  # for a goal's replay, a countdown, a respawn
_WARN_SECONDS: Final = 1.0  # between two warnings of gaps

_SET_SLACK: Final = 5.0  # uu, and two ticks of motion, off the place that was asked for

_NOT_ASKED: Final = (
    "frame", "phase", "clock", "overtime", "score", "goal_scored", "ball_known", "car_player_id", "car_known",
    "car_controls", "car_ball_touches", "car_bump_victim", "car_autoflip_direction", "car_flip_torque",
)  # fmt: skip
_COMPARED: Final = tuple(
    name
    for name in (*(field.name for field in MATCH_FIELDS), *("car_" + field.name for field in CAR_FIELDS))
    if name not in _NOT_ASKED
)
_TOLERANCES: Final = {"boost_consumption": 2e-3, "ball_position": 1.0, "car_position": 1.0}


class StepSpan:
    """The ticks of one step, each with the row that answers its packet.

    `first` is the frame that row 0 is meant to answer, moved on by pauses; `sent` the packets answered.
    """

    def __init__(self, first: int, ticks: int) -> None:
        self.first, self.ticks = first, ticks
        self.sent = 0
        self.is_over = False
        self._begin = first

    def pause(self, ticks: int) -> None:
        """Leave out ticks in which the game was not in play."""
        self.first += ticks
        self._begin += ticks

    def begins_late(self, frame: int) -> bool:
        """Tell whether all rows would come too late for a frame; the step then begins with it."""
        late = not self.sent and frame - self.first >= self.ticks
        if late:
            self._begin = frame
        return late

    def row(self, frame: int) -> int:
        """Return the index of the row that answers a frame."""
        self.sent += 1
        tick = frame - self._begin
        self.is_over = tick >= self.ticks - 1
        return min(tick, self.ticks - 1)


class LiveEngine(BaseEngine):
    """An engine whose cars play in a live match.

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
        tick_skip: Ticks for which a single row `(8,)` of a parser is held.
        truncate_on_gap: Whether a gap ends the episode: `step` then refuses to go on without a reset.
            `conditions.GapCondition` among the environment's truncation conditions ends the episode on a gap.

    Attributes:
        lost_ticks: Ticks of steps so far for which no row was sent, because packets were lost or the match
            went on without a call of `step`.
        tick_skip: As given.

    Raises:
        NoServer: There is none, or it does not let the agents play.
        ValueError: No car of the match is the engine's; `tick_skip` is no whole number, 1 to 7,200.
    """

    def __init__(
        self,
        match: tuple[int, int] | flat.MatchConfiguration = (1, 1),
        server: tuple[str, int] | None = None,
        *,
        set_states: bool = True,
        patience: float = 60.0,
        dialect: ProtocolVariant | None = None,
        shadow: bool | None = None,
        tick_skip: int = TICK_SKIP,
        truncate_on_gap: bool = False,
    ) -> None:
        super().__init__(tick_skip)
        configuration = with_own_ids(match_of(*match) if isinstance(match, tuple) else match)
        if not agents_of(configuration):
            raise ValueError("no car of the match is the engine's, expected a bot without a run command")
        self.lost_ticks = 0
        self._set_states, self._truncate_on_gap = set_states, truncate_on_gap
        self._logged: set[str] = set()  # fields that a match does not set
        self._over = ""  # what has ended the episode
        self._next_warning = 0.0
        server = server_address() if server is None else server
        start_match(server, configuration, patience)
        self._stream = MatchStream(server, configuration, patience, shadow, dialect)
        self._neutral = [NEUTRAL] * len(self._stream.cars)
        self._stream.answer(self._neutral)

    # --- what RLGym calls -------------------------------------------------------------------------

    @property
    def agents(self) -> list[Hashable]:
        """The cars that are driven, blue first: `blue-0` and so on, of all cars in the match."""
        return [self._stream.state.agents[car] for car in sorted(self._stream.cars)]

    @property
    def max_num_agents(self) -> int:
        """Number of driven cars, which a match keeps."""
        return len(self._stream.cars)

    @property
    def config(self) -> dict[str, Any]:
        """`rlbot_delay`, which is True: a match has it so."""
        return {"rlbot_delay": True}

    @config.setter
    def config(self, value: dict[str, Any]) -> None:
        if not value.get("rlbot_delay", True):
            raise ValueError("rlbot_delay is False, expected True: actions act a tick late in a match")

    def set_state(self, desired_state: Game, shared_info: SharedInfo) -> Game:
        """Begin an episode once the game is in play: after a goal, replay and countdown come first.

        A match sets places, turns and speeds, whole numbers of boost and gravity; what else differs from the
        state that comes out is logged, once for each field.

        Raises:
            ValueError: The state has other cars than the match, or numbers that no match can have.
            LiveEngineError: The game does not take the state, or does not get back into play.
            EOFError, OSError: The server is gone.
        """
        asked = checked_state(desired_state)
        mine, theirs = self._stream.state.layout, asked.layout
        if mine is not theirs:
            raise ValueError(
                f"the state has {theirs.blue} blue and {theirs.orange} orange cars, expected {mine.blue} and "
                f"{mine.orange}: those of the match. LiveEngine((blue, orange)) starts one of other sizes"
            )
        self._get_into_play()
        if self._set_states:
            self._set(asked)
            _log_left_out(asked, self._stream.state, self._logged)
        self._over = ""
        self._stream.begin_episode()
        GapCondition.note(shared_info, False)
        return self._show()

    def step(self, actions: dict[Hashable, np.ndarray], shared_info: SharedInfo) -> Game:
        """Send each agent's rows tick by tick; a goal ends the step, as does the last row.

        Rows whose ticks are past are left out. Where all would be, the step begins with the newest packet:
        its rows act, touches before it do not count, and the ticks before it are `lost_ticks`. A step that
        spans twice its ticks or more is a gap, which is logged, once a second at most, and noted for
        `GapCondition`. While the game is paused neutral rows are sent, and the step goes on afterwards.

        Args:
            actions: For each agent `(ticks, 8)`, or `(8,)` held for `tick_skip` ticks; see
                `game.CONTROL_NAMES`.
            shared_info: Records whether the step is a gap.

        Raises:
            KeyError, ValueError: See `rows_of_actions`; or the episode has ended.
            LiveEngineError: The match has ended.
            EOFError, OSError: The server is gone.
        """
        if self._state is None or self._over:
            raise ValueError(self._over or "step without an episode, expected `RLGym.reset` first")
        stream = self._stream
        order = np.argsort(np.argsort(stream.cars))  # of each connection among the agents
        rows = rows_of_actions(actions, self.agents, self.tick_skip)[order]
        span = StepSpan(stream.frame + 1, rows.shape[1])
        stream.clear_touches()
        while not self._over and not span.is_over:
            before = stream.frame
            state = stream.receive(to_goal=True, rows=lambda frame: list(rows[:, span.row(frame)]))
            if stream.answered:
                continue
            if state.goal_scored[0]:
                self._over = "the episode has ended with a goal, expected `RLGym.reset` first"
                stream.answer(self._neutral)
            elif not stream.is_playing:
                stream.check_goes_on()
                stream.answer(self._neutral)
                span.pause(stream.frame - before)
            else:
                if stream.frame < before:  # the numbers went back: the packet counts as the next tick
                    span.pause(stream.frame - before - 1)
                if span.begins_late(stream.frame):
                    stream.clear_touches()
                stream.answer(list(rows[:, span.row(stream.frame)]))
        self._account_for(span, shared_info)
        return self._show()

    def _account_for(self, span: StepSpan, shared_info: SharedInfo) -> None:
        """Count the ticks of a step that had no row, and record and log a gap."""
        spanned = self._stream.frame - span.first + 1
        self.lost_ticks += spanned - span.sent - bool(self._over)  # a goal's packet has none
        gap = spanned >= 2 * span.ticks
        GapCondition.note(shared_info, gap)
        if not gap:
            return
        if self._truncate_on_gap and not self._over:
            self._over = (
                f"the episode has ended with a step that spanned {spanned} ticks in place of {span.ticks}, "
                "expected `RLGym.reset` first: GapCondition() among the truncation conditions tells RLGym so"
            )
        if time.monotonic() >= self._next_warning:
            self._next_warning = time.monotonic() + _WARN_SECONDS
            _LOG.warning(
                "a step spanned %d ticks in place of %d: the match went on without one, or packets were "
                "lost; %d ticks so far had no row. A server in lockstep (--pace lockstep) waits for a "
                "learner; in real time GapCondition() among the truncation conditions ends the episode",
                spanned, span.ticks, self.lost_ticks,
            )  # fmt: skip

    def close(self) -> None:
        """End the match and hang up; again is fine."""
        self._stream.close()

    # --- beginning an episode --------------------------------------------------------------------

    def _get_into_play(self) -> None:
        """Send neutral rows until the game is in play and all cars can be set."""
        stream = self._stream
        # One more packet at least: what held before has been let go of by then.
        for _ in range(_WAIT_TICKS):
            state = self._idle()
            stream.check_goes_on()
            ready = stream.is_playing and not state.goal_scored[0]
            if ready and (not self._set_states or _can_be_set(state)):
                return
        raise LiveEngineError(
            f"the game was not in play for {_WAIT_TICKS // TICKS_PER_SECOND} s of game time, its phase is "
            f"{flat.MatchPhase(stream.phase)}"
        )

    def _set(self, asked: MatchState) -> None:
        """Send a state until packets show it."""
        message = _state_message(asked, self._stream.packet_order)
        for tick in range(_SET_TICKS):
            if tick % 10 == 0:
                self._stream.send(message)
            if _shows(self._idle(), asked):
                return
        raise LiveEngineError(
            f"the game did not set the state within {_SET_TICKS} ticks, expected it in the next packet: does "
            "the match have enable_state_setting?"
        )

    def _idle(self) -> MatchState:
        """Take in the packets that there are, and press nothing."""
        state = self._stream.receive()
        self._stream.answer(self._neutral)
        return state

    def _show(self) -> Game:
        self._state = to_rlgym(self._stream.state)
        return self._state


def _state_message(asked: MatchState, packet_order: Sequence[int]) -> flat.DesiredGameState:
    """Return RLBot's message that sets a state; `packet_order` has the packet index of each of its cars."""
    boost = np.floor(
        np.clip(asked.car_boost_amount[0], 0.0, 100.0)
    ).tolist()  # RLBot's core cuts off the rest
    return flat.DesiredGameState(
        ball_states=[flat.DesiredBallState(_physics(asked, "ball_", (0,)))],
        car_states=[
            flat.DesiredCarState(_physics(asked, "car_", (0, car)), boost[car])
            for car in np.argsort(packet_order).tolist()
        ],
        match_info=flat.DesiredMatchInfo(world_gravity_z=-GRAVITY * float(asked.gravity[0])),
    )


def _physics(asked: MatchState, of: str, at: tuple[int, ...]) -> flat.DesiredPhysics:
    place, velocity, spin = (
        flat.Vector3Partial(*getattr(asked, of + name)[at].tolist())
        for name in ("position", "linear_velocity", "angular_velocity")
    )
    angles = angles_of(getattr(asked, of + "rotation")[at].ravel().tolist())
    return flat.DesiredPhysics(place, flat.RotatorPartial(*angles), velocity, spin)


def _can_be_set(state: MatchState) -> bool:
    """Tell whether a state can be set: no car is demolished, dodges, boosts, slides or bumps another."""
    busy = (
        state.car_is_demoed, state.car_is_flipping, state.car_is_autoflipping, state.car_handbrake,
        state.car_is_boosting, state.car_bump_victim + 1,
    )  # fmt: skip
    return not any(flags.any() for flags in busy)


def _shows(state: MatchState, asked: MatchState) -> bool:
    """Tell whether ball and cars are where they were asked to be, up to two ticks of motion."""
    for of in ("ball_", "car_"):
        off = getattr(state, of + "position") - getattr(asked, of + "position")
        motion = 2 * np.linalg.norm(getattr(asked, of + "linear_velocity"), axis=-1) / TICKS_PER_SECOND
        if not (np.linalg.norm(off, axis=-1) <= _SET_SLACK + motion).all():
            return False
    return True


def _log_left_out(asked: MatchState, shown: MatchState, logged: set[str]) -> None:
    """Log what a match does not set, each field once; but not of the part of a percent of boost."""
    for name in _COMPARED:
        if name in logged:
            continue
        ours, theirs = getattr(asked, name), getattr(shown, name)
        if name == "car_boost_amount":
            ours = np.floor(ours)
        different = ~np.isclose(ours, theirs, atol=_TOLERANCES.get(name, 1e-2))
        if different.any():
            logged.add(name)
            at = tuple(np.argwhere(different)[0])
            _LOG.warning(
                "a match does not set %s: asked for %g, it is %g", name, float(ours[at]), float(theirs[at])
            )
