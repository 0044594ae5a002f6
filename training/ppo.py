"""Proximal policy optimisation [Schulman et al. 2017] by self-play, from top to bottom.

    policies -> collectors play -> rollouts -> batch: values, advantages -> minibatches -> policies

Shapes in comments: K collectors, T steps, C cars of all matches, L of them that are learned from, S numbers
of an observation; B = K * T * L agent steps of a batch.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Self

import numpy as np
import torch
from torch import Tensor

from rlgym_bridge.policy.torch_network import ActingNetwork
from rlgym_bridge.sim.simulator import PartTimes
from rlgym_bridge.training.collector import Collectors
from rlgym_bridge.training.gradients import RecordedSteps, add_up
from rlgym_bridge.training.learner import ACTIONS, ARENAS, ORDER, Diverged, PPOLearner
from rlgym_bridge.training.rollouts import CollectedSteps, SequencePieces, by_piece, judge_steps
from rlgym_bridge.training.runs.checkpoints import has_checkpoint
from rlgym_bridge.training.runs.progress import IterationTimes
from rlgym_bridge.training.runs.run import Iteration, ReadAgain, Summary, run
from rlgym_bridge.training.settings import TrainingSettings

SUMMED: Final = ("policy_loss", "value_loss", "entropy", "uniform_divergence", "kl", "clip_fraction")
"""Statistics that are sums over the steps of a minibatch, as `gradients_of` returns them."""

_KL: Final = SUMMED.index("kl")
_MOST_REWARD: Final = 10.0  # of a standardised reward [rlgym-ppo, rlgym-learn: `reward_clip`]

MOST_IMPORTANCE: Final = 2.0
"""Weight of a step at most, where the policy that played it is one update older than the one that learns."""


def main(
    settings: TrainingSettings, resume: bool = False, quiet: bool = False, change_simulator: bool = False,
    rewards: bool = False, read_again: ReadAgain | None = None,
) -> Summary:  # fmt: skip
    """Train on this machine; arguments and errors are those of `rlgym_bridge.training.runs.run.run`."""
    return run(settings, Local, resume, quiet, change_simulator, rewards, read_again)


class Local:
    """Plays in processes of this machine, or by what has the face of `Collectors`, and learns in this one."""

    def __init__(self, learner: PPOLearner, collectors: Any = None) -> None:
        self._learner = learner
        self._collectors: Any = collectors or Collectors(learner.settings, learner.shape)
        self.count = self._collectors.count
        self._playing = False  # between `_begin` and the end of that batch

    def __enter__(self) -> Self:
        self._collectors.__enter__()
        return self

    def __exit__(self, *how: object) -> None:
        self._collectors.__exit__(*how)

    def restart(self) -> None:
        """Begin new matches; seed and steps alone decide how they begin and go on."""
        if self._playing:  # steps of the matches before, which nobody learns from
            self._collectors.finish()
            self._playing = False
        self._learner.critic_memory = None
        self._collectors.restart((self._learner.settings.seed, self._learner.steps, ARENAS))

    def renew(self, settings: TrainingSettings) -> None:
        """Go on with other settings, see `PPOLearner.renew`, before a `restart`; nothing is being played."""
        self._learner.renew(settings)
        self._collectors.renew(settings)

    def iterate(self, older: int) -> Iteration:
        """Play one batch, also against this older version, and learn from it; see the setting `overlap`."""
        learner, rollouts = self._learner, self._collectors.arrays

        # Collect: every collector plays the newest policy, in some matches against an older one.
        started = time.perf_counter()
        if not self._playing:
            self._begin(learner.steps, older)
        counts = self._finish()
        waited = time.perf_counter()

        # Learn.
        seconds, clock = list(self._collectors.seconds), PartTimes()
        collected = CollectedSteps.of(learner, rollouts)
        if learner.overlaps:
            self._begin_next(learner.steps + collected.count)
        clock.end("taking")
        batch = batch_of(learner, collected)
        clock.end("judging")
        stats = improve(learner, batch)
        clock.end("improving")
        spent = waited - started, time.perf_counter() - waited
        stats |= {"collect_seconds": spent[0], "learn_seconds": spent[1]}
        times = IterationTimes.of(*spent, seconds, learner.overlaps, clock.seconds)
        return Iteration(len(batch.rows), counts, stats, times)

    def _begin(self, steps: int, older: int) -> None:
        """Let the collectors play the batch that is learned from after so many agent steps."""
        learner, policies = self._learner, self._collectors.arrays["policies"]
        policies[0] = learner.packed()
        policies[1 : 1 + len(learner.snapshots.rows)] = learner.snapshots.rows
        teach = learner.teacher_weight(steps) > 0
        self._collectors.begin((learner.settings.seed, steps, ACTIONS), 1 + older, teach)
        self._playing = True

    def _finish(self) -> Counter[str]:
        """Wait for the batch; return what was counted in it."""
        self._playing = False
        counts: Counter[str] = self._collectors.finish()
        return counts

    def _begin_next(self, steps: int) -> None:
        """Begin the next batch, unless a checkpoint or the end of the run comes first.

        A checkpoint holds no steps that were played but not learned from. So a resumed run equals one that
        was never interrupted.
        """
        learner = self._learner
        if steps < learner.settings.steps and not has_checkpoint(learner.settings, learner.steps, steps):
            self._begin(steps, learner.draw_older(steps))

    def bring(self) -> None:
        """Do nothing: what was learned is in the learner."""


@dataclass(frozen=True)
class Batch:
    """The batch that one iteration learns from."""

    shown: Tensor  # (K * (T + 1) * L, S) float32, observations as the networks see them
    rows: Tensor  # (B,) int64, rows of `shown` that were acted on. The other arrays are in this order.
    actions: Tensor  # (B,) or (B, k)
    log_probs: Tensor  # (B,) float32, of the actions before the first gradient step
    # (B,) float32, with mean 0 and deviation 1; with `overlap` times the actions' probability before the
    # first gradient step over that when they were drawn [decoupled PPO, Hilton et al. 2022].
    advantages: Tensor
    returns: Tensor  # (B,) float32, the critic's value targets
    values: Tensor  # (B,) float32, the critic's before the iteration
    explained: float  # share of the returns' variance that the critic knew
    masks: Tensor | None = None  # (B, choices) bool, what was allowed; None where nothing was forbidden
    teacher: Tensor | None = None  # (B, choices) float32, its probability of each
    teacher_weight: Tensor | None = None  # () float32, of the divergence from it
    pieces: SequencePieces | None = None  # of networks with memory: minibatches are whole pieces

    @property
    def piece_length(self) -> int:
        """Steps that stay together: 1 without memory."""
        return 1 if self.pieces is None else self.pieces.length

    def kept_in(self, steps: RecordedSteps) -> "Batch":
        """Return the same batch with its arrays where recorded steps read them."""
        arrays = {name: one for name, one in vars(self).items() if isinstance(one, Tensor)}
        kept: dict[str, Any] = dict(zip(arrays, steps.keep([*arrays.values()]), strict=True))
        return replace(self, **kept)

    def numbers(self, learner: PPOLearner) -> Tensor:
        """Return the numbers of all that minibatches are made of, `(n,)` int64: steps, or pieces."""
        return torch.arange(len(self.rows) // self.piece_length, device=learner.device)

    def seen(self, part: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return of a part `(n,)` of `numbers` the steps `(m,)` int64, observations `(m, S)` and masks."""
        at = part if self.pieces is None else self.pieces.rows(part)
        masks = None if self.masks is None else self.masks.index_select(0, at)
        return at, self.shown.index_select(0, self.rows.index_select(0, at)), masks

    def act(self, policy: ActingNetwork, shown: Tensor, part: Tensor) -> Tensor:
        """Return a policy's outputs `(m, outputs)` for the observations `(m, S)` of a part."""
        return policy(shown) if self.pieces is None else self.pieces.act(policy, shown, part)


