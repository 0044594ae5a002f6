"""Define the default components of a run: observation, actions, rewards, and how episodes begin and end.

For a bot of one's own `components = "my_bot"` in its settings names a module that has one or more of these
functions anew.
"""

from typing import Any

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.conditions import (
    AnyCondition,
    GoalCondition,
    NoTouchTimeoutCondition,
    TimeoutCondition,
)
from rlgym_bridge.components.initial_states import mix_initial_states
from rlgym_bridge.components.mutators import KickoffMutator, RandomStateMutator, WeightedMutator
from rlgym_bridge.components.relative_obs import RelativeObs, TeamObs
from rlgym_bridge.components.rewards import WeightedSum
from rlgym_bridge.components.spec import ComponentSpec
from rlgym_bridge.policy.shape import ATTENTION
from rlgym_bridge.training.settings import REWARDS, TrainingSettings

__all__ = ["conditions", "mutator", "obs", "parser", "reward"]


def obs(settings: TrainingSettings) -> ComponentSpec:
    """Return what a car sees; with several team sizes, or attention, it has room for the largest team."""
    ahead: dict[str, Any] = {"ball_ahead": list(settings.ball_ahead)} if settings.ball_ahead else {}
    if len(settings.sizes) == 1 and settings.network != ATTENTION:
        return ComponentSpec.of(RelativeObs, zero_padding=None, **ahead)
    return ComponentSpec.of(TeamObs, zero_padding=max(map(max, settings.sizes)), **ahead)


def parser(settings: TrainingSettings) -> ComponentSpec:
    """Return what an action means: one of 90 rows of controls, held for `tick_skip` ticks.

    `MultiDiscreteAction` or `ContinuousAction` in place of `LookupTableAction` is all that another kind of
    policy needs.
    """
    return ComponentSpec.of(RepeatAction, ComponentSpec.of(LookupTableAction), repeats=settings.tick_skip)


def reward(settings: TrainingSettings) -> Any:
    """Return what is rewarded: an RLGym reward function."""
    weights = {name: getattr(settings, name) for name in REWARDS}
    # What counts nothing is not computed.
    weighted = [(REWARDS[name](), weight) for name, weight in weights.items() if weight]
    return WeightedSum(weighted, settings.team_spirit, settings.zero_sum)


def conditions(settings: TrainingSettings) -> tuple[Any, Any]:
    """Return what ends an episode: the termination and the truncation condition."""
    no_touch = NoTouchTimeoutCondition(settings.no_touch_seconds)
    timeout = TimeoutCondition(settings.episode_seconds, settings.task_seconds or None)
    return GoalCondition(), AnyCondition(no_touch, timeout)


def mutator(settings: TrainingSettings) -> Any:
    """Return what begins an episode: an RLGym state mutator."""
    if settings.initial_states:
        return mix_initial_states(settings.initial_states)
    return WeightedMutator(
        [(KickoffMutator(), settings.kickoff_share), (RandomStateMutator(), 1 - settings.kickoff_share)]
    )
