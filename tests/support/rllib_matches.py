"""Matches as RLlib plays them, and its settings."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")
from gymnasium import spaces
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec

from rlgym_bridge.components.actions import (
    ContinuousAction,
    LookupTableAction,
    MultiDiscreteAction,
    RepeatAction,
)
from rlgym_bridge.components.conditions import TimeoutCondition
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutators import RandomStateMutator
from rlgym_bridge.components.reward_base import BatchReward
from rlgym_bridge.components.spec import Components
from rlgym_bridge.state import MatchState
from rlgym_bridge.training.rllib.env import MatchEnv
from rlgym_bridge.training.rllib.module import PolicyModule

PARSERS = {"Discrete": LookupTableAction, "MultiDiscrete": MultiDiscreteAction, "Box": ContinuousAction}


SPACES = {
    "Discrete": spaces.Discrete(90),
    "MultiDiscrete": spaces.MultiDiscrete([3, 3, 3, 3, 3, 2, 2, 2]),
    "Box": spaces.Box(-1.0, 1.0, (8,)),
}


DECISIONS = 9  # of an episode: 0.6 s of 8 ticks each


each_parser = pytest.mark.parametrize("kind", PARSERS)


class Place(BatchReward):
    """Another number for every car and step: how far along the field it is."""

    def reward_batch(self, before: MatchState, after: MatchState, *_: Any) -> np.ndarray:
        return after.car_position[..., 1] / 1000


def timeout() -> TimeoutCondition:
    return TimeoutCondition(DECISIONS * 8 / 120)


def parts(kind: str = "Discrete", **changes: Any) -> Components:
    made = {
        "obs_builder": DefaultObs(zero_padding=None),
        "parser": RepeatAction(PARSERS[kind](), 8),
        "reward_fn": Place(),
        "truncation_cond": timeout(),
        "state_mutator": RandomStateMutator(),
    }
    return Components(**made | changes)


def config_of(kind: str = "Discrete", team_size: int = 1, **changes: Any) -> dict[str, Any]:
    return {"components": lambda: parts(kind, **changes), "team_sizes": (team_size, team_size)}


def by_team(agent: str, episode: Any, **_: Any) -> str:
    return agent.split("-")[0]


def ppo(
    kind: str = "Discrete",
    matches: int = 2,
    env: Mapping[str, Any] | None = None,
    who: Callable[..., str] = by_team,
    trained: Any = None,
    by: str = "env_steps",
    module: RLModuleSpec | None = None,
    **runners: Any,
) -> PPOConfig:
    """Return a config whose modules are called blue and orange; they play their team."""
    module = module or RLModuleSpec(
        module_class=PolicyModule, model_config={"policy_layers": (8,), "critic_layers": (8,)}
    )
    specs = {"blue": module, "orange": module}
    return (
        PPOConfig()
        .environment(MatchEnv, env_config=env or config_of(kind), disable_env_checking=True)
        .multi_agent(policies=set(specs), policy_mapping_fn=who, policies_to_train=trained, count_steps_by=by)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=matches, **runners)
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=specs))
        .debugging(seed=3)
    )
