"""Turn recorded matches into RLlib's episodes."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode

from rlgym_bridge.recording.car_episodes import Played, RewardFactory, played
from rlgym_bridge.recording.mcap.match_recording import MatchRecording, read_match
from rlgym_bridge.training.rllib.env import action_space_of


def episodes_from_recording(
    recording: str | Path | MatchRecording,
    reward: RewardFactory | None = None,
    *,
    bots: Collection[str] | None = None,
    allow_modules: Sequence[str] = (),
) -> list[MultiAgentEpisode]:
    """Return the episodes of a recorded match: what our cars saw, chose, and were rewarded with.

    An episode goes from a kickoff to a goal, which terminates it, or to the end of play, which truncates it.
    An environment step is a tick on which somebody decides; an agent that decides on other ticks than
    another, as lost packets make it, skips steps. A decision after which nothing was seen is left out.

    Actions are those that the policy chose. `applied_of` gives those that the game applied, and
    `correct_applied_actions` puts them in.

    Args:
        recording: A match that our server or our bots recorded, whole or as a file.
        reward: Makes a reward function, ours or RLGym's; one is made for each bot and episode. None: what the
            bot recorded of its own, 0 where it recorded none.
        bots: Agent ids of those to take; None: all whose policies have observations.
        allow_modules: Modules that their policies may name components of.

    Returns:
        Agents are called as in training, `blue-0` to `orange-3`. Observations are `(S,)` float32, actions
        int, `(choices,)` int64 or `(k,)` float32. Infos hold `frame`, the tick, and from an agent's second
        observation on what the game applied for the step before: `applied`, and `told`, whether it said so.

    Raises:
        OSError: The file cannot be opened.
        RecordingError: It is no recording, or holds no decisions of the bots.
        TypeError: `reward` is a reward function, not what makes one.
        ValueError: A policy's components cannot be made.
    """
    match = recording if isinstance(recording, MatchRecording) else read_match(recording)
    return [
        _episode_of(cars, f"{match.source}-{number}")
        for number, cars in enumerate(played(match, reward, bots, allow_modules))
    ]


def applied_of(episode: MultiAgentEpisode) -> dict[str, list[Any]]:
    """Return what the game applied at every step, by agent, as `correct_applied_actions` takes it."""
    return {
        agent: [info["applied"] for info in one.get_infos(slice(1, None))]
        for agent, one in episode.agent_episodes.items()
    }


def _episode_of(cars: Sequence[Played], id_: str) -> MultiAgentEpisode:
    episode = MultiAgentEpisode(
        id_,
        observation_space={car.agent: gym.spaces.Box(-np.inf, np.inf, car.obs.shape[1:]) for car in cars},
        action_space={car.agent: action_space_of(*car.space) for car in cars},
    )
    places = [{frame: place for place, frame in enumerate(car.frames.tolist())} for car in cars]
    frames = sorted(set().union(*places))
    chosen: dict[str, Any] = {}
    for frame in frames:
        seen, infos, rewards = {}, dict[str, dict[str, Any]](), {}
        terminated: dict[str, bool] = {}
        truncated: dict[str, bool] = {}
        actions, chosen = chosen, {}
        for car, at in zip(cars, places, strict=True):
            place = at.get(frame)
            if place is None:
                continue
            seen[car.agent], infos[car.agent] = car.obs[place], {"frame": frame}
            if place:
                told = bool(car.told[place - 1])
                infos[car.agent] |= {"applied": _plain(car.applied[place - 1]), "told": told}
                rewards[car.agent] = float(car.rewards[place - 1])
            if place < len(car.chosen):
                chosen[car.agent] = _plain(car.chosen[place])
            elif frame != frames[-1]:
                terminated[car.agent], truncated[car.agent] = car.scored, not car.scored
        if frame == frames[0]:
            episode.add_env_reset(observations=seen, infos=infos)
            continue
        if frame == frames[-1]:
            # For all alone: told one by one RLlib takes all that are cut off for terminated.
            scored = any(car.scored for car in cars if car.frames[-1] == frame)
            terminated["__all__"], truncated["__all__"] = scored, not scored
        episode.add_env_step(
            observations=seen, actions=actions, rewards=rewards, infos=infos,
            terminateds=terminated, truncateds=truncated,
        )  # fmt: skip
    return episode


def _plain(action: Any) -> Any:
    return action.copy() if action.ndim else int(action)
