"""Episodes of RLlib with known actions, and the calls that the documentation of `set_actions` describes."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode

from rlgym_bridge.training.rllib.correct_actions import correct_applied_actions

BLUE, ORANGE = "blue-0", "orange-0"
lists_and_arrays = pytest.mark.parametrize("numpy", [False, True], ids=["lists", "numpy'ized"])
SPACES = {
    "Discrete": spaces.Discrete(90),
    "MultiDiscrete": spaces.MultiDiscrete([3, 3, 2]),
    "Box": spaces.Box(-1.0, 1.0, (8,)),
}
DICT = spaces.Dict({"steer": spaces.Box(-1.0, 1.0, (2,)), "jump": spaces.Discrete(2)})
WIDTHS = {"Discrete": 90, "MultiDiscrete": 8, "Box": 16}  # of `action_dist_inputs`
ACTIONS = [3, 4, 5, 6, 7, 8, 9]  # of every agent of `numbered`


def _case(lookback: int, at: Any, neg: bool, new: Any, expected: list[int]) -> Any:
    words = "from the lookback buffer" if neg else "from the end"
    return pytest.param(lookback, at, neg, new, expected, id=f"{at}, {lookback} of 7 before, {words}")


# Steps in the lookback buffer, at_indices, neg_index_as_lookback, new actions, all 7 actions afterwards.
DOCUMENTED = [
    _case(0, 6, False, 50, [3, 4, 5, 6, 7, 8, 50]),
    _case(0, [1, 4, -1], False, [50, 51, 52], [3, 50, 5, 6, 51, 8, 52]),
    _case(0, slice(None, None, 3), False, [50, 51, 52], [50, 4, 5, 51, 7, 8, 52]),
    _case(3, 0, False, 50, [3, 4, 5, 50, 7, 8, 9]),
    _case(3, -1, True, 50, [3, 4, 50, 6, 7, 8, 9]),
    _case(3, [-1, 0], True, [50, 51], [3, 4, 50, 51, 7, 8, 9]),
    _case(3, [-1, 0], False, [50, 51], [3, 4, 5, 51, 7, 8, 50]),
    _case(3, slice(-2, None), False, [50, 51], [3, 4, 5, 6, 7, 50, 51]),
    _case(3, slice(-2, 1), True, [50, 51, 52], [3, 50, 51, 52, 7, 8, 9]),
    _case(3, None, False, [50, 51, 52, 53], [3, 4, 5, 50, 51, 52, 53]),
]

# Lookback, at_indices, neg_index_as_lookback, new actions: sizes that do not match, or steps there are not.
WRONG_SIZES = [
    pytest.param(3, slice(1, 3), False, [50], id="slice of two, one action"),
    pytest.param(3, slice(1, 3), False, [50, 51, 52], id="slice of two, three actions"),
    pytest.param(3, None, False, [50] * 7, id="None of four steps, seven actions"),
    pytest.param(3, 4, False, 50, id="one past the end"),
    pytest.param(3, -4, True, 50, id="one before the lookback buffer"),
    pytest.param(3, [4], False, [50], id="one past the end, in a list"),
]


def numbered(
    lookback: int = 0,
    *,
    numpy: bool = False,
    agents: Sequence[str] = (BLUE, ORANGE),
    actions: Sequence[Any] = ACTIONS,
    space: spaces.Space | None = SPACES["Discrete"],
    outputs: Sequence[Mapping[str, Any]] | None = None,
) -> MultiAgentEpisode:
    """Return an episode where all agents step always."""
    observations = [{agent: np.float32([t]) for agent in agents} for t in range(len(actions) + 1)]
    given: dict[str, Any] = {}
    if space is not None:
        given["action_space"] = spaces.Dict(dict.fromkeys(agents, space))
    if outputs is not None:
        given["extra_model_outputs"] = [{agent: dict(one) for agent in agents} for one in outputs]
    episode = MultiAgentEpisode(
        observations=observations,
        actions=[{agent: copy.copy(action) for agent in agents} for action in actions],
        rewards=[dict.fromkeys(agents, 0.0) for _ in actions],
        len_lookback_buffer=lookback,
        **given,
    )
    return episode.to_numpy() if numpy else episode


def ragged(*, numpy: bool = False, hanging: bool = False) -> MultiAgentEpisode:
    """Return 6 env steps: blue acts at each (10..15), orange at every second (20, 22, 24; hanging: 26)."""
    episode = MultiAgentEpisode(
        action_space=spaces.Dict({BLUE: SPACES["Discrete"], ORANGE: SPACES["Discrete"]})
    )
    episode.add_env_reset(observations={BLUE: np.float32([0]), ORANGE: np.float32([0])})
    for t in range(7 if hanging else 6):
        acts = [BLUE, ORANGE] if t % 2 == 0 else [BLUE]
        sees = [BLUE] if t % 2 == 0 else [BLUE, ORANGE]
        episode.add_env_step(
            observations={agent: np.float32([t + 1]) for agent in sees},
            actions={agent: (10 if agent == BLUE else 20) + t for agent in acts},
            rewards=dict.fromkeys(sees, 0.0),
        )
    return episode.to_numpy() if numpy else episode


def held(episode: MultiAgentEpisode, agent: str = BLUE) -> list[Any]:
    """Return an agent's actions, those of the lookback buffer first."""
    one = episode.agent_episodes[agent]
    actions = one.get_actions(slice(-one.actions.lookback, None), neg_index_as_lookback=True)
    return actions.tolist() if isinstance(actions, np.ndarray) else list(actions)


