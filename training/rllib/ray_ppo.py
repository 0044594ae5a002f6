"""The same training on a Ray cluster: RLlib's PPO plays and learns, everything else is the single machine's.

    PPOLearner -> RLlib's learner -> env runners play -> episodes -> RLlib's learner -> ... -> PPOLearner

Checkpoints, progress and the older versions of the policy are those of `training/runs/run.py`, so that either
engine goes on with a run of the other.
"""

import math
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, Final, Self

import numpy as np
import ray
import torch
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rlgym_bridge.policy.shape import PERCEPTRON
from rlgym_bridge.training.collector import CollectorDied
from rlgym_bridge.training.learner import Diverged, PPOLearner
from rlgym_bridge.training.processes import count_usable_cores
from rlgym_bridge.training.ray_cluster import cluster
from rlgym_bridge.training.rllib.env import MatchEnv
from rlgym_bridge.training.rllib.match_runner import COUNTS
from rlgym_bridge.training.rllib.module import PolicyModule
from rlgym_bridge.training.rllib.self_play import MAIN, SNAPSHOT, SelfPlayLearner, SelfPlayRunner
from rlgym_bridge.training.running_scale import RunningScale
from rlgym_bridge.training.runs.run import Iteration, ReadAgain, Summary, run
from rlgym_bridge.training.selfplay.opponents import newest_opponents
from rlgym_bridge.training.selfplay.snapshots import tensors_of
from rlgym_bridge.training.settings import SettingsError, TrainingSettings
from rlgym_bridge.user_input.text_files import toml_value

_PATIENCE: Final = 60.0  # s without any env runner
_PAUSE: Final = 1.0  # s
_ONLY_LOCAL: Final[Mapping[str, Any]] = {
    "uniform_coefficient": 0.0, "critic_learning_rate": 0.0, "critic_learning_rate_schedule": "same",
    "standardize_returns": False, "value_clip": 0.0, "target_kl": 0.0, "teacher": "", "overlap": False,
    "network": PERCEPTRON, "mirror": False,
}  # fmt: skip
"""Settings that only the local engine has, with what RLlib leaves them at."""


def main(
    settings: TrainingSettings,
    resume: bool = False,
    quiet: bool = False,
    change_simulator: bool = False,
    rewards: bool = False,
    read_again: ReadAgain | None = None,
    address: str | None = None,
) -> Summary:
    """Train with RLlib; arguments and errors are those of `rlgym_bridge.training.runs.run.run`.

    `collectors` are env runners. `read_again` is not used: changes act at `--resume`. `address` is that of a
    Ray cluster, `"auto"` for the one of this machine; None makes one that listens on loopback alone and ends
    with the run.
    """
    if len(settings.sizes) > 1:
        raise SettingsError(
            f"team_sizes is {toml_value(settings.team_sizes)}, and --engine rllib trains one size; expected "
            "one, or --engine local"
        )
    for name, default in _ONLY_LOCAL.items():
        if (value := getattr(settings, name)) not in (default, "auto"):
            raise SettingsError(
                f"{name} is {toml_value(value)}, which --engine rllib does not have; expected "
                f"{toml_value(default)}, or --engine local"
            )
    return run(
        settings, partial(OnCluster, address=address, quiet=quiet), resume, quiet, change_simulator, rewards
    )


