"""The same match once on the server and once in RLGym's own loop, from the server's state at GO."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from rlbot import flat
from rlgym.api import RLGym, StateMutator
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.api import GameState
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import GoalReward
from rlgym.rocket_league.sim import RocketSimEngine

from rlgym_bridge.components.player_spec import Policy
from rlgym_bridge.components.rlgym_state import from_rlgym, to_rlgym
from rlgym_bridge.components.spec import Components
from rlgym_bridge.game import BOOST_PER_SECOND, PLAYING_PHASES, RLGYM_BOOST_PER_SECOND, Phase
from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.game.rules import Physics, physics_of
from rlgym_bridge.server.net import hosted_match
from rlgym_bridge.sim.arena import is_pinned
from rlgym_bridge.sim.simulator import ROCKETSIM2
from rlgym_bridge.state import MatchState


class Enough(Exception):
    """Raised out of a match that has gone on for long enough."""


@dataclass
class Kickoff:
    """A segment of play from GO to the goal.

    Attributes:
        start: The state at GO.
        frame: Frame number of the first Kickoff packet.
        rows: Control rows of all cars, tick by tick: what drove frame + i -> frame + i + 1.
        phases: Phase after each of these ticks.
        touches: Contacts with the ball, counted car by car and tick by tick.
        demolished: A car was demolished; rows, phases and touches end before that.
    """

    start: GameState[Any]
    frame: int = 0
    rows: list[np.ndarray] = field(default_factory=list)
    phases: list[int] = field(default_factory=list)
    touches: int = 0
    demolished: bool = False


class Watcher:
    """Follows a match of the server through its two hooks."""

    def __init__(self, enough: Callable[["Watcher"], bool]) -> None:
        self.kickoffs: list[Kickoff] = []
        self.goals = 0
        self._enough = enough
        self.phase = -1
        self._touch: dict[int, float] = {}

    @property
    def ticks(self) -> int:
        return sum(len(kickoff.rows) for kickoff in self.kickoffs)

    @property
    def touches(self) -> int:
        return sum(kickoff.touches for kickoff in self.kickoffs)

    def on_kickoff(self, state: MatchState) -> None:
        self.kickoffs.append(Kickoff(to_rlgym(state)))

    def on_packet(self, payload: bytes) -> None:
        packet = flat.CorePacket.unpack(payload).message
        phase = int(packet.match_info.match_phase)
        before, self.phase = self.phase, phase
        if phase in PLAYING_PHASES and before not in PLAYING_PHASES:
            self.kickoffs[-1].frame = packet.match_info.frame_num
        elif before in PLAYING_PHASES:
            self._add_tick(self.kickoffs[-1], packet, phase)
            self.goals += phase == Phase.GOAL_SCORED
        if self._enough(self):
            raise Enough

    def _add_tick(self, kickoff: Kickoff, packet: flat.GamePacket, phase: int) -> None:
        kickoff.demolished |= any(player.demolished_timeout >= 0 for player in packet.players)
        if kickoff.demolished:  # RLGym's respawns are random: nothing after this can be compared
            return
        kickoff.rows.append(np.array([_row(player.last_input) for player in packet.players], np.float32))
        kickoff.phases.append(phase)
        for index, player in enumerate(packet.players):
            touch = player.latest_touch
            if touch is not None and touch.game_seconds != self._touch.get(index):
                self._touch[index] = touch.game_seconds
                kickoff.touches += 1


def _row(controls: flat.ControllerState) -> list[float]:
    return [
        controls.throttle, controls.steer, controls.pitch, controls.yaw, controls.roll,
        controls.jump, controls.boost, controls.handbrake,
    ]  # fmt: skip


def _as_in_rlgym(*given: Any) -> Physics:
    """Return a match's physics without what rocketsim2 adds for the game: RLGym's engine lacks it."""
    return replace(physics_of(*given), thrust=False)


def play(players: Sequence[tuple[int, str]], seed: int, enough: Callable[[Watcher], bool]) -> Watcher:
    """Play a lockstep match of bot processes until `enough` says so."""
    watcher = Watcher(enough)
    config = flat.MatchConfiguration(
        player_configurations=[
            flat.PlayerConfiguration(
                flat.CustomBot(f"bot {i}", run_command=command, agent_id=f"tests/{i}"), team
            )
            for i, (team, command) in enumerate(players)
        ],
        auto_start_agents=True,
        skip_replays=True,
        mutators=flat.MutatorSettings(),
    )
    with (
        MatchServer(
            pace="lockstep",
            seed=seed,
            seconds=3600,
            on_kickoff=watcher.on_kickoff,
            on_packet=watcher.on_packet,
            simulator=ROCKETSIM2,
        ) as server,
        patch.object(hosted_match, "physics_of", _as_in_rlgym),
        contextlib.suppress(Enough),
    ):
        server.play(config)
    return watcher


class _From(StateMutator[GameState[Any]]):
    """Puts a state in, with the game's boost consumption in RLGym's unit."""

    start: GameState[Any]

    def apply(self, state: GameState[Any], shared_info: dict[str, Any]) -> None:
        start = self.start
        state.tick_count, state.ball, state.cars = start.tick_count, start.ball, start.cars
        state.boost_pad_timers = start.boost_pad_timers
        state.config.boost_consumption = BOOST_PER_SECOND / RLGYM_BOOST_PER_SECOND


class FreshEngine(RocketSimEngine[Any]):
    """RLGym's engine in a new arena for every reset, until its cars lie in the pinned order.

    A used arena, or another order of cars, solves contacts in another order; RLGym's engine leaves both
    to chance. Steps and states are RLGym's own.
    """

    def set_state(self, desired_state: GameState[Any], shared_info: dict[str, Any]) -> GameState[Any]:
        for _ in range(100):
            super().__init__(rlbot_delay=self._rlbot_delay)
            super().set_state(desired_state, shared_info)
            if is_pinned(self._arena, list(self._cars.values())):
                break
        else:
            raise RuntimeError("the pinned order did not come up")
        self._restore(desired_state)
        return self._get_state()

    def _restore(self, desired: GameState[Any]) -> None:
        """Set what looking at the order has moved."""
        import RocketSim as rsim

        ball = rsim.BallState()
        ball.pos = rsim.Vec(*desired.ball.position)
        self._arena.ball.set_state(ball)
        for agent, car in self._cars.items():
            self._set_car_state(car, desired.cars[agent])
        for pad in self._arena.get_boost_pads():
            pad.set_state(rsim.BoostPadState())


def rlgym_env(parts: Components | None = None) -> RLGym[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return RLGym's own environment."""
    parts = parts or Components(DefaultObs(zero_padding=None), RepeatAction(LookupTableAction(), repeats=8))
    return RLGym(
        state_mutator=_From(),
        obs_builder=parts.obs_builder,
        action_parser=parts.parser,
        reward_fn=parts.reward_fn or GoalReward(),
        transition_engine=FreshEngine(rlbot_delay=True),
        termination_cond=parts.termination_cond,
        truncation_cond=parts.truncation_cond,
        shared_info_provider=parts.shared_info_provider,
    )


