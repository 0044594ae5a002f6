"""Matches in RocketSim as RLlib's `MultiAgentEnv`: agents are the cars, `blue-0` to `orange-3`."""

import inspect
from collections.abc import Mapping
from typing import Any, Final

import gymnasium as gym
import numpy as np
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.vector.vector_multi_agent_env import VectorMultiAgentEnv

from rlgym_bridge.components.actions import action_space
from rlgym_bridge.components.spec import component_factory
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.user_input.arguments import nearest_key

_KEYS: Final = [name for name in inspect.signature(VectorEnv).parameters if name != "matches"]


class MatchEnv(MultiAgentEnv):
    """One match, every car an agent that decides as often as the parser says.

    Observations are float32 vectors, `Box(S,)`; actions are `Discrete(n)`, `MultiDiscrete` or `Box(-1, 1)`,
    as the parser says. All cars are there from the first to the last step of an episode; `__all__` is set
    where the termination or the truncation condition says so.

    Args:
        config: The arguments of `VectorEnv` but `matches`, by name (`env_config` in RLlib). `components`
            makes builder, parser, reward, conditions and mutator, ours or RLGym's; or it is
            `"module:function"`, a function that returns an `RLGym`, whose components and delay are taken. It
            has to be importable in RLlib's processes. Without a `seed` no two environments play alike.

    Raises:
        ValueError: A key is unknown, `components` is missing, a value is not what `VectorEnv` takes, or the
            components have action masks.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._env = matches_of(config or {}, 1)
        self.possible_agents = self.agents = list(self._env.agents)
        self._obs = self._env.reset(seed_of(config))
        self._fresh = True  # whether `_obs` begins an episode
        one = spaces(self._env, self._obs)
        self.observation_spaces = dict.fromkeys(self.agents, one[0])
        self.action_spaces = dict.fromkeys(self.agents, one[1])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin an episode; return observations `(S,)` float32 and empty infos, by agent.

        A seed is of this and all further episodes.
        """
        if seed is not None or not self._fresh:
            self._obs = self._env.reset(seed)
        self._fresh = False
        return self._by_agent(self._obs), {}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Play one decision; raises ValueError unless there is an action of its space for each agent."""
        try:
            if set(actions) != set(self.agents):
                raise ValueError
            given = np.stack([np.asarray(actions[agent]) for agent in self.agents])[None]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"actions are {actions}, expected one of the action space for each of "
                f"{', '.join(self.agents)}"
            ) from error
        obs, rewards, terminated, truncated, final_obs = self._env.step(given)
        over = bool(terminated[0] or truncated[0])
        self._obs, self._fresh = obs, over  # a new episode has begun where this one is over
        return (
            self._by_agent(final_obs if over else obs),
            dict(zip(self.agents, rewards[0].tolist(), strict=True)),
            dict.fromkeys((*self.agents, "__all__"), bool(terminated[0])),
            # For all alone: where agents are told so one by one, RLlib takes an episode for terminated.
            {"__all__": bool(truncated[0])},
            {},
        )

    def _by_agent(self, obs: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(self.agents, obs[0], strict=True))


class Matches(VectorMultiAgentEnv):
    """A `VectorEnv` and what an env runner has to know of it."""

    def __init__(self, env: Any, seed: int) -> None:
        super().__init__()
        self.env, self.agents = env, list(env.agents)
        self._first: np.ndarray | None  # what is seen before the first step
        obs = self._first = env.reset(seed)
        self.num_envs = len(obs)
        seen, done = spaces(env, obs)
        self.single_observation_spaces = dict.fromkeys(self.agents, seen)
        self.single_action_spaces = dict.fromkeys(self.agents, done)
        self.single_observation_space = gym.spaces.Dict(self.single_observation_spaces)
        self.single_action_space = gym.spaces.Dict(self.single_action_spaces)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin new episodes; return observations `(matches, cars, size)` and no infos."""
        first, self._first = self._first, None
        return self.env.reset(seed) if seed is not None or first is None else first, {}

    def step(self, actions: np.ndarray) -> Any:
        """Play one decision; `actions` `(matches, cars, ...)` and what is returned are `VectorEnv.step`'s."""
        return self.env.step(actions)


def matches_of(config: Mapping[str, Any], matches: int) -> VectorEnv:
    """Return the matches that a config of `MatchEnv` names; raises ValueError as `MatchEnv` does."""
    if not isinstance(config, Mapping):
        raise ValueError(f"env_config is {config!r}, expected a dict of VectorEnv's arguments")
    given = dict(config)
    for name in given:
        if name not in _KEYS:
            near = nearest_key(name, _KEYS)
            raise ValueError(
                f"env_config has {name!r}, which MatchEnv does not know; the nearest is {near} (all: "
                f"{', '.join(_KEYS)})"
            )
    components = given.pop("components", None)
    if isinstance(components, str):
        components = component_factory(None, None, components, allow=None)
        delay = components().action_delay
        if delay is not None:
            given.setdefault("action_delay", delay)
    if not callable(components):
        raise ValueError(
            f"env_config has components {components!r}, expected a function that returns "
            'rlgym_bridge.components.spec.Components, or "module:function", one that returns an RLGym'
        )
    if given.get("seed", 0) is None:
        del given["seed"]
    return VectorEnv(matches, components, **given)


def seed_of(config: Mapping[str, Any] | None) -> int:
    """Return the seed in an environment's config, or one that nobody else has."""
    given = (config or {}).get("seed")
    return int(np.random.SeedSequence().generate_state(1)[0]) if given is None else given


def spaces(env: Any, obs: np.ndarray) -> tuple[gym.Space[Any], gym.Space[Any]]:
    """Return an agent's observation and action space; `obs` `(matches, cars, size)` are what it shows.

    Raises ValueError where there are action masks: RLlib would draw what they forbid.
    """
    if env.masks() is not None:
        raise ValueError(
            "parser or shared info have action masks, which the environments for RLlib do not pass on; "
            "expected components without, or training without RLlib"
        )
    seen = gym.spaces.Box(-np.inf, np.inf, obs.shape[2:])
    return seen, action_space_of(*action_space(env.parser.get_action_space(env.agents[0])))


def action_space_of(distribution: str, sizes: tuple[int, ...]) -> gym.Space[Any]:
    """Return the space of one car's actions; `components.actions.action_space` gives the arguments."""
    if distribution == "categorical":
        return gym.spaces.Discrete(sizes[0])
    if distribution == "multi_categorical":
        return gym.spaces.MultiDiscrete(sizes)
    return gym.spaces.Box(-1.0, 1.0, sizes)