class OnCluster:
    """RLlib's PPO as an engine; a context manager. Checkpoints are made of `learner`; see `main`."""

    def __init__(self, learner: PPOLearner, address: str | None = None, quiet: bool = True) -> None:
        self._learner, self._open = learner, ExitStack()
        settings = learner.settings
        if learner.shape.masked:
            raise SettingsError(
                "parser or shared info have action masks, which --engine rllib does not know; expected "
                "--engine local"
            )
        if not quiet:
            print("Ray begins its processes, which takes a while", flush=True)
        with ExitStack() as opening:
            processors = opening.enter_context(cluster(address, settings.collectors))
            self.count = settings.collectors or processors
            if self.count > processors:
                raise SettingsError(
                    f"collectors is {self.count}, and the cluster has {processors} processors, one for each; "
                    "set it to fewer, or 0"
                )
            torch.set_num_threads(settings.threads or count_usable_cores())
            try:
                self._algorithm: PPO = _config(learner, self.count).build_algo()
            except (ray.exceptions.RayActorError, IndexError) as error:  # IndexError: all of them
                raise CollectorDied(
                    "env runners could not make their matches; the log above says why"
                ) from error
            opening.callback(self._algorithm.stop)
            self._open = opening.pop_all()

    def __enter__(self) -> Self:
        """Give RLlib what the learner holds."""
        learner = self._learner
        state = {
            f"{name}.{key}": tensor.cpu().numpy()
            for name in ("policy", "critic")
            for key, tensor in getattr(learner, name).state_dict().items()
        }
        self._set({MAIN: state | self._scale()}, learner.optimizer.state_dict()["state"])
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def restart(self) -> None:
        """Renew opponents; matches go on."""
        if newest_opponents(self._learner.settings):
            self.ask_runners(lambda runner: runner.renew_opponents())

    def renew(self, settings: TrainingSettings) -> None:
        """Refuse other settings with a SettingsError: the env runners of a cluster keep theirs."""
        raise SettingsError("--engine rllib takes no other settings while it runs")

    def iterate(self, older: int) -> Iteration:
        """Play one batch, also against this older version, and learn from it; errors are those of `run`."""
        learner = self._learner
        self._set({SNAPSHOT: _module_state(learner, learner.snapshots.rows[older])})
        rate, _ = learner.set_learning_rates()
        alone = bool(learner.settings.start_from) and learner.steps < learner.settings.critic_alone
        _of_learners(self._algorithm, lambda one: one.prepare(rate, alone))
        started = time.perf_counter()
        steps, sampled, scales = self._played()
        seconds = time.perf_counter() - started
        stats = {"learning_rate": rate, **_of_learners(self._algorithm, lambda one: one.stats)}
        wrong = [name for name, value in stats.items() if not np.isfinite(value)]
        if wrong:
            raise Diverged(f"{', '.join(wrong)} is not finite after {learner.steps} steps")
        stats["collect_seconds"] = seconds - stats["learn_seconds"]
        for scale in scales:
            learner.scale.merge(scale)
        if learner.settings.normalise_obs:
            self._set({MAIN: self._scale()})
        counts = {name: float(value) for name, value in sampled[COUNTS].items()}
        return Iteration(steps, counts, stats)

    def _played(self) -> tuple[int, Mapping[str, Any], list[RunningScale]]:
        """Play and learn; return agent steps, what RLlib tells of play, and how observations were scaled."""
        until = time.monotonic() + _PATIENCE
        while True:
            sampled = self._algorithm.train().get("env_runners", {})
            steps = sampled.get("num_module_steps_sampled", {}).get(MAIN, 0)
            steps = int(steps) if steps == steps else 0  # nan where nobody gave anything
            reports = self.ask_runners(lambda runner: runner.report())
            for fault in (fault for fault, _ in reports if fault):
                raise CollectorDied(f"an env runner stopped: {fault}")
            if steps:
                return steps, sampled, [scale for _, scale in reports if scale is not None]
            if time.monotonic() > until:
                raise CollectorDied(f"all env runners have died, and none came back in {_PATIENCE:.0f} s")
            time.sleep(_PAUSE)  # Ray begins others in their place

    def bring(self) -> None:
        """Write networks and optimizer into the learner."""
        weights, optimizer = _of_learners(self._algorithm, lambda one: one.give())
        learner = self._learner
        for name in ("policy", "critic"):
            own = {key: torch.tensor(weights[f"{name}.{key}"]) for key in getattr(learner, name).state_dict()}
            getattr(learner, name).load_state_dict(own)
        groups = learner.optimizer.state_dict()["param_groups"]
        learner.optimizer.load_state_dict({"state": optimizer, "param_groups": groups})

    def _scale(self) -> dict[str, np.ndarray]:
        """Return the normalisation as PolicyModule holds it; nothing where there is none."""
        clip = self._learner.shape.obs_clip
        if clip is None:
            return {}
        scale = self._learner.scale.normalisation(clip)
        return {"obs_mean": np.array(scale.mean, np.float32), "obs_std": np.array(scale.std, np.float32)}

    def _set(self, states: Mapping[str, Mapping[str, np.ndarray]], optimizer: Any = None) -> None:
        """Set weights of modules, everywhere."""
        shared = ray.put(dict(states))
        _of_learners(self._algorithm, lambda one: one.take(states, optimizer))
        self.ask_runners(lambda runner: runner.take(ray.get(shared)))

    def ask_runners(self, ask: Any) -> list[Any]:
        """Ask all env runners that can answer."""
        return list(self._algorithm.env_runner_group.foreach_env_runner(ask, local_env_runner=False))


