"""One episode of one match: RLGym components called exactly as `rlgym.api.RLGym` calls them.

    reset: provider.create, provider.set_state, obs.reset, parser.reset, termination.reset,
           truncation.reset, reward.reset, obs.build_obs
    step:  provider.step, obs.build_obs
    judge: termination.is_done, truncation.is_done, reward.get_rewards, renderer.render
    decide, when play goes on: policy.act, parser.parse_actions

Components of ours work on the `MatchState` itself; all others are given real
`rlgym.rocket_league.api.GameState` objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rlgym.rocket_league.api import GameState

from rlgym_bridge.components.batching import control_rows, observe, works_in_batches
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.rlgym_state import to_rlgym
from rlgym_bridge.state import MatchState


@dataclass
class StepReport:
    """What conditions and rewards said of the last step, by agent; empty without them.

    `returns` are the sums of rewards since the reset.
    """

    rewards: dict[Any, Any] = field(default_factory=dict)
    returns: dict[Any, float] = field(default_factory=dict)
    terminated: dict[Any, bool] = field(default_factory=dict)
    truncated: dict[Any, bool] = field(default_factory=dict)


class Episode:
    """Runs the components of one match, episode after episode.

    Args:
        brain: Its factories are called once each, here.

    Attributes:
        report: What conditions and rewards said of the last step.
        agents: Names of the cars to play.
        observation: `(1, cars, size)`, what the policy sees; None where it reads the state alone.
        actions: `(1, cars)` or `(1, cars, k)`, what it chose last; None before.
    """

    def __init__(self, brain: PlayerSpec) -> None:
        self.report = StepReport()
        self.agents: list[str] = []
        self.observation: np.ndarray | None = None
        self.actions: np.ndarray | None = None
        self._tick_skip = brain.tick_skip
        self._policy = brain.policy()
        self._parts = brain.components()
        provider = self._parts.shared_info_provider
        # RLGym's constructor makes one, before the first reset makes the next.
        self._shared_info: dict[str, Any] = {} if provider is None else provider.create({})
        self._seats: Sequence[int] = ()
        self._game: GameState[Any] | None = None
        obs, parser = self._parts.obs_builder, self._parts.parser
        self._obs_is_ours = obs is None or works_in_batches(obs)
        self._parser_is_ours = works_in_batches(parser)

    def reset(self, state: MatchState, seats: Sequence[int], seed: int | None = None) -> None:
        """Begin an episode on `state`, as `RLGym.reset` does once the state is set.

        Args:
            state: One match.
            seats: Rows of the cars to play.
            seed: Passed on to the policy.
        """
        parts = self._parts
        self._seats = seats
        self.agents = [state.agents[seat] for seat in seats]
        self.report = StepReport()
        self._game = game = to_rlgym(state)
        provider = parts.shared_info_provider
        if provider is not None:
            self._shared_info = provider.create(self._shared_info)
            self._shared_info = provider.set_state(self.agents, game, self._shared_info)
        for part in (
            parts.obs_builder, parts.parser, parts.termination_cond, parts.truncation_cond, parts.reward_fn,
        ):  # fmt: skip
            if part is not None:
                part.reset(self.agents, game, self._shared_info)
        self._policy.reset(seats, seed)
        self._build_obs(state)

    def step(self, state: MatchState) -> None:
        """End a step on `state`: observe it."""
        self._game = None
        provider = self._parts.shared_info_provider
        if provider is not None:
            self._shared_info = provider.step(self.agents, self._game_of(state), self._shared_info)
        self._build_obs(state)

    def decide(self, state: MatchState) -> list[np.ndarray]:
        """Choose actions on the observation of `reset` or `step`.

        Returns:
            For each seat its rows, (ticks, 8) float32.

        Raises:
            ControlsError: The parser gave something that is no control row.
            ValueError: The rows of different cars differ in length.
            Exception: Whatever the policy or a foreign parser raises.
        """
        actions = self.actions = self._policy.act(self.observation, state)
        if actions.shape[:2] != (1, len(self._seats)):
            raise ValueError(
                f"{type(self._policy).__name__} gave actions of shape {actions.shape} for one match and "
                f"{len(self._seats)} seats, expected (1, {len(self._seats)}) or (1, {len(self._seats)}, k)"
            )
        parser = self._parts.parser
        game = None if self._parser_is_ours else self._game_of(state)
        parsed = control_rows(parser, actions, self._seats, state, game, self._shared_info)
        source = type(parser).__name__
        rows = [checked_rows(one, self._tick_skip, source) for one in parsed]
        if len({len(one) for one in rows}) > 1:
            raise ValueError(
                f"{source} gave {[len(one) for one in rows]} ticks for {self.agents}, expected the same "
                f"number for all cars of a step"
            )
        return rows

    def _game_of(self, state: MatchState) -> GameState[Any]:
        if self._game is None:
            self._game = to_rlgym(state)
        return self._game

    def _build_obs(self, state: MatchState) -> None:
        builder = self._parts.obs_builder
        if builder is not None:
            game = None if self._obs_is_ours else self._game_of(state)
            self.observation = observe(builder, self._seats, state, game, self._shared_info)

    def judge(self, state: MatchState) -> None:
        """Ask conditions and rewards about the step that ended on `state`, and show it to the renderer.

        Raises:
            Exception: Whatever they raise.
        """
        parts, agents, report = self._parts, self.agents, StepReport(returns=self.report.returns)
        if parts.termination_cond is not None:
            game = self._game_of(state)
            report.terminated = parts.termination_cond.is_done(agents, game, self._shared_info)
        if parts.truncation_cond is not None:
            game = self._game_of(state)
            report.truncated = parts.truncation_cond.is_done(agents, game, self._shared_info)
        if parts.reward_fn is not None:
            nobody = dict.fromkeys(agents, False)
            report.rewards = parts.reward_fn.get_rewards(
                agents,
                self._game_of(state),
                report.terminated or nobody,
                report.truncated or nobody,
                self._shared_info,
            )
            for agent, reward in report.rewards.items():
                report.returns[agent] = report.returns.get(agent, 0.0) + float(reward)
        self.report = report
        if parts.renderer is not None:
            parts.renderer.render(self._game_of(state), self._shared_info)

    def close(self) -> None:
        """Close the renderer."""
        if self._parts.renderer is not None:
            self._parts.renderer.close()