def batch_of(learner: PPOLearner, collected: CollectedSteps) -> Batch:
    """Make a batch of what was collected, with values of the present critic.

    The learner is as it was when the steps were played, or one update later. Raises Diverged where an
    advantage is not finite.
    """
    settings, deviation = learner.settings, learner.return_deviation()
    seen, rewards = collected.obs, collected.rewards  # (K, T + 1, L, S) float32, (K, T, L) float32
    if settings.standardize_returns:
        rewards = (rewards / np.float32(deviation)).clip(-_MOST_REWARD, _MOST_REWARD)
    terminated, truncated = collected.terminated, collected.truncated  # (K, T, L) bool
    shown = learner.shown(seen)  # (K, T + 1, L, S) float32
    values, final_values, pieces = _judge(learner, collected, shown)

    # What an action led to is worth nothing more after a termination; after a truncation it is worth
    # what the last observation of its own episode is, not the first one of the next.
    next_values = values[:, 1:].copy()  # (K, T, L) float32
    next_values[terminated] = 0.0
    if truncated.any():
        next_values[truncated] = final_values
    values = values[:, :-1]  # (K, T, L) float32
    by_step = (a.swapaxes(0, 1) for a in (rewards, values, next_values, terminated | truncated))
    discounts = settings.gamma, settings.gae_lambda
    with np.errstate(over="ignore", invalid="ignore"):  # which the next lines tell
        estimates = estimate_advantages(*discounts, *by_step).swapaxes(0, 1)  # (K, T, L) float32
    if not np.isfinite(estimates).all():
        most, reward = (float(np.abs(array).max()) for array in (values, rewards))
        raise Diverged(
            f"an advantage is not finite after {learner.steps} steps: rewards are up to {reward:g}, the "
            f"critic's values up to {most:g}, expected numbers around 1: make the weights of rewards "
            "smaller, or the learning_rate"
        )
    returns = estimates + values  # (K, T, L) float32
    normalised = (estimates - estimates.mean()) / (estimates.std() + 1e-8)  # (K, T, L) float32

    def arranged(array: np.ndarray) -> Tensor:
        """Return `(B, ...)` of `(K, T, L, ...)`, in the order of the batch."""
        flat = array.reshape(-1, *array.shape[3:]) if pieces is None else by_piece(array, pieces.length)
        return learner.tensor(flat)

    numbers = np.arange(shown[..., 0].numel()).reshape(seen.shape[:3])[:, :-1]  # (K, T, L) int64
    rows, actions, played = map(arranged, (numbers, collected.actions, collected.log_probs))
    masks = None if collected.masks is None else arranged(collected.masks)  # (B, choices) bool
    learner.take_in(seen[:, :-1].reshape(-1, seen.shape[-1]))
    weight = torch.tensor(learner.teacher_weight(), device=learner.device)
    if settings.standardize_returns:
        learner.return_scale.update(returns.reshape(-1, 1) * deviation)
    batch = Batch(
        shown.flatten(0, 2), rows, actions, played, arranged(normalised), arranged(returns), arranged(values),
        explained=1 - float(estimates.var()) / max(float(returns.var()), 1e-12), masks=masks, pieces=pieces,
        teacher=None if collected.teacher is None else arranged(collected.teacher),
        teacher_weight=None if collected.teacher is None else weight,
    )  # fmt: skip
    return _decoupled(learner, batch)


