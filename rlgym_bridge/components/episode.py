"""Call RLGym components in exactly the order of `rlgym.api.RLGym`, for one match.

    reset: provider.create, mutator.apply, provider.set_state, obs.reset, parser.reset, termination.reset,
           truncation.reset, reward.reset, obs.build_obs
    step:  provider.step, obs.build_obs
    judge: termination.is_done, truncation.is_done, reward.get_rewards, renderer.render
    decide, when play goes on: policy.act, parser.parse_actions

`ComponentCalls` is the one place that knows this order. Components of ours work on the `MatchState` itself;
all others are given real `rlgym.rocket_league.api.GameState` objects.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rlgym_bridge.components.batch_form import act_within, control_rows, find_masks, observe, works_in_batches
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.reward_base import ask_reward, reward_between
from rlgym_bridge.components.rlgym_state import base_state, to_rlgym
from rlgym_bridge.components.rlgym_types import Game, SharedInfo
from rlgym_bridge.components.spec import Components
from rlgym_bridge.components.user_errors import locate_method
from rlgym_bridge.controls import NEUTRAL, ControlsError, checked_plan
from rlgym_bridge.game import Phase
from rlgym_bridge.state import MatchState


@dataclass
class StepReport:
    """Answers of conditions and rewards about a step, by agent; empty without them."""

    rewards: Mapping[Any, Any] = field(default_factory=dict)
    returns: dict[Any, float] = field(default_factory=dict)  # sums of rewards since the reset of an `Episode`
    terminated: dict[Any, bool] = field(default_factory=dict)
    truncated: dict[Any, bool] = field(default_factory=dict)


class ComponentCalls:
    """The components of one match, called in RLGym's order.

    For each episode: `begin`, then `observe`; for each step: `parse`, `step`, `observe`, `judge`. Whoever
    plays the state that the mutator makes calls `renew_shared_info`, the mutator and `reset` for `begin`. No
    other match uses `parts`. Of these `reset` resets `resets`, in RLGym's order, or all where that is None;
    `judge` needs the conditions and rewards among them. `agents` are the names of the cars that are played.
    """

    def __init__(self, parts: Components, resets: Sequence[Any] | None = None) -> None:
        self.parts = parts
        self.agents: list[str] = []
        self._provider = parts.shared_info_provider
        # RLGym's constructor makes one, before the first reset makes the next.
        self.shared_info: SharedInfo = {} if self._provider is None else self._provider.create({})
        if resets is None:
            judging = (parts.termination_cond, parts.truncation_cond, parts.reward_fn)
            resets = (parts.obs_builder, parts.parser, *judging)
        self._reset_order = [part for part in resets if part is not None]
        self._batch_judges = [
            id(part) for part in (parts.termination_cond, parts.truncation_cond, parts.reward_fn)
            if part is not None and works_in_batches(part)
        ]  # fmt: skip
        self._before: MatchState | None = None  # the state that rewards were last asked about
        self._obs_is_ours = parts.obs_builder is None or works_in_batches(parts.obs_builder)
        self._parser_is_ours = works_in_batches(parts.parser)
        self._cars: Sequence[int] = ()
        self._state: MatchState | None = None
        self._game: Game | None = None

    @property
    def game(self) -> Game:
        """The state of the latest `reset` or `step` in RLGym's form, made when it is first needed."""
        if self._game is None:
            assert self._state is not None  # set by reset
            self._game = to_rlgym(self._state)
        return self._game

    def renew_shared_info(self) -> None:
        """Make the next episode's shared info, which RLGym does before its mutators run."""
        if self._provider is not None:
            self.shared_info = self._provider.create(self.shared_info)

    def begin(self, state: MatchState, cars: Sequence[int]) -> None:
        """Begin an episode on one match that the mutator has not made, such as a kickoff.

        The mutator still runs, on a state that is thrown away, because it may fill the shared info. Clock and
        score in the scoreboard of rlgym-tools are the match's own, where the state reports them.
        """
        self.renew_shared_info()
        mutator = self.parts.state_mutator
        if mutator is not None and not works_in_batches(mutator):  # ours read and fill no shared info
            _show_match(self.shared_info, state, begins=True)
            mutator.apply(base_state(), self.shared_info)
        _show_match(self.shared_info, state, begins=False)
        self.reset(state, cars)

    def reset(self, state: MatchState, cars: Sequence[int]) -> None:
        """Reset the components, once the mutator has run, on one match, for cars by their places."""
        self._cars, self.agents = cars, [state.agents[car] for car in cars]
        self._state, self._game = state, None
        if self._provider is not None:
            self.shared_info = self._provider.set_state(self.agents, self.game, self.shared_info)
        for part in self._reset_order:
            if id(part) not in self._batch_judges:
                part.reset(self.agents, self.game, self.shared_info)
            elif part is not self.parts.reward_fn:  # a condition; rewards have no memory
                part.reset_batch(state, np.ones(1, bool))
        self._before = state.copy()

    def step(self, state: MatchState) -> None:
        """End a step on `state`, which must not change until the next call of `step` or `reset`."""
        self._state, self._game = state, None
        if self._provider is not None:
            self.shared_info = self._provider.step(self.agents, self.game, self.shared_info)

    def observe(self) -> np.ndarray | None:
        """Return `(1, cars, size)` float32 observations; None without an observation builder."""
        builder = self.parts.obs_builder
        if builder is None:
            return None
        game = None if self._obs_is_ours else self.game
        assert self._state is not None  # set by reset
        return observe(builder, self._cars, self._state, game, self.shared_info)

    def masks(self, match: int = 0) -> np.ndarray | None:
        """Return which actions each car may choose, `(1, cars, actions)` bool; None for all."""
        assert self._state is not None  # set by reset
        masks = find_masks(self.parts.parser, self._state, self.shared_info, match)
        return None if masks is None else masks[:, list(self._cars)]

    def parse(self, actions: np.ndarray) -> list[np.ndarray]:
        """Return the parser's rows for each car, unchecked: `(8,)` or `(ticks, 8)`."""
        game = None if self._parser_is_ours else self.game
        assert self._state is not None  # set by reset
        return control_rows(self.parts.parser, actions, self._cars, self._state, game, self.shared_info)

    def judge(self) -> StepReport:
        """Ask conditions and rewards about the latest step."""
        parts, agents = self.parts, self.agents
        ends, cuts, reward = parts.termination_cond, parts.truncation_cond, parts.reward_fn
        terminated, truncated = (
            {} if part is None else self._ask_any_condition(part) for part in (ends, cuts)
        )
        if reward is None:
            return StepReport(terminated=terminated, truncated=truncated)
        nobody = dict.fromkeys(agents, False)
        flags = (nobody if ends is None else terminated, nobody if cuts is None else truncated)
        before, after = self._before, self._state
        assert before is not None and after is not None  # set by reset
        if id(reward) in self._batch_judges:
            rewards: Mapping[Any, Any] = reward_between(reward, agents, (before, after), *flags)
        else:
            rewards = ask_reward(reward, agents, self.game, *flags, self.shared_info, (before, after))
        self._before = after.copy()
        return StepReport(rewards, {}, terminated, truncated)

    def _ask_any_condition(self, condition: Any) -> dict[Any, bool]:
        if id(condition) not in self._batch_judges:
            return self.ask_condition(condition)
        return dict.fromkeys(self.agents, bool(condition.done_batch(self._state)[0]))

    def ask_condition(self, condition: Any) -> dict[Any, bool]:
        """Return a condition's answer about the latest step by agent; raises ValueError for any other."""
        done: dict[Any, bool] = condition.is_done(self.agents, self.game, self.shared_info)
        if not isinstance(done, Mapping) or any(np.ndim(flag) or flag is None for flag in done.values()):
            raise ValueError(
                f"condition {type(condition).__name__} gave {done!r:.80}, expected a dict with True or False "
                f"for each agent{locate_method(condition, 'is_done')}"
            )
        return done

    def ask_reward(
        self, reward: Any, terminated: Mapping[Any, bool], truncated: Mapping[Any, bool]
    ) -> Mapping[Any, Any]:
        """Return what a reward gives for the latest step in RLGym's form; the flags are the conditions'."""
        return ask_reward(reward, self.agents, self.game, terminated, truncated, self.shared_info)

    def render(self) -> None:
        """Show the latest state to the renderer, where there is one."""
        if self.parts.renderer is not None:
            self.parts.renderer.render(self.game, self.shared_info)

    def close(self) -> None:
        """Close the renderer, where there is one."""
        if self.parts.renderer is not None:
            self.parts.renderer.close()


