"""One training run of rlgym-learn: `python rlgym_learn_peer.py SETTINGS.json LOG`, see `ppo.py` beside this.

Run by the interpreter of the peer's own environment, with a terminal as its input. SETTINGS.json holds
`TrainingSettings`, the batch and how many processes play; it may have `buffer`, steps that are learned from
again, and `touches`, the beginning of file names: then each process adds lines `[time, agent steps, touches]`
to a file of its own. Each iteration adds a line `[agent steps so far, seconds]` to LOG.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

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

_TOUCH_GAP = 30  # ticks after a contact from which on the next one is a new touch, as our trainer counts
_LINE_SECONDS = 1.0  # between lines of touches


def _obs_size(settings: dict[str, Any]) -> int:
    return 52 + 20 * sum(settings["team_sizes"])


class _Obs(DefaultObs):
    """RLGym's, but its size is known before the first reset: rlgym-learn asks for it then."""

    def __init__(self, size: int) -> None:
        super().__init__(zero_padding=None)
        self._size = size

    def get_obs_space(self, agent: Any) -> tuple[str, int]:
        return "real", self._size


class _CountedReward(CombinedReward):
    """A reward that counts touches, and writes them to a file of the process."""

    def __init__(self, prefix: str, ticks: int, *parts: Any) -> None:
        super().__init__(*parts)
        self._file = Path(f"{prefix}{os.getpid()}")
        self._ticks, self._steps, self._touches, self._next = ticks, 0, 0, 0.0
        self._since: dict[Any, int] = {}  # ticks since each car's latest contact

    def reset(self, agents: list[Any], initial_state: Any, shared_info: dict[str, Any]) -> None:
        super().reset(agents, initial_state, shared_info)
        self._since = dict.fromkeys(agents, _TOUCH_GAP)

    def get_rewards(self, agents: list[Any], state: Any, *more: Any) -> dict[Any, float]:
        for agent in agents:
            self._since[agent] += self._ticks
            if state.cars[agent].ball_touches > 0:
                self._touches += self._since[agent] >= _TOUCH_GAP
                self._since[agent] = 0
        self._steps += len(agents)
        if (now := time.time()) >= self._next:
            self._next = now + _LINE_SECONDS
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"[{now}, {self._steps}, {self._touches}]\n")
        rewards: dict[Any, float] = super().get_rewards(agents, state, *more)
        return rewards


class _MakeMatch:
    """Makes a match of RLGym's own components, in the process that plays it."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings

    def __call__(self) -> RLGym:
        settings = self._settings
        parts = (GoalReward(), settings["goal"]), (TouchReward(), settings["touch"])
        prefix = settings.get("touches")
        return RLGym(
            state_mutator=MutatorSequence(FixedTeamSizeMutator(*settings["team_sizes"]), KickoffMutator()),
            obs_builder=_Obs(_obs_size(settings)),
            action_parser=RepeatAction(LookupTableAction(), settings["tick_skip"]),
            reward_fn=CombinedReward(*parts)
            if prefix is None
            else _CountedReward(prefix, settings["tick_skip"], *parts),
            transition_engine=RocketSimEngine(rlbot_delay=True),
            termination_cond=GoalCondition(),
            truncation_cond=AnyCondition(
                NoTouchTimeoutCondition(settings["no_touch_seconds"]),
                TimeoutCondition(settings["episode_seconds"]),
            ),
        )


def main(settings: dict[str, Any], log: Path) -> None:
    """Train until the last step."""
    # Not at the top: the processes that play import this file too, and need nothing of it.
    import torch
    from rlgym_learn import (
        BaseConfigModel,
        LearningCoordinator,
        LearningCoordinatorConfigModel,
        ProcessConfigModel,
    )
    from rlgym_learn_algos.logging import MetricsLogger
    from rlgym_learn_algos.ppo import (
        BasicCritic,
        DiscreteFF,
        GAETrajectoryProcessor,
        NumpyExperienceBuffer,
        PPOAgentController,
    )

    class Log(MetricsLogger):
        def collect_agent_metrics(self, data: Any) -> None:
            with log.open("a", encoding="utf-8") as file:
                file.write(f"[{data.cumulative_timesteps}, {time.perf_counter()}]\n")

        def report_metrics(self) -> None: ...

        def validate_config(self, config_obj: Any) -> None: ...

        def save_checkpoint(self, folder_path: str, file_name: str = "") -> None: ...

    torch.set_num_threads(settings["threads"])
    controller = PPOAgentController(
        lambda obs, actions, device: DiscreteFF(obs[1], actions[1], settings["policy_layers"], device),
        lambda obs, device: BasicCritic(obs[1], settings["critic_layers"], device),
        NumpyExperienceBuffer(GAETrajectoryProcessor()),
        Log(),
    )
    # An iteration plays a few steps more than it shall, so that the last one would otherwise be cut off.
    limit = settings["steps"] + settings["batch"] // 2
    config = LearningCoordinatorConfigModel(
        base_config=BaseConfigModel(
            serde_types=_wire(_obs_size(settings)), timestep_limit=limit, random_seed=settings["seed"]
        ),
        process_config=ProcessConfigModel(n_proc=settings["processes"]),
        agent_controllers_config={"PPO": _ppo(settings)},
    )
    LearningCoordinator(_MakeMatch(settings), {"PPO": controller}, config=config).start()


def _ppo(settings: dict[str, Any]) -> Any:
    """Return how it learns."""
    from rlgym_learn_algos.ppo import (
        ExperienceBufferConfigModel,
        GAETrajectoryProcessorConfigModel,
        PPOAgentControllerConfigModel,
        PPOLearnerConfigModel,
    )

    return PPOAgentControllerConfigModel(
        timesteps_per_iteration=settings["batch"],
        save_every_ts=settings["checkpoint_every"],
        learner_config=PPOLearnerConfigModel(
            n_epochs=settings["epochs"],
            # What a gradient step takes in. Its "minibatches" are parts of that, whose gradients add up.
            batch_size=settings["minibatch"],
            n_minibatches=1,
            ent_coef=settings["entropy_coefficient"],
            clip_range=settings["clip"],
            actor_lr=settings["learning_rate"],
            critic_lr=settings["critic_learning_rate"] or settings["learning_rate"],
            device="cpu",
        ),
        experience_buffer_config=ExperienceBufferConfigModel(
            max_size=settings.get("buffer", settings["batch"]),  # the batch: nothing of earlier iterations
            device="cpu",
            trajectory_processor_config=GAETrajectoryProcessorConfigModel(
                gamma=settings["gamma"],
                lmbda=settings["gae_lambda"],
                standardize_returns=settings["standardize_returns"],
            ),
        ),
    )


def _wire(obs_size: int) -> Any:
    """Return how observations and the like go between the processes."""
    import numpy as np
    from rlgym_learn import NumpySerdeConfig, PyAnySerdeType, SerdeTypesModel

    def array(kind: Any, size: int) -> Any:
        shape = NumpySerdeConfig.STATIC(shape=(size,), allocation_pool_warning_size=None)
        return PyAnySerdeType.NUMPY(kind, config=shape)

    space = PyAnySerdeType.TUPLE((PyAnySerdeType.STRING(), PyAnySerdeType.INT()))
    return SerdeTypesModel(
        agent_id_serde_type=PyAnySerdeType.STRING(),
        action_serde_type=array(np.int64, 1),
        obs_serde_type=array(np.float64, obs_size),
        reward_serde_type=PyAnySerdeType.FLOAT(),
        obs_space_serde_type=space,
        action_space_serde_type=space,
    )


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
