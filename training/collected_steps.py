"""The steps that are learned from, copied out of the collectors' arrays."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rlgym_bridge.policy.symmetry import Mirror
from rlgym_bridge.training.learner import Diverged, PPOLearner
from rlgym_bridge.training.selfplay.sides import name_car
from rlgym_bridge.training.settings import TrainingSettings

MEMORY: Final = ("starts", "states")
"""Arrays of a policy with memory."""


@dataclass(frozen=True)
class CollectedSteps:
    """The steps of one iteration: of K collectors T steps of L cars that are learned from.

    With `mirror` observations, actions and masks are those that the network saw and chose.

    Attributes:
        obs: `(K, T + 1, L, S)` float32; the last step's are what follows.
        actions: `(K, T, L)` or `(K, T, L, k)`.
        log_probs: `(K, T, L)` float32, of the actions when they were drawn.
        rewards: `(K, T, L)` float32.
        terminated: `(K, T, L)` bool.
        truncated: `(K, T, L)` bool.
        final_obs: `(n, S)` float32, of the n truncated ones in order.
        masks: `(K, T, L, choices)` bool, what was allowed; None where nothing was forbidden.
        teacher: `(K, T, L, choices)` float32, how likely the teacher is to choose each; None without one.
        starts: `(K, T, L)` bool, whether an episode begins with a step; None for a policy without memory.
        states: `(K, T / sequence_length, L, numbers)` float32, its memory before each piece, or None.
    """

    obs: np.ndarray
    actions: np.ndarray
    log_probs: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    final_obs: np.ndarray
    masks: np.ndarray | None = None
    teacher: np.ndarray | None = None
    starts: np.ndarray | None = None
    states: np.ndarray | None = None

    @classmethod
    def of(cls, learner: PPOLearner, rollouts: Any) -> "CollectedSteps":
        """Copy what is learned from.

        Args:
            learner: Knows which cars these are.
            rollouts: Arrays by name, see `rlgym_bridge.training.shared.rollout_layout`; only read.

        Raises:
            Diverged: A reward is not finite.
        """
        learned = learner.learned  # (C,) bool
        _check_rewards(learner.settings, rollouts["rewards"])
        cut = rollouts["truncated"] & learned  # (K, T, C) bool
        obs, actions, final_obs, masks, teacher = _as_shown(
            learner.shape.mirror,
            rollouts["obs"][:, :, learned],
            rollouts["actions"][:, :, learned],
            rollouts["final_obs"][cut],
            rollouts["masks"][:, :, learned] if learner.shape.masked else None,
            rollouts["teacher"][:, :, learned] if learner.teacher_weight() else None,
        )
        return cls(
            obs=obs,
            actions=actions,
            log_probs=rollouts["log_probs"][:, :, learned],
            rewards=rollouts["rewards"][:, :, learned],
            terminated=rollouts["terminated"][:, :, learned],
            truncated=cut[:, :, learned],
            final_obs=final_obs,
            masks=masks,
            teacher=teacher,
            **{name: rollouts[name][:, :, learned] for name in MEMORY if learner.shape.state_size},
        )

    @property
    def count(self) -> int:
        """Agent steps."""
        return self.rewards.size


def _as_shown(
    mirror: Mirror | None, obs: np.ndarray, actions: np.ndarray, final_obs: np.ndarray,
    masks: np.ndarray | None, teacher: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:  # fmt: skip
    """Return all of them as the network sees and chooses, see `CollectedSteps`."""
    if mirror is None:
        return obs, actions, final_obs, masks, teacher
    where = mirror.applies(obs)  # (K, T + 1, L) bool
    chosen = where[:, :-1]
    return (
        mirror.show(obs, where),
        mirror.exchange(actions, chosen),
        mirror.show(final_obs, mirror.applies(final_obs)),
        None if masks is None else mirror.exchange_masks(masks, chosen),
        None if teacher is None else mirror.exchange_masks(teacher, chosen),
    )


def _check_rewards(settings: TrainingSettings, rewards: np.ndarray) -> None:
    """Raise Diverged unless all of `(K, T, C)` are finite."""
    wrong = np.argwhere(~np.isfinite(rewards))
    if len(wrong):
        collector, step, car = (int(i) for i in wrong[0])
        raise Diverged(
            f"the reward of {name_car(settings, car)} of collector {collector} is "
            f"{rewards[collector, step, car]} at step {step} of the rollout, expected a finite number"
        )