def _show_match(shared_info: SharedInfo, state: MatchState, begins: bool) -> None:
    """Put a match's reported clock and score into the scoreboard of rlgym-tools, if there is one."""
    board = shared_info.get("scoreboard")
    fields = board if isinstance(board, dict) else getattr(type(board), "__dataclass_fields__", {})
    reported = state.clock[0] or state.overtime[0] or state.score[0].any()
    if "game_timer_seconds" not in fields or not reported:
        return
    kickoff = int(state.phase[0]) in (Phase.COUNTDOWN, Phase.KICKOFF)
    shown: dict[str, Any] = {
        "game_timer_seconds": math.inf if state.overtime[0] else float(state.clock[0]),
        "blue_score": int(state.score[0, 0]),
        "orange_score": int(state.score[0, 1]),
        "go_to_kickoff": begins and kickoff,
        "is_over": False,
    }
    if not kickoff:
        shown["kickoff_timer_seconds"] = 0.0
    for name, value in shown.items():
        if isinstance(board, dict):
            board[name] = value
        else:
            setattr(board, name, value)


class Episode:
    """A policy and its components in one match, episode after episode."""

    def __init__(self, player_spec: PlayerSpec) -> None:
        self.report = StepReport()  # about the last step
        # the policy's input, `(1, cars, size)` float32; None where it reads the state alone
        self.observation: np.ndarray | None = None
        self.actions: np.ndarray | None = None  # its latest choice, `(1, cars)` or `(1, cars, k)`
        self._tick_skip = player_spec.tick_skip
        self.policy = player_spec.policy()
        self._calls = ComponentCalls(player_spec.components())
        self.parts, self.masks = self._calls.parts, self._calls.masks
        self._cars = 0

    @property
    def agents(self) -> list[str]:
        """Names of the cars to play."""
        return self._calls.agents

    def reset(self, state: MatchState, cars: Sequence[int], seed: int | None = None) -> None:
        """Begin an episode on one match, for cars by their places in the state; the policy gets the seed."""
        self._cars = len(cars)
        self.report = StepReport()
        self._calls.begin(state, cars)
        self.policy.reset(cars, seed)
        self.observation = self._calls.observe()

    def step(self, state: MatchState) -> None:
        """End a step on `state`: observe it."""
        self._calls.step(state)
        self.observation = self._calls.observe()

    def decide(self, state: MatchState, refused: list[ControlsError] | None = None) -> list[np.ndarray]:
        """Choose actions on the newest observation; return each car's rows, `(ticks, 8)` float32.

        With a list `refused`, a car whose rows are no control vectors gets neutral ones, and the error is
        added. Raises ControlsError if rows are no control vectors: any car's without `refused`, all cars'
        with it; ValueError if the rows of different cars differ in length.
        """
        actions = self.actions = act_within(self.policy, self.observation, state, self._calls.masks())
        if actions.shape[:2] != (1, self._cars):
            raise ValueError(
                f"{type(self.policy).__name__} gave actions of shape {actions.shape} for one match and "
                f"{self._cars} cars, expected (1, {self._cars}) or (1, {self._cars}, k)"
            )
        source = type(self._calls.parts.parser).__name__
        plans: list[np.ndarray | None] = []
        for given in self._calls.parse(actions):
            try:
                plans.append(checked_plan(given, self._tick_skip, source))
            except ControlsError as error:
                if refused is None or self._cars == 1:
                    raise
                refused.append(error)
                plans.append(None)
        rows = [plan for plan in plans if plan is not None]
        if not rows:
            raise ControlsError(f"{source} gave no car any control rows; {refused[0] if refused else ''}")
        if len({len(plan) for plan in rows}) > 1:
            raise ValueError(
                f"{source} gave {[len(plan) for plan in rows]} ticks for {self.agents}, expected the same "
                f"number for all cars of a step"
            )
        if len(rows) < len(plans):
            neutral = NEUTRAL[None].repeat(len(rows[0]), axis=0)
            return [neutral if plan is None else plan for plan in plans]
        return rows

    def judge(self) -> None:
        """Ask conditions and rewards about the latest step, and show its end to the renderer."""
        verdict, returns = self._calls.judge(), self.report.returns
        for agent, reward in verdict.rewards.items():
            returns[agent] = returns.get(agent, 0.0) + float(reward)
        self.report = replace(verdict, returns=returns)
        self._calls.render()

    def close(self) -> None:
        """Close the renderer."""
        self._calls.close()
