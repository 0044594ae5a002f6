"""An RLlib env runner that steps all its matches together, and asks each module once for all its cars."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.env.env_runner import ENV_STEP_FAILURE
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer
from ray.rllib.utils import metrics

from rlgym_bridge.training.rllib.env import Matches, matches_of, seed_of

COUNTS: Final = "matches"
"""Key in a runner's metrics: sums of what its environment counted, and of `episode_reward` over the
`finished_cars` of trained modules."""

NOBODY: Final = ""  # in place of a module's name


@dataclass
class _MatchEpisode:
    """The episode that a match is in: who plays each car, rewards so far `(cars,)`, steps so far."""

    id_: str
    modules: Sequence[str]
    returns: np.ndarray
    steps: int = 0


class _Piece(NamedTuple):
    """A part of a sample: rows `start` to `stop` of one match, of one episode."""

    match: int
    episode: _MatchEpisode
    first: int  # step of the episode that row `start` is
    start: int
    stop: int
    last: np.ndarray  # (cars, size), what is seen after the last row
    terminated: bool
    truncated: bool


class MatchRunner(MultiAgentEnvRunner):
    """Plays all matches of a runner together; `env_config` is `MatchEnv`'s.

        PPOConfig().environment(MatchEnv, env_config={...}).env_runners(env_runner_cls=MatchRunner)

    Only the cars of modules that are trained are in the episodes that it returns. Connectors of one's own
    between environment and module are refused, as are modules with a state. Of callbacks `on_sample_end`
    alone is called.
    """

    _obs: np.ndarray  # (matches, cars, size), what the next actions are chosen on

    def make_env(self) -> None:
        """Make the matches; raises ValueError for connectors of its own, and where they cannot be made."""
        if self.config._env_to_module_connector or self.config._module_to_env_connector:
            raise ValueError(
                "MatchRunner runs no connectors between environment and module, and the config has some; put "
                "what they do into the module or the observation builder, or use RLlib's MultiAgentEnvRunner"
            )
        seed = seed_of(self.config.env_config) if self._seed is None else self._seed
        self.env = Matches(self.make_matches(self.config.num_envs_per_env_runner), seed)
        self.num_envs = self.env.num_envs
        self._needs_initial_reset = True

    def make_module(self) -> None:
        """Make the modules; raises ValueError where they have a state."""
        super().make_module()
        if self.module is not None and self.module.is_stateful():
            raise ValueError(
                "MatchRunner plays no modules that keep a state; use RLlib's MultiAgentEnvRunner"
            )

    def make_matches(self, matches: int) -> Any:
        """Return the matches, a `VectorEnv`."""
        return matches_of(self.config.env_config, matches)

    def modules_of(self, match: int, episode: MultiAgentEpisode) -> Sequence[str]:
        """Return who plays each car of a match in an episode that begins: `policy_mapping_fn` says so.

        A subclass may name cars by `NOBODY`: its matches play them, whatever action they are given.
        """
        return [self.config.policy_mapping_fn(agent, episode) for agent in self.env.agents]

    def _sample(
        self,
        *,
        num_timesteps: int | None = None,
        num_episodes: int | None = None,
        explore: bool,
        random_actions: bool = False,
        force_reset: bool = False,
    ) -> list[MultiAgentEpisode]:
        """Play; the arguments are those of `sample`."""
        if force_reset or num_episodes is not None or self._needs_initial_reset:
            self._begin_all()
            self._needs_initial_reset = num_episodes is not None
        rows: dict[str, list[np.ndarray]] = {}
        pieces: list[_Piece] = []
        starts = [(0, episode.steps) for episode in self._episodes]
        count = steps = 0
        by_agents = self.config.count_steps_by == "agent_steps"
        while count < num_timesteps if num_timesteps is not None else len(pieces) < (num_episodes or 0):
            row = {Columns.OBS: self._obs.copy()} | self._act(explore, random_actions)
            count += int(self._learned.sum()) if by_agents else self.num_envs
            found = self._try_env_step(row[Columns.ACTIONS])
            if found == ENV_STEP_FAILURE:  # the matches have been made anew
                self._begin_all()
                self._needs_initial_reset = num_episodes is not None
                rows, pieces, count, steps = {}, [], 0, 0
                starts = [(0, 0)] * self.num_envs
                continue
            self._obs, row[Columns.REWARDS], terminated, truncated, final_obs = found
            for name, array in row.items():
                rows.setdefault(name, []).append(array)
            steps += 1
            ended = np.flatnonzero(terminated | truncated)
            for last, match in zip(final_obs, ended.tolist(), strict=True):
                start, first = starts[match]
                flags = bool(terminated[match]), bool(truncated[match])
                pieces.append(_Piece(match, self._episodes[match], first, start, steps, last, *flags))
                self._begin(match)
                starts[match] = steps, 0
            if len(ended):
                self._group()
        whole = len(pieces)
        if num_timesteps is not None:
            pieces += [
                _Piece(match, self._episodes[match], first, start, steps, self._obs[match], False, False)
                for match, (start, first) in enumerate(starts)
                if start < steps
            ]
        columns = {name: np.stack(arrays) for name, arrays in rows.items()}
        self._log(columns, pieces, whole)
        return list(self._episodes_of(columns, pieces))

    def _begin_all(self) -> None:
        self._obs, _ = self._try_env_reset()  # the seed was given to the matches when they were made
        self._episodes: list[_MatchEpisode] = [None] * self.num_envs  # type: ignore[list-item]
        for match in range(self.num_envs):
            self._begin(match)
        self._group()

    def _begin(self, match: int) -> None:
        """Begin an episode; who plays in it is asked of a new `MultiAgentEpisode`, as RLlib does."""
        new = MultiAgentEpisode(agent_to_module_mapping_fn=self.config.policy_mapping_fn)
        modules = self.modules_of(match, new)
        self._episodes[match] = _MatchEpisode(new.id_, modules, np.zeros(len(modules)))

    def _group(self) -> None:
        """Find the rows of `(matches * cars)` that each module plays."""
        names = np.array([episode.modules for episode in self._episodes])
        trained = [name for name in np.unique(names).tolist() if _is_trained(self.config, name)]
        self._learned = np.isin(names, trained)
        if not trained:
            raise ValueError(
                f"no car is played by a module that is trained: policies_to_train is "
                f"{self.config.policies_to_train}, and the modules are {', '.join(np.unique(names))}"
            )
        flat = names.reshape(-1)
        self._rows_of = {name: np.flatnonzero(flat == name) for name in np.unique(flat).tolist() if name}

    @torch.no_grad()
    def _act(self, explore: bool, random_actions: bool) -> dict[str, np.ndarray]:
        """Return everybody's actions, `(matches, cars, ...)`, and what the modules said of them."""
        matches, cars, size = self._obs.shape
        if random_actions:
            spaces = self.env.single_action_spaces
            drawn = [[spaces[agent].sample() for agent in self.env.agents] for _ in range(matches)]
            return {Columns.ACTIONS: np.array(drawn)}
        seen = torch.from_numpy(np.ascontiguousarray(self._obs).reshape(-1, size))
        found: dict[str, np.ndarray] = {}
        for name, where in self._rows_of.items():
            module = self.module[name]
            batch = {Columns.OBS: seen[where].to(self._device)}
            out = module.forward_exploration(batch) if explore else module.forward_inference(batch)
            for column, values in _chosen(module, dict(out), explore).items():
                given = values.cpu().numpy()
                if column not in found:
                    found[column] = np.zeros((matches * cars, *given.shape[1:]), given.dtype)
                found[column][where] = given
        found[metrics.WEIGHTS_SEQ_NO] = np.full(matches * cars, self._weights_seq_no)
        return {column: values.reshape(matches, cars, *values.shape[1:]) for column, values in found.items()}

    def _episodes_of(self, columns: Mapping[str, np.ndarray], pieces: list[_Piece]) -> Iterator[Any]:
        """Yield the pieces as episodes of those cars that are learned from."""
        for piece in pieces:
            seats = {
                car: module
                for car, module in enumerate(piece.episode.modules)
                if _is_trained(self.config, module)
            }
            if seats:
                rows = slice(piece.start, piece.stop)
                mine = {name: array[rows, piece.match] for name, array in columns.items()}
                yield _as_episode(mine, piece, seats, self.env)

    def _log(self, columns: dict[str, np.ndarray], pieces: list[_Piece], whole: int) -> None:
        """Count steps and episodes under RLlib's names; the first pieces, `whole`, end an episode."""
        log = self.metrics.log_value
        agents: dict[str, int] = dict.fromkeys(self.env.agents, 0)
        modules: dict[str, int] = {}
        steps = 0
        counts = {"episode_reward": 0.0, "finished_cars": 0.0}
        for number, (match, episode, _, start, stop, *_) in enumerate(pieces):
            steps += stop - start
            episode.steps += stop - start
            episode.returns += columns[Columns.REWARDS][start:stop, match].sum(0)
            for car, (agent, module) in enumerate(zip(self.env.agents, episode.modules, strict=True)):
                if not _is_trained(self.config, module):
                    continue
                agents[agent] += stop - start
                modules[module] = modules.get(module, 0) + stop - start
                if number < whole:
                    counts["episode_reward"] += float(episode.returns[car])
                    counts["finished_cars"] += 1
            if number < whole:
                returns = dict(zip(self.env.agents, episode.returns.tolist(), strict=True))
                of_modules: dict[str, float] = {}
                for module, gained in zip(episode.modules, episode.returns.tolist(), strict=True):
                    of_modules[module] = of_modules.get(module, 0.0) + gained
                played = dict.fromkeys(self.env.agents, episode.steps)
                self._log_episode_metrics(
                    episode.steps, sum(returns.values()), 0.0, returns, of_modules, played
                )
        self._log_env_steps(self._metrics_num_env_steps_sampled, steps)
        rows: list[tuple[Any, Any, int]] = [
            (metrics.NUM_ENV_STEPS_SAMPLED, metrics.NUM_ENV_STEPS_SAMPLED_LIFETIME, steps),
            (metrics.NUM_EPISODES, metrics.NUM_EPISODES_LIFETIME, whole),
        ]
        for now, ever, of_each in (
            (metrics.NUM_AGENT_STEPS_SAMPLED, metrics.NUM_AGENT_STEPS_SAMPLED_LIFETIME, agents),
            (metrics.NUM_MODULE_STEPS_SAMPLED, metrics.NUM_MODULE_STEPS_SAMPLED_LIFETIME, modules),
        ):
            rows += [((now, name), (ever, name), count) for name, count in of_each.items()]
        for now, ever, count in rows:
            log(now, count, reduce="sum")
            log(
                ever,
                count,
                reduce="lifetime_sum",
                with_throughput=ever == metrics.NUM_ENV_STEPS_SAMPLED_LIFETIME,
            )
        for name, value in (counts | self.env.env.take_counts()).items():
            log((COUNTS, name), value, reduce="sum")