def _decoupled(learner: PPOLearner, batch: Batch) -> Batch:
    """Return a batch with log-probabilities of the present policy, where those played may differ."""
    if not learner.overlaps and not learner.settings.bfloat16:
        return batch
    policy = learner.policy

    @torch.no_grad()
    def log_probs_of(part: Tensor) -> Tensor:
        at, shown, masks = batch.seen(part)
        with learner.precision():
            outputs = batch.act(policy, shown, part)
            return policy.log_probs_of(outputs, batch.actions.index_select(0, at), masks)

    log_probs = torch.cat(learner.in_parts(log_probs_of, batch.numbers(learner)))
    advantages = batch.advantages
    if learner.overlaps:
        advantages = advantages * (log_probs - batch.log_probs).exp().clamp(max=MOST_IMPORTANCE)
    return replace(batch, log_probs=log_probs, advantages=advantages)


def _judge(
    learner: PPOLearner, collected: CollectedSteps, shown: Tensor
) -> tuple[np.ndarray, np.ndarray, SequencePieces | None]:
    """Return the critic's values of the steps and of final observations, and the pieces of a memory."""
    if collected.starts is None or collected.states is None:
        values = learner.values(shown.flatten(0, 2)).reshape(shown.shape[:3])
        cut = collected.truncated.any()
        return values, learner.values(learner.shown(collected.final_obs)) if cut else np.zeros(0), None
    length = learner.settings.sequence_length
    both = shown, learner.shown(collected.final_obs)
    values, finals, kept, learner.critic_memory = judge_steps(
        learner.critic, collected, both, learner.critic_memory, length, learner.in_parts
    )
    states = learner.tensor(collected.states).flatten(0, 2)  # (P, numbers)
    starts = learner.tensor(by_piece(collected.starts, length)).unflatten(0, (-1, length))  # (P, length)
    return values, finals, SequencePieces(starts, states, kept)


