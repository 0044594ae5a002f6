"""Play and learn with RLlib in the way of the single machine: its env runner, and its PPO learner."""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core.columns import Columns
from ray.rllib.utils.metrics import NUM_AGENT_STEPS_SAMPLED
from torch import Tensor, nn

from rlgym_bridge.components.user_errors import explain_error
from rlgym_bridge.training.learner import ADAM_EPS, Diverged
from rlgym_bridge.training.rllib.match_runner import NOBODY, MatchRunner
from rlgym_bridge.training.running_scale import RunningScale
from rlgym_bridge.training.selfplay.matches import SelfPlayMatches
from rlgym_bridge.training.selfplay.opponents import cars_of_sides, opponent_sides, snapshot_sides

MAIN: Final = "main"
SNAPSHOT: Final = "snapshot"
"""Modules: the policy in training, and the older version that it meets in this iteration."""

_RLLIBS: Final = {
    "policy_loss": ("policy_loss", 1.0), "entropy": ("entropy", 1.0),
    "explained_variance": ("vf_explained_var", 1.0),
    "value_loss": ("vf_loss", 0.5),  # half the squared error is what is learned from
}  # fmt: skip
"""Statistics that RLlib finds, by our names; and what to multiply them by."""


class SelfPlayLearner(PPOTorchLearner):
    """Adam with the same epsilon, gradients of policy and critic shortened each by itself.

    Attributes:
        stats: Means over the minibatches of the last update, by the names of `runs.progress.COLUMNS`.
    """

    _critic_alone = False

    def build(self) -> None:
        """Make module and optimizer."""
        super().build()
        self.stats: dict[str, float] = {}
        self._noted: dict[str, list[float]] = {}

    def prepare(self, rate: float, critic_alone: bool) -> None:
        """Set what an iteration learns with: the learning rate, and whether the policy stays as it is."""
        for group in self.get_optimizer(MAIN).param_groups:
            group["lr"] = rate
        self._critic_alone = critic_alone

    def take(self, states: Mapping[str, Any], optimizer: Any = None) -> None:
        """Set weights of modules, and what Adam has gathered, as `Adam.state_dict()["state"]`."""
        for name, state in states.items():
            self.module[name].unwrapped().load_state_dict(
                {key: torch.as_tensor(array) for key, array in state.items()}, strict=False
            )
        if optimizer is not None:
            adam = self.get_optimizer(MAIN)
            adam.load_state_dict({"state": optimizer, "param_groups": adam.state_dict()["param_groups"]})

    def give(self) -> tuple[dict[str, Any], Any]:
        """Return the weights of the policy in training and its critic, and what Adam has gathered."""
        state = self.module[MAIN].unwrapped().state_dict()
        weights = {name: tensor.cpu().numpy() for name, tensor in state.items()}
        return weights, self.get_optimizer(MAIN).state_dict()["state"]

    def update(self, *given: Any, **named: Any) -> Any:
        """Learn from episodes; the arguments are RLlib's."""
        started = time.perf_counter()
        self._noted = {}
        found = super().update(*given, **named)
        self.stats = {name: sum(values) / len(values) for name, values in self._noted.items()}
        self.stats["learn_seconds"] = time.perf_counter() - started
        return found

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Make the optimizer of a module."""
        module = self.module[module_id].unwrapped()
        parameters = list(module.policy.parameters()) + list(module.critic.parameters())
        optimizer = torch.optim.Adam(parameters, eps=ADAM_EPS)
        self.register_optimizer(
            module_id=module_id, optimizer=optimizer, params=parameters, lr_or_lr_schedule=config.lr
        )

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Mapping[str, Any], fwd_out: Mapping[str, Any]
    ) -> Tensor:
        """Return RLlib's loss, a scalar, and note the divergence from the policy that collected the batch."""
        loss: Tensor = super().compute_loss_for_module(
            module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
        )
        with torch.no_grad():
            module, outputs = self.module[module_id].unwrapped(), fwd_out[Columns.ACTION_DIST_INPUTS]
            now = module.get_train_action_dist_cls().from_logits(outputs).logp(batch[Columns.ACTIONS])
            change = now - batch[Columns.ACTION_LOGP]
            ratios = change.exp()
            mask = batch.get(Columns.LOSS_MASK)
            share = (lambda values: values.mean()) if mask is None else (lambda values: values[mask].mean())
            # Of the divergence from the policy that played, the estimate that is never below 0.
            self._note("uniform_divergence", share(module.policy.divergence_from_uniform(outputs)))
            self._note("kl", share(ratios - 1 - change))
            self._note("clip_fraction", share(((ratios - 1).abs() > config.clip_param).float()))
        for ours, (theirs, factor) in _RLLIBS.items():
            self._note(ours, factor * torch.as_tensor(self.metrics.peek((module_id, theirs))).detach())
        return loss

    def postprocess_gradients_for_module(
        self, *, module_id: str, config: Any = None, module_gradients_dict: Mapping[Any, Tensor]
    ) -> dict[Any, Tensor]:
        """Clip the norm of each network's gradient; raise `Diverged` where one is not finite."""
        found = dict(module_gradients_dict)
        module = self.module[module_id].unwrapped()
        for name, network in (("policy", module.policy), ("critic", module.critic)):
            mine = [ref for ref in map(self.get_param_ref, network.parameters()) if ref in found]
            gradients = [found[ref] for ref in mine]
            norm = nn.utils.get_total_norm(gradients)
            if not norm.isfinite():
                raise Diverged(f"the gradient of the {name} is not finite")
            factor = min(1.0, config.grad_clip / (float(norm) + 1e-6))
            found |= {ref: gradient * factor for ref, gradient in zip(mine, gradients, strict=True)}
            self._note(f"{name}_gradient", norm)
            if name == "policy" and self._critic_alone:
                found |= {ref: torch.zeros_like(found[ref]) for ref in mine}
        return found

    def _note(self, name: str, value: Any) -> None:
        self._noted.setdefault(name, []).append(float(value))