def _as_episode(
    columns: Mapping[str, np.ndarray], piece: _Piece, seats: Mapping[int, str], env: Any
) -> MultiAgentEpisode:
    """Return a piece as an episode of some cars and their modules, without a lookback buffer.

    `columns` are `(steps, cars, ...)`: obs, actions, rewards, and what modules said; `env` is a `Matches`.
    """
    steps, id_, first = piece.stop - piece.start, piece.episode.id_, piece.first
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
    episode.is_terminated, episode.is_truncated = piece.terminated, piece.truncated
    for car, agent in agents.items():
        mine = {
            name: InfiniteLookbackBuffer(np.ascontiguousarray(array[:, car]))
            for name, array in columns.items()
            if name != Columns.OBS
        }
        seen = np.concatenate([columns[Columns.OBS][:, car], piece.last[None, car]])
        episode.agent_episodes[agent] = SingleAgentEpisode(
            id_=f"{id_}-{agent}",  # the same in all chunks: who puts them together asks
            observations=InfiniteLookbackBuffer(seen),
            actions=mine.pop(Columns.ACTIONS),
            rewards=mine.pop(Columns.REWARDS),
            infos=InfiniteLookbackBuffer([{}] * (steps + 1)),
            observation_space=episode.observation_space[agent],
            action_space=episode.action_space[agent],
            terminated=piece.terminated,
            truncated=piece.truncated,
            extra_model_outputs=mine,
            t_started=first,
            len_lookback_buffer=0,
            agent_id=agent,
            module_id=seats[car],
            multi_agent_episode_id=id_,
        )
        episode.env_t_to_agent_t[agent] = InfiniteLookbackBuffer(list(range(first, first + steps + 1)))
    return episode


def _chosen(module: Any, out: dict[str, Any], explore: bool) -> dict[str, Any]:
    """Return what a module gave with the actions that are chosen, as RLlib's connector chooses them."""
    if Columns.ACTIONS in out:
        return out
    if explore:
        dist = module.get_exploration_action_dist_cls().from_logits(out[Columns.ACTION_DIST_INPUTS])
    else:
        kind = module.get_inference_action_dist_cls()
        dist = kind.from_logits(out[Columns.ACTION_DIST_INPUTS]).to_deterministic()
    actions = dist.sample()
    return out | {Columns.ACTIONS: actions, Columns.ACTION_LOGP: dist.logp(actions)}


def _is_trained(config: Any, module: str) -> bool:
    chosen = config.policies_to_train
    if module == NOBODY:
        return False
    if chosen is None or callable(chosen):
        return chosen is None or bool(chosen(module, None))
    return module in chosen