def improve(learner: PPOLearner, batch: Batch) -> dict[str, float]:
    """Improve policy and critic by some epochs over a batch; return statistics, or raise Diverged."""
    settings, size = learner.settings, len(batch.rows)
    (rate, critic_rate), taken = learner.set_learning_rates(), 0
    order = torch.Generator().manual_seed(int(learner.random(ORDER).integers(2**62)))
    count = size // batch.piece_length  # steps, or pieces of steps
    minibatches = min(count, max(1, round(size / settings.minibatch)))
    recorded = learner.recorded
    if recorded is not None:
        batch = batch.kept_in(recorded)
    found: list[tuple[str, Tensor]] = []  # of each minibatch which one it is, and what `take_step` returns
    shuffled = (torch.randperm(count, generator=order).to(learner.device) for _ in range(settings.epochs))
    parts = ((epoch, *part) for epoch, mixed in enumerate(shuffled)
             for part in enumerate(mixed.tensor_split(minibatches)))  # fmt: skip
    for epoch, number, minibatch in parts:
        where = f"epoch {epoch}, minibatch {number} after {learner.steps} steps"
        if recorded is None:
            numbers = take_step(learner, batch, minibatch, where)
        else:
            step = partial(take_step, learner, batch, where=where)
            numbers = recorded.take(step, minibatch, learner.critic_learns_alone)
        found.append((where, numbers))
        rows = len(minibatch) * batch.piece_length
        taken += rows
        if settings.target_kl and float(numbers[_KL]) > settings.target_kl * rows:
            break
    stats = _stats_of(learner, found, taken) | {"explained_variance": batch.explained, "learning_rate": rate}
    if settings.critic_learning_rate or settings.critic_learning_rate_schedule != "same":
        stats["critic_learning_rate"] = critic_rate
    if settings.target_kl:
        stats["epochs_taken"] = taken / size
    if batch.teacher is not None:
        stats["teacher_kl"] = teacher_divergence(learner, batch)
    if settings.standardize_returns:
        stats["return_deviation"] = learner.return_deviation()
    return stats


def _stats_of(learner: PPOLearner, found: Sequence[tuple[str, Tensor]], rows: int) -> dict[str, float]:
    """Return the means of what `take_step` returned for minibatches of so many rows; may raise Diverged."""
    numbers = torch.stack([one for _, one in found])  # (minibatches, statistics and two norms)
    means = (numbers[:, :-2].sum(0) / rows).tolist()
    lengths = numbers[:, -2:].tolist()
    if learner.asynchronous:  # it waits for the device here, once
        for (where, _), length in zip(found, lengths, strict=True):
            learner.check_norms(length, where)
    policy, critic = np.mean(lengths, 0).tolist()
    return dict(zip(SUMMED, means, strict=True)) | {"policy_gradient": policy, "critic_gradient": critic}


def teacher_divergence(learner: PPOLearner, batch: Batch) -> float:
    """Return the mean KL(teacher || policy) over a batch, in nats."""

    @torch.no_grad()
    def divergence_of(part: Tensor) -> Tensor:
        at, shown, masks = batch.seen(part)
        assert batch.teacher is not None  # the caller has checked it
        with learner.precision():
            outputs = batch.act(learner.policy, shown, part)
        return learner.policy.divergence_from(outputs, batch.teacher.index_select(0, at), masks)

    return float(torch.cat(learner.in_parts(divergence_of, batch.numbers(learner))).mean())


def take_step(learner: PPOLearner, batch: Batch, minibatch: Tensor, where: str) -> Tensor:
    """Take a gradient step with a minibatch `(n,)` int64, rows of the batch, or its pieces.

    Returns `(8,)` float32: the sums of the statistics `SUMMED`, and the norms of the gradients of both
    networks. Raises Diverged, which says `where`, as `PPOLearner.descend` does.
    """
    rows = len(minibatch) * batch.piece_length
    parts = learner.in_parts(partial(gradients_of, learner, batch, rows=rows), minibatch)
    norms = learner.descend(add_up([gradients for gradients, _ in parts]), where)
    return torch.cat([torch.stack([sums for _, sums in parts]).sum(0), norms])


