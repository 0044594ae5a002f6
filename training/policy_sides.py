"""Let a player drive one team's cars in many matches at once, with its own observation and parser."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlgym_bridge.components.batch_form import act_within, find_masks, observe, works_in_batches
from rlgym_bridge.components.episode import Episode
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.state import MatchState


class BatchSide:
    """One team of all matches, where its components work in batches."""

    def __init__(self, player_spec: PlayerSpec, seats: Sequence[int], seed: int) -> None:
        parts = player_spec.components()
        self._obs: Any = parts.obs_builder
        self._parser: Any = parts.parser
        self._policy = player_spec.policy()
        self._seats = list(seats)
        self._policy.reset(self._seats, seed)

    def begin(self, state: MatchState, matches: Sequence[int]) -> None:
        """Begin at a kickoff: a policy with memory forgets what it knew of these matches."""
        if isinstance(self._policy, NetworkPolicy):
            self._policy.forget(matches)

    def rows(self, state: MatchState) -> np.ndarray:
        """Return control rows `(matches, seats, ticks, 8)`."""
        obs = None if self._obs is None else observe(self._obs, self._seats, state)
        masks = find_masks(self._parser, state)
        actions = act_within(self._policy, obs, state, None if masks is None else masks[:, self._seats])
        rows: np.ndarray = self._parser.parse_batch(actions)
        if not (np.abs(rows) <= 1).all():
            for one in rows.reshape(-1, *rows.shape[2:]):
                checked_rows(one, 1, type(self._parser).__name__)
        return rows


class EpisodeSide:
    """One team, match by match, as in live play: for components without a batch form."""

    def __init__(self, player_spec: PlayerSpec, seats: Sequence[int], seed: int, matches: int) -> None:
        self._episodes = [Episode(player_spec) for _ in range(matches)]
        self._seats, self._seed = list(seats), seed
        self._fresh = [True] * matches

    def begin(self, state: MatchState, matches: Sequence[int]) -> None:
        """Begin at a kickoff."""
        for match in matches:
            self._seed += 1
            self._episodes[match].reset(_one(state, match), self._seats, self._seed)
            self._fresh[match] = True

    def rows(self, state: MatchState) -> np.ndarray:
        """Return control rows `(matches, seats, ticks, 8)`."""
        every = []
        for match, episode in enumerate(self._episodes):
            one = _one(state, match)
            if not self._fresh[match]:
                episode.step(one)
            self._fresh[match] = False
            every.append(episode.decide(one))
        return np.array(every, np.float32)


def _one(state: MatchState, match: int) -> MatchState:
    layout = state.layout
    return MatchState(layout.blue, layout.orange, 1, state.buffer[match : match + 1].copy())


Side = BatchSide | EpisodeSide


def make_side(player_spec: PlayerSpec, seats: Sequence[int], seed: int, matches: int) -> Side:
    """Return what drives some cars of all matches: in batches where the player's components can.

    Args:
        player_spec: The player.
        seats: Its cars, by their place in the state.
        seed: Of its actions.
        matches: How many there are.
    """
    parts = player_spec.components()
    ours = [one for one in (parts.obs_builder, parts.parser) if one is not None]
    if parts.shared_info_provider is None and all(map(works_in_batches, ours)):
        return BatchSide(player_spec, seats, seed)
    return EpisodeSide(player_spec, seats, seed, matches)
