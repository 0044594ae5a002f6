"""Make RLlib episodes of whole arrays, not step by step."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer


def episode_of(
    columns: Mapping[str, np.ndarray],
    last: np.ndarray,
    seats: Mapping[int, str],
    env: Any,
    id_: str,
    first: int,
    terminated: bool,
    truncated: bool,
) -> MultiAgentEpisode:
    """Return a part of an episode in which all cars act at every step.

    Args:
        columns: `(steps, cars, ...)` each, by RLlib's names: obs, actions, rewards, and what modules said.
        last: `(cars, size)`, what is seen after the last step.
        seats: Cars in the episode, and their modules.
        env: Has `agents` by car, and their `single_observation_spaces` and `single_action_spaces`.
        id_: Of the whole episode.
        first: Steps of it that were before.
        terminated: Whether it ends here, by the termination condition.
        truncated: Whether it ends here, by the truncation condition.

    Returns:
        An episode as `to_numpy` leaves it, without a lookback buffer.
    """
    steps = len(columns[Columns.REWARDS])
    agents = {car: env.agents[car] for car in seats}
    episode = MultiAgentEpisode(
        id_,
        observation_space={agent: env.single_observation_spaces[agent] for agent in agents.values()},
        action_space={agent: env.single_action_spaces[agent] for agent in agents.values()},
        agent_module_ids={agents[car]: module for car, module in seats.items()},
        env_t_started=first,
        agent_t_started=dict.fromkeys(agents.values(), first),
        len_lookback_buffer=0,
    )
    episode.env_t = first + steps
    episode.is_terminated, episode.is_truncated = terminated, truncated
    for car, agent in agents.items():
        mine = {name: _buffer(array[:, car]) for name, array in columns.items() if name != Columns.OBS}
        seen = np.concatenate([columns[Columns.OBS][:, car], last[None, car]])
        episode.agent_episodes[agent] = SingleAgentEpisode(
            id_=f"{id_}-{agent}",  # the same in all chunks: who puts them together asks
            observations=InfiniteLookbackBuffer(seen),
            actions=mine.pop(Columns.ACTIONS),
            rewards=mine.pop(Columns.REWARDS),
            infos=InfiniteLookbackBuffer([{}] * (steps + 1)),
            observation_space=episode.observation_space[agent],
            action_space=episode.action_space[agent],
            terminated=terminated,
            truncated=truncated,
            extra_model_outputs=mine,
            t_started=first,
            len_lookback_buffer=0,
            agent_id=agent,
            module_id=seats[car],
            multi_agent_episode_id=id_,
        )
        episode.env_t_to_agent_t[agent] = InfiniteLookbackBuffer(list(range(first, first + steps + 1)))
    return episode


def _buffer(array: np.ndarray) -> InfiniteLookbackBuffer:
    return InfiniteLookbackBuffer(np.ascontiguousarray(array))
