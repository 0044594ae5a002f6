"""RLlib on plain RLGym: its own env runner, a match an environment, a car an agent."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from rlgym.api import RLGym
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.done_conditions import (
    AnyCondition,
    GoalCondition,
    NoTouchTimeoutCondition,
    TimeoutCondition,
)
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import CombinedReward, GoalReward, TouchReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

from rlgym_bridge.training.rllib.module import PolicyModule

_AGENTS = ["blue-0", "orange-0"]
_OBS_SIZE, _ACTIONS = 92, 90


class RLGymEnv(MultiAgentEnv):
    """A match of RLGym's own components."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.possible_agents = self.agents = _AGENTS
        self.observation_spaces = dict.fromkeys(_AGENTS, gym.spaces.Box(-np.inf, np.inf, (_OBS_SIZE,)))
        self.action_spaces = dict.fromkeys(_AGENTS, gym.spaces.Discrete(_ACTIONS))
        self._env: RLGym[Any, Any, Any, Any, Any, Any, Any, Any] = RLGym(
            state_mutator=MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator()),
            obs_builder=DefaultObs(zero_padding=None),
            action_parser=RepeatAction(LookupTableAction(), config["tick_skip"]),
            reward_fn=CombinedReward((GoalReward(), config["goal"]), (TouchReward(), config["touch"])),
            transition_engine=RocketSimEngine(rlbot_delay=True),
            termination_cond=GoalCondition(),
            truncation_cond=AnyCondition(
                NoTouchTimeoutCondition(config["no_touch_seconds"]),
                TimeoutCondition(config["episode_seconds"]),
            ),
        )

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin an episode."""
        return _shown(self._env.reset()), {}

    def step(self, actions: dict[str, Any]) -> Any:
        """Play one decision."""
        given = {agent: np.array([action]) for agent, action in actions.items()}
        obs, rewards, terminated, truncated = self._env.step(given)
        flags = [{**one, "__all__": any(one.values())} for one in (terminated, truncated)]
        return _shown(obs), {agent: float(reward) for agent, reward in rewards.items()}, *flags, {}


def _shown(obs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {agent: np.asarray(one, np.float32) for agent, one in obs.items()}


def main(settings: dict[str, Any], log: Path) -> None:
    """Train; the log gets agent steps and seconds at the end of every iteration."""
    ray.init(
        "local", num_cpus=max(2, settings["runners"]), include_dashboard=False, _node_ip_address="127.0.0.1",
        logging_level="ERROR", log_to_driver=False, object_store_memory=512 << 20,
    )  # fmt: skip
    import torch

    torch.set_num_threads(settings["threads"])
    spec = RLModuleSpec(module_class=PolicyModule, model_config={})
    algorithm = (
        PPOConfig()
        .environment(RLGymEnv, env_config=settings, disable_env_checking=True)
        .env_runners(num_env_runners=settings["runners"], num_envs_per_env_runner=settings["matches"])
        .multi_agent(
            policies={"main"}, policy_mapping_fn=lambda *_, **__: "main", count_steps_by="agent_steps"
        )
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={"main": spec}))
        .learners(num_learners=0)
        .training(
            gamma=settings["gamma"],
            lambda_=settings["gae_lambda"],
            lr=settings["learning_rate"],
            train_batch_size_per_learner=settings["batch"],
            minibatch_size=settings["minibatch"],
            num_epochs=settings["epochs"],
            clip_param=settings["clip"],
            entropy_coeff=settings["entropy_coefficient"],
            vf_loss_coeff=0.5,
            vf_clip_param=float("inf"),
            use_kl_loss=False,
            grad_clip=settings["max_grad_norm"],
        )
        .build_algo()
    )
    began, steps = time.perf_counter(), 0
    with log.open("w") as file:
        for _ in range(settings["iterations"]):
            sampled = algorithm.train()["env_runners"]["num_agent_steps_sampled"]
            steps += int(sum(sampled.values()))
            file.write(json.dumps([steps, time.perf_counter() - began]) + "\n")
            file.flush()
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