_FULL: Final = 2**40  # steps


class SelfPlayRunner(MatchRunner):
    """Plays the policy against itself, an older version, and opponents; `env_config` holds `settings`."""

    _fault = ""

    def make_matches(self, matches: int) -> Any:
        """Return the matches of a run."""
        settings = self.config.env_config["settings"]
        seats = np.full((matches, settings.cars), MAIN, object)
        seats[cars_of_sides(snapshot_sides(settings), settings)] = SNAPSHOT
        for sides in opponent_sides(settings).values():
            seats[cars_of_sides(sides, settings)] = NOBODY
        self._seats: list[list[str]] = seats.tolist()
        self._steps = settings.rollout_steps * int((seats == MAIN).sum())
        if self.worker_index:  # its errors are told by who trains
            logging.getLogger("ray.rllib").setLevel(logging.CRITICAL)
        self._scale: RunningScale | None = None
        return SelfPlayMatches(settings)

    def modules_of(self, match: int, episode: Any) -> Sequence[str]:
        """Return who plays each car of a match."""
        return self._seats[match]

    def sample(self, **how: Any) -> list[Any]:
        """Play `rollout_steps` steps of every match, or what RLlib's own arguments say."""
        how = how or {"num_timesteps": self._steps}
        try:
            episodes: list[Any] = super().sample(**how)
        except (Exception, SystemExit) as error:
            # Raised here it would end this process, and RLlib begin another one for ever. A batch that seems
            # full lets the one who trains ask what happened.
            self._fault = explain_error(error.__cause__ or error)
            for agent in self.env.agents:  # RLlib adds up all; one without any is nan
                self.metrics.log_value((NUM_AGENT_STEPS_SAMPLED, agent), _FULL, reduce="sum")
            return []
        if self.config.env_config["settings"].normalise_obs:
            # The last observation of an episode was not acted on.
            seen = [one.observations.data[:-1] for many in episodes for one in many.agent_episodes.values()]
            obs = np.concatenate(seen)
            self._scale = self._scale or RunningScale.of_size(obs.shape[1])
            self._scale.update(obs)
        return episodes

    def renew_opponents(self) -> None:
        """Let opponents that are training runs play their newest checkpoints from now on."""
        try:
            self.env.env.renew_opponents()
        except (Exception, SystemExit) as error:  # told by `report`, see `sample`
            self._fault = explain_error(error)

    def take(self, states: Mapping[str, Any]) -> None:
        """Set weights of modules."""
        for name, state in states.items():
            tensors = {key: torch.as_tensor(array) for key, array in state.items()}
            self.module[name].load_state_dict(tensors, strict=False)

    def report(self) -> tuple[str, RunningScale | None]:
        """Return what stopped a sample since the last call, or "", and mean and deviation of observations."""
        found = self._fault, self._scale
        self._fault, self._scale = "", None
        return found