def rlgym_loop(
    env: RLGym[Any, Any, Any, Any, Any, Any, Any, Any],
    start: GameState[Any],
    policies: Sequence[Policy],
    ticks: int,
    seed: int,
) -> tuple[list[np.ndarray], list[dict[str, np.ndarray]], int]:
    """Play an episode from `start` in RLGym's loop, every car with its own policy.

    Returns:
        The control rows of every tick (cars, 8), what drove tick i -> i + 1; the observations of every
        decision; and the decisions at which a car had just bumped another.
    """
    env.state_mutator.start = start
    observations = [env.reset()]
    agents = list(env.agents)
    for row, policy in enumerate(policies):
        policy.reset([row], seed)
    table = LookupTableAction.make_lookup_table().astype(np.float32)
    rows = [np.zeros((len(agents), 8), np.float32)]  # the engine's first tick is a no-op
    bumps = 0
    while len(rows) <= ticks:
        state = from_rlgym(env.state)
        actions = [
            policy.act(observations[-1][agent].astype(np.float32)[None, None], state)[0]
            for agent, policy in zip(agents, policies, strict=True)
        ]
        rows += [table[np.array(actions)[:, 0]]] * 8
        step = dict(zip(agents, actions, strict=True))
        obs, _, terminated, _ = env.step(step)
        observations.append(obs)
        bumps += any(car.had_car_contact for car in env.state.cars.values())
        if any(terminated.values()):
            break
    return rows[:ticks], observations, bumps
