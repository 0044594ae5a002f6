"""Proximal policy optimisation [Schulman et al. 2017] by self-play, from top to bottom.

    policies -> collectors play -> rollouts -> batch: values, advantages -> minibatches -> policies

Shapes in comments: K collectors, T steps, C cars of all matches, L of them that are learned from, S numbers
of an observation; B = K * T * L agent steps of a batch.
"""

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from training.collector import Collectors
from training.learner import ACTIONS, ARENAS, ORDER, Diverged, PPOLearner
from training.returns import advantages
from training.runs.iteration_times import IterationTimes
from training.runs.run import Iteration, Summary, run
from training.selfplay.sides import name_car
from training.settings import TrainingSettings


def main(settings: TrainingSettings, resume: bool = False, quiet: bool = False) -> Summary:
    """Train on this machine; arguments and errors are those of `training.runs.run.run`."""
    return run(settings, Local, resume, quiet)


class Local:
    """Plays in processes of this machine and learns in this one; a context manager.

    Args:
        learner: What learns.

    Attributes:
        count: Collectors.
    """

    def __init__(self, learner: PPOLearner) -> None:
        self._learner = learner
        self._collectors = Collectors(learner.settings, learner.shape)
        self.count = self._collectors.count

    def __enter__(self) -> Self:
        """Return itself."""
        self._collectors.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """End the processes."""
        self._collectors.__exit__(kind, error, where)

    def restart(self) -> None:
        """Begin new matches; seed and steps alone decide how they begin and go on."""
        self._collectors.restart((self._learner.settings.seed, self._learner.steps, ARENAS))

    def iterate(self, older: int) -> Iteration:
        """Play one batch and learn from it.

        Args:
            older: The older version that is met.
        """
        learner, settings = self._learner, self._learner.settings
        rollouts, policies = self._collectors.arrays, self._collectors.arrays["policies"]

        # Collect: every collector plays the newest policy, in some matches against an older one.
        started = time.perf_counter()
        policies[0] = learner.packed()
        policies[1 : 1 + len(learner.snapshots.rows)] = learner.snapshots.rows
        counts = self._collectors.collect((settings.seed, learner.steps, ACTIONS), 1 + older)
        collected = time.perf_counter()

        # Learn.
        batch = batch_of(learner, rollouts)
        stats = improve(learner, batch)
        learned = time.perf_counter()
        stats |= {"collect_seconds": collected - started, "learn_seconds": learned - collected}
        times = IterationTimes.of(collected - started, learned - collected, self._collectors.seconds)
        return Iteration(len(batch.rows), counts, stats, times)

    def bring(self) -> None:
        """Do nothing: what was learned is in the learner."""


@dataclass(frozen=True)
class Batch:
    """The batch that one iteration learns from.

    Attributes:
        shown: `(K * (T + 1) * L, S)` float32, observations as the networks see them.
        rows: `(B,)` int64, rows of `shown` that were acted on. The other arrays are in this order.
        actions: `(B,)` or `(B, k)`.
        log_probs: `(B,)` float32, of the actions when they were drawn.
        gains: `(B,)` float32, advantages with mean 0 and deviation 1.
        returns: `(B,)` float32, what the critic shall say.
        explained: Share of the returns' variance that the critic knew.
    """

    shown: Tensor
    rows: Tensor
    actions: Tensor
    log_probs: Tensor
    gains: Tensor
    returns: Tensor
    explained: float


def batch_of(learner: PPOLearner, rollouts: Any) -> Batch:
    """Make a batch of rollouts.

    Args:
        learner: As it was when they were played.
        rollouts: Arrays by name, see `training.shared.rollout_layout`; only read.

    Raises:
        Diverged: A reward or an advantage is not finite.
    """
    settings, learned = learner.settings, learner.learned
    _check_rewards(settings, rollouts["rewards"])
    seen = rollouts["obs"][:, :, learned]  # (K, T + 1, L, S) float32
    rewards = rollouts["rewards"][:, :, learned]  # (K, T, L) float32
    cut = rollouts["truncated"] & learned  # (K, T, C) bool
    truncated = cut[:, :, learned]  # (K, T, L) bool
    terminated = rollouts["terminated"][:, :, learned]  # (K, T, L) bool
    shown = learner.shown(seen).flatten(0, 2)  # (K * (T + 1) * L, S) float32
    numbers = np.arange(len(shown)).reshape(seen.shape[:3])[:, :-1]  # (K, T, L) int64
    rows = learner.tensor(numbers.reshape(-1))  # (B,) int64
    actions = learner.tensor(rollouts["actions"][:, :, learned]).flatten(0, 2)  # (B[, k])

    # What an action led to is worth nothing more after a termination; after a truncation it is worth
    # what the last observation of its own episode is, not the first one of the next.
    values = learner.values(shown).reshape(seen.shape[:3])  # (K, T + 1, L) float32
    next_values = values[:, 1:].copy()  # (K, T, L) float32
    next_values[terminated] = 0.0
    if truncated.any():
        next_values[truncated] = learner.values(learner.shown(rollouts["final_obs"][cut]))
    values = values[:, :-1]  # (K, T, L) float32
    by_step = (a.swapaxes(0, 1) for a in (rewards, values, next_values, terminated | truncated))
    found = advantages(settings.gamma, settings.gae_lambda, *by_step).swapaxes(0, 1)  # (K, T, L) float32
    if not np.isfinite(found).all():
        raise Diverged(f"an advantage is not finite after {learner.steps} steps: the critic's values diverge")
    returns = found + values  # (K, T, L) float32
    gains = (found - found.mean()) / (found.std() + 1e-8)  # (K, T, L) float32

    @torch.no_grad()
    def log_probs_of(part: Tensor) -> Tensor:
        return learner.policy.log_probs_and_entropies(shown[rows[part]], actions[part])[0]

    log_probs = torch.cat(learner.in_parts(log_probs_of, torch.arange(len(rows), device=learner.device)))
    learner.take_in(seen[:, :-1].reshape(-1, seen.shape[-1]))
    return Batch(
        shown, rows, actions, log_probs,
        learner.tensor(gains.reshape(-1)), learner.tensor(returns.reshape(-1)),
        explained=1 - float(found.var()) / max(float(returns.var()), 1e-12),
    )  # fmt: skip


