"""Copy the steps that are learned from out of the collectors' arrays, and cut them into pieces for memory.

    (K, T, L, ...) -> pieces of `length` steps -> (P * length, ...), piece by piece -> unroll -> outputs

K collectors play T steps of L cars; P = K * T / length * L pieces. Networks with memory are trained through
time, each piece from the state that it began with. Gradients end where a piece begins.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from rlgym_bridge.policy.torch_network import ActingNetwork, SteppingNetwork, ValueNetwork
from rlgym_bridge.training.learner import Diverged, PPOLearner
from rlgym_bridge.training.selfplay.opponents import name_car

MEMORY: Final = ("starts", "states")  # arrays of a policy with memory


@dataclass(frozen=True)
class CollectedSteps:
    """The steps of one iteration: of K collectors T steps of L cars that are learned from.

    With `mirror` observations, actions and masks are those that the network saw and chose.
    """

    obs: np.ndarray  # (K, T + 1, L, S) float32; the last step's are what follows
    actions: np.ndarray  # (K, T, L) or (K, T, L, k)
    log_probs: np.ndarray  # (K, T, L) float32, of the actions when they were drawn
    rewards: np.ndarray  # (K, T, L) float32
    terminated: np.ndarray  # (K, T, L) bool
    truncated: np.ndarray  # (K, T, L) bool
    final_obs: np.ndarray  # (n, S) float32, of the n truncated ones in order
    masks: np.ndarray | None = None  # (K, T, L, choices) bool, what was allowed
    teacher: np.ndarray | None = None  # (K, T, L, choices) float32, a teacher's probabilities
    starts: np.ndarray | None = None  # (K, T, L) bool, with a memory: whether an episode begins
    states: np.ndarray | None = None  # (K, T / sequence_length, L, numbers) float32, memory before a piece

    @classmethod
    def of(cls, learner: PPOLearner, rollouts: Any) -> "CollectedSteps":
        """Copy what is learned from, `(K, T, C, ...)` by name; raises Diverged for a reward not finite."""
        learned, shape = learner.learned, learner.shape  # learned: (C,) bool
        rewards = rollouts["rewards"]
        wrong = np.argwhere(~np.isfinite(rewards))  # (n, 3)
        if len(wrong):
            collector, step, car = (int(i) for i in wrong[0])
            raise Diverged(
                f"the reward of {name_car(learner.settings, car)} of collector {collector} is "
                f"{rewards[collector, step, car]} at step {step} of the rollout, expected a finite number"
            )
        names = ["obs", "actions", "log_probs", "rewards", "terminated", "truncated"]
        names += ["masks"] if shape.masked else []
        names += ["teacher"] if learner.teacher_weight() else []
        names += MEMORY if shape.state_size else ()
        taken = {name: rollouts[name][:, :, learned] for name in names}
        final_obs = rollouts["final_obs"][rollouts["truncated"] & learned]
        if (mirror := shape.mirror) is not None:
            where = mirror.applies(taken["obs"])  # (K, T + 1, L) bool
            taken["obs"] = mirror.show(taken["obs"], where)
            final_obs = mirror.show(final_obs, mirror.applies(final_obs))
            taken["actions"] = mirror.exchange(taken["actions"], where[:, :-1])
            for name in {"masks", "teacher"} & taken.keys():
                taken[name] = mirror.exchange_masks(taken[name], where[:, :-1])
        return cls(**taken, final_obs=final_obs)

    @property
    def count(self) -> int:
        """Agent steps."""
        return self.rewards.size


@dataclass(frozen=True)
class SequencePieces:
    """Starts and states that networks with memory need beside the steps of a batch."""

    starts: Tensor  # (P, length) bool, whether an episode begins with a step
    states: Tensor  # (P, numbers) float32, the policy's memory before each piece
    critic_states: Tensor  # (P, numbers) float32, the critic's

    @property
    def length(self) -> int:
        """Steps of a piece."""
        return self.starts.shape[1]

    def rows(self, part: Tensor) -> Tensor:
        """Return the steps `(n * length,)` int64 of some pieces `(n,)`."""
        steps = torch.arange(self.length, device=part.device)
        return (part[:, None] * self.length + steps).flatten()

    def act(self, network: ActingNetwork, shown: Tensor, part: Tensor) -> Tensor:
        """Return a policy's outputs `(n * length, outputs)` for observations `(n * length, S)` of pieces."""
        return self._unroll(network, shown, part, self.states)

    def values(self, network: ValueNetwork, shown: Tensor, part: Tensor) -> Tensor:
        """Return a critic's values `(n * length,)` float32 for observations `(n * length, S)` of pieces."""
        return self._unroll(network, shown, part, self.critic_states)[:, 0].float()

    def _unroll(self, network: SteppingNetwork, shown: Tensor, part: Tensor, states: Tensor) -> Tensor:
        obs, starts, state = shown.unflatten(0, (-1, self.length)), self.starts[part], states[part]
        found = []
        for step in range(self.length):
            begins = starts[:, step]  # where the memory is empty
            outputs, state = network.step(obs[:, step], state * ~begins[:, None], begins)
            found.append(outputs)
        return torch.stack(found, 1).flatten(0, 1)


