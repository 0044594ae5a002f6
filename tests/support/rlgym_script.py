"""A short training script as RLGym's users write them: policy gradient, over whichever engine there is."""

import numpy as np

from tests.support.rlgym_worlds import Env

_RATE = 0.03
_EPISODE = 64  # steps between two updates


def train(env: Env, steps: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Train a linear policy; return what was seen `(steps, agents, size)` and learned `(size, actions)`."""
    random = np.random.default_rng(seed)
    obs = env.reset()
    agents = list(obs)
    weights = np.zeros((len(obs[agents[0]]), env.action_space(agents[0])[1]))
    seen, gradient, baseline = [], np.zeros_like(weights), 0.0
    for step in range(1, steps + 1):
        shown = np.stack([obs[agent] for agent in agents])
        seen.append(shown)
        logits = shown @ weights
        chances = np.exp(logits - logits.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        drawn = random.random((len(agents), 1))
        chosen = (chances.cumsum(1) < drawn).sum(1).clip(max=chances.shape[1] - 1)
        obs, rewards, terminated, truncated = env.step(
            {agent: np.array([one]) for agent, one in zip(agents, chosen, strict=True)}
        )
        given = np.array([rewards[agent] for agent in agents])
        direction = -chances
        direction[np.arange(len(agents)), chosen] += 1
        gradient += shown.T @ (direction * (given - baseline)[:, None])
        baseline += 0.01 * (given.mean() - baseline)
        if step % _EPISODE == 0:
            weights += _RATE * gradient
            gradient[:] = 0
        if any(terminated.values()) or any(truncated.values()):
            obs = env.reset()
    return np.array(seen), weights