def logp_of(space: spaces.Space, inputs: Any, actions: Any) -> np.ndarray:
    """Return the log probability of each row, in float64 and without torch."""
    inputs, actions = np.asarray(inputs, np.float64), np.asarray(actions)
    if isinstance(space, spaces.Box):
        mean, log_std = np.split(inputs, 2, axis=1)
        parts = -0.5 * ((actions - mean) / np.exp(log_std)) ** 2 - log_std - 0.5 * np.log(2 * np.pi)
        return parts.sum(1)
    sizes = [space.n] if isinstance(space, spaces.Discrete) else space.nvec
    total = np.zeros(len(inputs))
    for logits, chosen in zip(
        np.split(inputs, np.cumsum(sizes)[:-1], axis=1), actions.reshape(len(inputs), -1).T, strict=True
    ):
        total += logits[np.arange(len(logits)), chosen] - np.log(np.exp(logits).sum(1))
    return total


def with_outputs(
    name: str, lookback: int, numpy: bool, **changes: Any
) -> tuple[MultiAgentEpisode, np.ndarray]:
    """Return an episode of random actions with `action_dist_inputs` and a wrong `action_logp`, 0.5 each."""
    space = SPACES[name]
    space.seed(0)
    inputs = np.random.default_rng(0).normal(size=(7, WIDTHS[name])).astype(np.float32)
    outputs = [{"action_dist_inputs": row, "action_logp": np.float32(0.5)} for row in inputs]
    actions = [space.sample() for _ in range(7)]
    episode = numbered(lookback, **{"actions": actions, "space": space, "outputs": outputs} | changes)
    return episode.to_numpy() if numpy else episode, inputs


def output(episode: MultiAgentEpisode, key: str, agent: str = BLUE) -> np.ndarray:
    """Return an agent's model outputs, those of the lookback buffer first."""
    one = episode.agent_episodes[agent]
    start = -one.actions.lookback
    return np.asarray(one.get_extra_model_outputs(key, slice(start, None), neg_index_as_lookback=True))


def snapshot(episode: MultiAgentEpisode) -> dict[str, Any]:
    """Return a deep copy of everything that an episode holds."""
    state = {agent: one.get_state() for agent, one in episode.agent_episodes.items()}
    state["hanging"] = [
        dict(cache)
        for cache in (
            episode._hanging_actions_end,
            episode._hanging_rewards_end,
            episode._hanging_extra_model_outputs_end,
        )
    ]
    return copy.deepcopy(state)


def same(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Return whether two snapshots are equal in values, dtypes and types."""
    return data_equivalence(before, after, exact=True)


def refused(episode: MultiAgentEpisode, error: Any, message: str, applied: Any, **where: Any) -> None:
    """Hold that a call raises and that nothing at all has changed."""
    before = snapshot(episode)
    with pytest.raises(error, match=message):
        correct_applied_actions(episode, applied, **where)
    assert same(snapshot(episode), before)
