"""Env runners of self-play: who sits where is as in the collectors of a single machine."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from rlgym_bridge.rllib.runner import NOBODY, MatchRunner
from training.returns import RunningScale
from training.seats import rival_sides, seats_of, snapshot_sides
from training.self_play import SelfPlayMatches

MAIN: Final = "main"
SNAPSHOT: Final = "snapshot"
"""Modules: the policy in training, and the older version that it meets in this iteration."""


class SelfPlayRunner(MatchRunner):
    """Plays the policy against itself, an older version, and the rival; `env_config` holds `settings`."""

    def make_matches(self, matches: int) -> Any:
        """Return the matches of a run."""
        settings = self.config.env_config["settings"]
        seats = np.full((matches, settings.cars), MAIN, object)
        seats[seats_of(snapshot_sides(settings), settings)] = SNAPSHOT
        seats[seats_of(rival_sides(settings), settings)] = NOBODY
        self._seats: list[list[str]] = seats.tolist()
        self._scale: RunningScale | None = None
        return SelfPlayMatches(settings)

    def modules_of(self, match: int, episode: Any) -> Sequence[str]:
        """Return who plays each car of a match."""
        return self._seats[match]

    def sample(self, **how: Any) -> list[Any]:
        """Play; the arguments are RLlib's."""
        episodes: list[Any] = super().sample(**how)
        if self.config.env_config["settings"].normalise_obs:
            # The last observation of an episode was not acted on.
            seen = [one.observations.data[:-1] for many in episodes for one in many.agent_episodes.values()]
            obs = np.concatenate(seen)
            self._scale = self._scale or RunningScale.of_size(obs.shape[1])
            self._scale.update(obs)
        return episodes

    def take(self, states: Mapping[str, Any]) -> None:
        """Set weights of modules."""
        for name, state in states.items():
            self.module[name].set_state(state)

    def take_scale(self) -> RunningScale | None:
        """Return mean and deviation of what was learned from since the last call; None without any."""
        scale, self._scale = self._scale, None
        return scale
