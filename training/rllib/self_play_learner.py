"""RLlib's PPO learner with the details of the single-machine one."""

import time
from collections.abc import Mapping
from typing import Any, Final

import torch
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core.columns import Columns
from torch import Tensor, nn

from rlgym_bridge.training.learner import ADAM_EPS, Diverged
from rlgym_bridge.training.rllib.self_play_runner import MAIN

_RLLIBS: Final = {
    "policy_loss": ("policy_loss", 1.0),
    "value_loss": ("vf_loss", 0.5),  # half the squared error is what is learned from
    "entropy": ("entropy", 1.0),
    "explained_variance": ("vf_explained_var", 1.0),
}
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
        """Return RLlib's loss, a scalar, and note the divergence from the policy that collected the batch.

        Arguments are RLlib's; tensors of the batch have shape (steps, ...).
        """
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
        """Clip the norm of each network's gradient; gradients have the shapes of their parameters.

        Raises:
            Diverged: A gradient is not finite.
        """
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