def _config(learner: PPOLearner, runners: int) -> PPOConfig:
    settings, shape = learner.settings, learner.shape
    names = "policy_layers", "critic_layers", "activation", "layer_norm"
    networks = {name: getattr(settings, name) for name in names} | {"obs_clip": shape.obs_clip}
    spec = RLModuleSpec(module_class=PolicyModule, model_config=networks)
    cuda = learner.device.type == "cuda"
    seats = runners * int(learner.learned.sum())
    batch = seats * settings.rollout_steps
    # As many as on one machine. RLlib adds a row at the end of each car's part, to know what its last state
    # is worth, and begins anew where the last minibatch is not full.
    minibatches = max(1, round(batch / settings.minibatch))
    return (
        PPOConfig()
        .environment(MatchEnv, env_config={"settings": settings}, disable_env_checking=True)
        .env_runners(
            env_runner_cls=SelfPlayRunner,
            num_env_runners=runners,
            num_envs_per_env_runner=settings.matches,
            sample_timeout_s=None,  # of the slowest components too; who has died is noticed anyway
        )
        .multi_agent(
            policies={MAIN, SNAPSHOT},
            policies_to_train=[MAIN],
            policy_mapping_fn=_nobody_asks,
            count_steps_by="agent_steps",
        )
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={MAIN: spec, SNAPSHOT: spec}))
        .learners(num_learners=0, num_gpus_per_learner=int(cuda), learner_class=SelfPlayLearner)
        .training(
            gamma=settings.gamma,
            lambda_=settings.gae_lambda,
            lr=settings.learning_rate,
            train_batch_size_per_learner=batch,
            minibatch_size=math.ceil((batch + seats) / minibatches),
            num_epochs=settings.epochs,
            clip_param=settings.clip,
            entropy_coeff=settings.entropy_coefficient,
            vf_loss_coeff=0.5,
            vf_clip_param=float("inf"),
            use_kl_loss=False,
            grad_clip=settings.max_grad_norm,
        )
        .fault_tolerance(
            restart_failed_env_runners=True,
            delay_between_env_runner_restarts_s=1.0,
            env_runner_health_probe_timeout_s=1.0,  # every iteration waits for a machine that is gone
        )
        .experimental(_validate_config=False)  # a minibatch with those rows may be larger than a batch
        .debugging(seed=(settings.seed + learner.steps) % 2**31)  # a resumed run plays other matches
    )


def _nobody_asks(agent: str, episode: Any, **more: Any) -> str:
    return MAIN  # SelfPlayRunner knows by the seat


def _module_state(learner: PPOLearner, row: np.ndarray) -> dict[str, np.ndarray]:
    """Return the state of a PolicyModule, less its critic, that plays a policy of `selfplay.snapshots`."""
    tensors = tensors_of(learner.shape, row)
    scale = {name: tensors.pop(name) for name in ("obs_mean", "obs_std")}
    state = {f"policy.{name}": tensor for name, tensor in tensors.items()}
    return state if learner.shape.obs_clip is None else state | scale


def _of_learners(algorithm: PPO, ask: Any) -> Any:
    """Ask all of RLlib's learners, and return what the first one says."""
    answers = [answer.get() for answer in algorithm.learner_group.foreach_learner(ask)]
    return answers[0]