def by_piece(array: np.ndarray, length: int) -> np.ndarray:
    """Return `(P * length, ...)`, piece by piece, of `(K, T, L, ...)`."""
    collectors, steps, cars = array.shape[:3]
    apart = array.reshape(collectors, steps // length, length, cars, *array.shape[3:])
    return np.ascontiguousarray(apart.swapaxes(2, 3)).reshape(-1, *array.shape[3:])


def judge_steps(
    critic: ValueNetwork, collected: Any, shown: tuple[Tensor, Tensor], memory: Tensor | None, length: int,
    in_parts: Callable[[Callable[[Tensor], Any], Tensor], list[Any]],
) -> tuple[np.ndarray, np.ndarray, Tensor, Tensor]:  # fmt: skip
    """Let a critic with memory judge all steps of a rollout, as it goes through time.

    Args:
        critic: The critic.
        collected: The `CollectedSteps`.
        shown: Observations `(K, T + 1, L, S)` and final observations `(n, S)` as the critic sees them.
        memory: Its memory at the end of the rollout before, `(K * L, numbers)`; None where matches begin.
        length: Steps of a piece.
        in_parts: Calls a function with parts of rows, see `PPOLearner.in_parts`.

    Returns:
        Values `(K, T + 1, L)` float32; those of final observations, `(n,)` float32; its memory before each
        piece, `(P, numbers)` float32, and at the end, `(K * L, numbers)` float32.
    """
    obs, final_obs = shown
    collectors, steps, cars = collected.rewards.shape
    count, device = collectors * cars, obs.device
    ended = collected.terminated | collected.truncated
    starts = np.concatenate((collected.starts, ended[:, -1:]), 1)  # (K, T + 1, L)
    places = np.full(ended.shape, -1)
    places[collected.truncated] = np.arange(len(final_obs))

    def by_car(array: np.ndarray) -> Tensor:
        return torch.from_numpy(array.swapaxes(0, 1).reshape(len(array[0]), count)).to(device)

    begins, cut = by_car(starts), by_car(places)  # (T + 1, K * L), (T, K * L)
    every = obs.transpose(0, 1).flatten(1, 2)  # (T + 1, K * L, S)
    before = torch.zeros(count, critic.state_size, device=device) if memory is None else memory

    @torch.no_grad()
    def judge(part: Tensor) -> tuple[Tensor, Tensor, list[tuple[Tensor, Tensor]], Tensor]:
        state, values, kept, finals = before[part], [], [], []
        for step in range(steps + 1):
            if step % length == 0 and step < steps:
                kept.append(state)
            fresh = begins[step, part]
            found, after = critic.step(every[step, part], state * ~fresh[:, None], fresh)
            values.append(found[:, 0].float())
            if step < steps:
                state = after
                rows = torch.nonzero(cut[step, part] >= 0)[:, 0]
                which = cut[step, part][rows]
                outcome, _ = critic.step(final_obs[which], state[rows], which < 0)
                finals.append((which, outcome[:, 0].float()))
        return torch.stack(values), torch.stack(kept), finals, state

    parts = in_parts(judge, torch.arange(count, device=device))
    values = torch.cat([one[0] for one in parts], 1).unflatten(1, (collectors, cars)).transpose(0, 1)
    kept = torch.cat([one[1] for one in parts], 1)  # (T / length, K * L, numbers)
    states = kept.unflatten(1, (collectors, cars)).transpose(0, 1).flatten(0, 2)
    final_values = np.zeros(len(final_obs), np.float32)
    for one in parts:
        for which, outcome in one[2]:
            final_values[which.cpu().numpy()] = outcome.cpu().numpy()
    return values.cpu().numpy(), final_values, states, torch.cat([one[3] for one in parts])