def gradients_of(learner: PPOLearner, batch: Batch, part: Tensor, rows: int) -> tuple[list[Tensor], Tensor]:
    """Return what a part `(n,)` int64 of a minibatch of so many rows adds to its gradients and statistics.

    That is a gradient for each of the learner's parameters, and the part's sums of `SUMMED`, `(6,)`.
    """
    settings, pieces = learner.settings, batch.pieces
    at, shown, masks = batch.seen(part)
    every = (batch.actions, batch.log_probs, batch.advantages, batch.returns)
    actions, before, advantages, returns = (one.index_select(0, at) for one in every)
    if learner.backpropagation is not None and batch.teacher is None:
        return learner.backpropagation.gradients(shown, actions, before, advantages, returns, rows, masks)
    with learner.precision():
        policy, critic = learner.policy, learner.critic
        outputs = batch.act(policy, shown, part)
        log_probs, entropies, from_uniform = policy.evaluate_outputs(outputs, actions, masks)
        values = critic.values(shown) if pieces is None else pieces.values(critic, shown, part)
    change = log_probs - before
    ratios = change.exp()
    policy_loss, value_loss = losses(ratios, advantages, values, returns, settings.clip)
    if settings.value_clip:
        old = batch.values.index_select(0, at)
        value_loss = clip_value_loss(value_loss, values, old, returns, settings.value_clip)
    loss = policy_loss + value_loss - settings.entropy_coefficient * entropies  # (n,)
    if batch.teacher is not None and batch.teacher_weight is not None:
        targets = batch.teacher.index_select(0, at)
        loss = loss + batch.teacher_weight * policy.divergence_from(outputs, targets, masks)
    if settings.uniform_coefficient:
        loss = loss + settings.uniform_coefficient * from_uniform
    # A network of a user may have parameters that nothing depends on.
    gradients = torch.autograd.grad(loss.sum() / rows, learner.parameters, materialize_grads=True)
    with torch.no_grad():
        # Of the divergence from the policy that played, the estimate that is never below 0.
        divergence = ratios - 1 - change
        clipped = ((ratios - 1).abs() > settings.clip).float()
        shares = (policy_loss, value_loss, entropies, from_uniform, divergence, clipped)
        return list(gradients), torch.stack([share.sum() for share in shares])


def losses(
    ratios: Tensor, advantages: Tensor, values: Tensor, returns: Tensor, clip: float
) -> tuple[Tensor, Tensor]:
    """Return the clipped loss of the policy [equation 7, negative], and half the critic's squared error.

    All are `(rows,)`. Ratios are the probability of each action now, divided by that when it was drawn;
    returns are value targets; `clip` is epsilon.
    """
    clipped = ratios.clamp(1 - clip, 1 + clip)
    return -torch.minimum(ratios * advantages, clipped * advantages), 0.5 * (values - returns).square()


def clip_value_loss(
    value_loss: Tensor, values: Tensor, before: Tensor, returns: Tensor, clip: float
) -> Tensor:
    """Return the larger of half the critic's squared error and that of a value that has changed less.

    All are `(rows,)`: the first from `losses`, the critic's values now and before the iteration, and value
    targets. `clip` is the most that a value changes.
    """
    near = before + (values - before).clamp(-clip, clip)
    return torch.maximum(value_loss, 0.5 * (near - returns).square())


def estimate_advantages(
    gamma: float,
    weight: float,
    rewards: np.ndarray,
    values: np.ndarray,
    next_values: np.ndarray,
    ended: np.ndarray,
) -> np.ndarray:
    """Return generalised advantage estimates [Schulman et al. 2016, equations 11 and 16].

    Args:
        gamma: Discount a step.
        weight: Lambda, of longer returns.
        rewards: `(steps, ...)` float32; the other arrays have the same shape.
        values: Float32, of the observations acted on.
        next_values: Float32, of what the action led to: 0 after a termination, the last
            observation's of its episode after a truncation.
        ended: Bool, the episode ended either way: nothing later belongs to it.

    Returns:
        `(steps, ...)` float32; plus `values` they are the critic's value targets.
    """
    estimates: np.ndarray = rewards + np.float32(gamma) * next_values - values
    decay = np.float32(gamma * weight) * ~ended
    for step in range(len(estimates) - 2, -1, -1):
        estimates[step] += decay[step] * estimates[step + 1]
    return estimates
