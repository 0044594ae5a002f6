"""Run self-play matches as RLlib's env runner, with opponents as in training on one machine."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from ray.rllib.utils.metrics import NUM_AGENT_STEPS_SAMPLED

from rlgym_bridge.components.user_errors import explain_error
from rlgym_bridge.rllib.match_runner import NOBODY, MatchRunner
from rlgym_bridge.training.returns import RunningScale
from rlgym_bridge.training.selfplay.matches import SelfPlayMatches
from rlgym_bridge.training.selfplay.sides import cars_of_sides, rival_sides, snapshot_sides

MAIN: Final = "main"
SNAPSHOT: Final = "snapshot"
"""Modules: the policy in training, and the older version that it meets in this iteration."""


_FULL: Final = 2**40  # steps


class SelfPlayRunner(MatchRunner):
    """Plays the policy against itself, an older version, and rivals; `env_config` holds `settings`."""

    _fault = ""

    def make_matches(self, matches: int) -> Any:
        """Return the matches of a run."""
        settings = self.config.env_config["settings"]
        seats = np.full((matches, settings.cars), MAIN, object)
        seats[cars_of_sides(snapshot_sides(settings), settings)] = SNAPSHOT
        for sides in rival_sides(settings).values():
            seats[cars_of_sides(sides, settings)] = NOBODY
        self._seats: list[list[str]] = seats.tolist()
        self._steps = settings.rollout_steps * int((seats == MAIN).sum())
        if self.worker_index:  # its errors are told by who trains
            logging.getLogger("ray.rllib").setLevel(logging.CRITICAL)
        self._scale: RunningScale | None = None
        return SelfPlayMatches(settings)

    def modules_of(self, match: int, episode: Any) -> Sequence[str]:
        """Return who plays each car of a match."""
        return self._seats[match]

    def sample(self, **how: Any) -> list[Any]:
        """Play `rollout_steps` steps of every match, or what RLlib's own arguments say."""
        how = how or {"num_timesteps": self._steps}
        try:
            episodes: list[Any] = super().sample(**how)
        except (Exception, SystemExit) as error:
            # Raised here it would end this process, and RLlib begin another one for ever. A batch that seems
            # full lets the one who trains ask what happened.
            self._fault = explain_error(error.__cause__ or error)
            for agent in self.env.agents:  # RLlib adds up all; one without any is nan
                self.metrics.log_value((NUM_AGENT_STEPS_SAMPLED, agent), _FULL, reduce="sum")
            return []
        if self.config.env_config["settings"].normalise_obs:
            # The last observation of an episode was not acted on.
            seen = [one.observations.data[:-1] for many in episodes for one in many.agent_episodes.values()]
            obs = np.concatenate(seen)
            self._scale = self._scale or RunningScale.of_size(obs.shape[1])
            self._scale.update(obs)
        return episodes

    def renew_rivals(self) -> None:
        """Let rivals that are training runs play their newest checkpoints from now on."""
        try:
            self.env.env.renew_rivals()
        except (Exception, SystemExit) as error:  # told by `report`, see `sample`
            self._fault = explain_error(error)

    def take(self, states: Mapping[str, Any]) -> None:
        """Set weights of modules."""
        for name, state in states.items():
            tensors = {key: torch.as_tensor(array) for key, array in state.items()}
            self.module[name].load_state_dict(tensors, strict=False)

    def report(self) -> tuple[str, RunningScale | None]:
        """Return what stopped a sample, and mean and deviation of what was learned from.

        The first is empty where nothing did, the second None where nothing was, or is normalised; both since
        the last call.
        """
        found = self._fault, self._scale
        self._fault, self._scale = "", None
        return found