def improve(learner: PPOLearner, batch: Batch) -> dict[str, float]:
    """Improve policy and critic by some epochs over a batch; return statistics.

    Raises:
        Diverged: A gradient is not finite; it was not applied.
    """
    settings, size = learner.settings, len(batch.rows)
    rate = learner.set_learning_rate()
    order = torch.Generator().manual_seed(int(learner.random(ORDER).integers(2**62)))
    minibatches = max(1, round(size / settings.minibatch))
    totals = torch.zeros(5, device=learner.device)  # policy loss, value loss, entropy, KL, share clipped
    norms = np.zeros(2)  # of the gradients of policy and critic
    for epoch in range(settings.epochs):
        shuffled = torch.randperm(size, generator=order).to(learner.device)  # (B,) int64
        for number, minibatch in enumerate(shuffled.tensor_split(minibatches)):

            def learn_from(part: Tensor, rows: int = len(minibatch)) -> tuple[list[Tensor], Tensor]:
                return gradients_of(learner, batch, part, rows)

            gradients, sums = zip(*learner.in_parts(learn_from, minibatch), strict=True)
            totals += torch.stack(sums).sum(0)
            where = f"epoch {epoch}, minibatch {number} after {learner.steps} steps"
            norms += learner.descend([sum(found) for found in zip(*gradients, strict=True)], where)
    names = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction")
    means = (totals / (settings.epochs * size)).tolist()
    norms /= settings.epochs * minibatches
    return dict(zip(names, means, strict=True)) | {
        "explained_variance": batch.explained,
        "policy_gradient": float(norms[0]),
        "critic_gradient": float(norms[1]),
        "learning_rate": rate,
    }


def gradients_of(learner: PPOLearner, batch: Batch, part: Tensor, rows: int) -> tuple[list[Tensor], Tensor]:
    """Return what a part of a minibatch adds to the gradients and to the statistics.

    Args:
        learner: Its networks are only read.
        batch: Of the iteration.
        part: `(n,)` int64, rows of the batch.
        rows: Of the whole minibatch.

    Returns:
        A gradient for each of the learner's parameters; the part's sums of policy loss, value loss, entropy,
        divergence and rows clipped.
    """
    settings = learner.settings
    with torch.autocast(learner.device.type, torch.bfloat16, enabled=settings.bfloat16):
        shown = batch.shown[batch.rows[part]]  # (n, S)
        log_probs, entropies = learner.policy.log_probs_and_entropies(shown, batch.actions[part])
        values = learner.critic.values(shown)
    change = log_probs - batch.log_probs[part]
    ratios = change.exp()
    policy_loss, value_loss = losses(ratios, batch.gains[part], values, batch.returns[part], settings.clip)
    loss = policy_loss + value_loss - settings.entropy_coefficient * entropies  # (n,)
    gradients = torch.autograd.grad(loss.sum() / rows, learner.parameters)
    with torch.no_grad():
        # Of the divergence from the policy that played, the estimate that is never below 0.
        divergence = ratios - 1 - change
        clipped = ((ratios - 1).abs() > settings.clip).float()
        shares = (policy_loss, value_loss, entropies, divergence, clipped)
        return list(gradients), torch.stack([share.sum() for share in shares])


def losses(
    ratios: Tensor, gains: Tensor, values: Tensor, returns: Tensor, clip: float
) -> tuple[Tensor, Tensor]:
    """Return the clipped loss of the policy [equation 7, negative], and half the critic's squared error.

    Args:
        ratios: `(rows,)` probability of each action now, divided by that when it was drawn.
        gains: `(rows,)` advantages.
        values: `(rows,)` of the critic.
        returns: `(rows,)` that it shall say.
        clip: Epsilon.

    Returns:
        `(rows,)` each.
    """
    clipped = ratios.clamp(1 - clip, 1 + clip)
    return -torch.minimum(ratios * gains, clipped * gains), 0.5 * (values - returns).square()


def _check_rewards(settings: TrainingSettings, rewards: np.ndarray) -> None:
    """Raise Diverged unless all of `(K, T, C)` are finite."""
    wrong = np.argwhere(~np.isfinite(rewards))
    if len(wrong):
        collector, step, car = (int(i) for i in wrong[0])
        raise Diverged(
            f"the reward of {name_car(settings, car)} of collector {collector} is "
            f"{rewards[collector, step, car]} at step {step} of the rollout, expected a finite number"
        )
