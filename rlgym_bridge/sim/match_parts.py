"""The components of many matches one by one: real RLGym calls on real RLGym objects."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from rlgym.rocket_league.api import GameState
from rlgym.rocket_league.sim import RocketSimEngine

from rlgym_bridge.components.batch_base import foreign_part
from rlgym_bridge.components.batching import control_rows, observe
from rlgym_bridge.components.mutator_base import BatchMutator, blank_state
from rlgym_bridge.components.reward_base import name_of_bad
from rlgym_bridge.components.spec import Components
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.game import HITBOXES
from rlgym_bridge.rlgym_state import from_rlgym, to_rlgym
from rlgym_bridge.sim.batch_parts import Judgement
from rlgym_bridge.state import MatchState, derive


class MatchParts:
    """Components of their own for every match, called as `RLGym` calls them.

    Args:
        components: Of each match.
        team_sizes: Cars of blue and orange; what the mutators make has to agree.
        tick_skip: Ticks that a single row `(8,)` is held.
        hitbox: Of all cars, set before the mutator is asked.

    Attributes:
        reads: None: they may read everything.
    """

    reads = None

    def __init__(
        self, components: Sequence[Components], team_sizes: tuple[int, int], tick_skip: int, hitbox: int
    ) -> None:
        if any(parts.state_mutator is None for parts in components):
            raise ValueError("components have no state_mutator, expected one that begins an episode")
        self._every = components
        self._sizes, self._tick_skip, self._hitbox = team_sizes, tick_skip, hitbox
        # RLGym's constructor makes one, before the first reset makes the next.
        self._infos: list[dict[str, Any]] = [self._provided(parts, {}) for parts in components]
        self._games: list[GameState[Any] | None] = [None] * len(components)
        self._base = RocketSimEngine[Any]().create_base_state

    def new_states(self, matches: np.ndarray, random: np.random.Generator) -> MatchState:
        """Return states that begin episodes; foreign mutators draw from where they like."""
        made = []
        for match in matches.tolist():
            parts, game = self._every[match], self._base()
            info = self._infos[match] = self._provided(parts, self._infos[match])
            assert parts.state_mutator is not None  # checked by the constructor
            if isinstance(parts.state_mutator, BatchMutator) and foreign_part(parts.state_mutator) is None:
                # Ours fills the cars that there are; RLGym's base state has none.
                one = blank_state(*self._sizes, 1, self._hitbox)
                parts.state_mutator.apply_batch(one, random)
                derive(one)
                made.append(one.buffer)
                continue
            parts.state_mutator.apply(game, info)
            for car in game.cars.values():
                if car.hitbox_type not in (0, self._hitbox):
                    raise ValueError(
                        f"{type(parts.state_mutator).__name__} made a car with the hitbox "
                        f"{HITBOXES[int(car.hitbox_type)].name}, expected {HITBOXES[self._hitbox].name} "
                        "(the setting hitbox)"
                    )
                car.hitbox_type = self._hitbox
            one = from_rlgym(game)
            sizes = (one.layout.blue, one.layout.orange)
            if sizes != self._sizes:
                raise ValueError(
                    f"{type(parts.state_mutator).__name__} made {sizes[0]} blue and {sizes[1]} orange cars, "
                    f"expected {self._sizes[0]} and {self._sizes[1]} (team_sizes); RLGym's "
                    "MutatorSequence(FixedTeamSizeMutator(blue, orange), ...) makes cars"
                )
            made.append(one.buffer)
        return MatchState(*self._sizes, len(made), np.concatenate(made))

    def begin(self, state: MatchState, matches: np.ndarray) -> np.ndarray:
        """Begin the components' episodes in some matches, and return their observations."""
        agents, seen = list(state.agents), []
        for match in matches.tolist():
            parts, game = self._every[match], to_rlgym(state, match)
            self._games[match] = game
            provider = parts.shared_info_provider
            if provider is not None:
                self._infos[match] = provider.set_state(agents, game, self._infos[match])
            for part in (
                parts.obs_builder, parts.parser, parts.termination_cond, parts.truncation_cond,
                parts.reward_fn,
            ):  # fmt: skip
                if part is not None:
                    part.reset(agents, game, self._infos[match])
            seen.append(self._observe(parts, match, state))
        return np.concatenate(seen)

    def rows(self, actions: np.ndarray, state: MatchState) -> np.ndarray:
        """Return control rows `(matches, cars, ticks, 8)`.

        Raises:
            ValueError: Matches differ in the number of ticks: they go on together.
        """
        seats, every = range(state.layout.cars), []
        for match, parts in enumerate(self._every):
            given = control_rows(
                parts.parser, actions[match : match + 1], seats, self._one(state, match),
                self._game(match), self._infos[match],
            )  # fmt: skip
            name = type(parts.parser).__name__
            every.append([checked_rows(one, self._tick_skip, name) for one in given])
        lengths = {len(one) for rows in every for one in rows}
        if len(lengths) > 1:
            raise ValueError(
                f"{type(self._every[0].parser).__name__} gave rows for {sorted(lengths)} ticks, expected the "
                "same number for all cars and matches of a step"
            )
        return np.array(every, np.float32)

    def judge(self, before: MatchState, after: MatchState) -> Judgement:
        """Observe a step's end, and ask conditions and rewards about it."""
        agents = list(after.agents)
        seen, flags = [], np.zeros((2, after.matches), bool)
        rewards = np.zeros((after.matches, len(agents)), np.float32)
        for match, parts in enumerate(self._every):
            game = self._games[match] = to_rlgym(after, match)
            provider = parts.shared_info_provider
            if provider is not None:
                self._infos[match] = provider.step(agents, game, self._infos[match])
            info = self._infos[match]
            seen.append(self._observe(parts, match, after))
            said: list[dict[Hashable, bool]] = []
            for number, condition in enumerate((parts.termination_cond, parts.truncation_cond)):
                done = (
                    dict.fromkeys(agents, False)
                    if condition is None
                    else condition.is_done(agents, game, info)
                )
                said.append(done)
                flags[number, match] = any(done.values())
            if parts.reward_fn is not None:
                given = parts.reward_fn.get_rewards(agents, game, *said, info)
                if missing := [agent for agent in agents if agent not in given]:
                    raise ValueError(
                        f"{type(parts.reward_fn).__name__} gave no reward for {', '.join(missing)} in match "
                        f"{match}, expected one for each of {', '.join(agents)}"
                    )
                rewards[match] = [given[agent] for agent in agents]
                self._check(parts, rewards[match], agents, match)
        return np.concatenate(seen), flags[0], flags[1], rewards

    def _observe(self, parts: Components, match: int, state: MatchState) -> np.ndarray:
        if parts.obs_builder is None:
            raise ValueError("components have no obs_builder, expected one")
        one = self._one(state, match)
        seats = range(state.layout.cars)
        return observe(parts.obs_builder, seats, one, self._game(match), self._infos[match])

    def _game(self, match: int) -> GameState[Any]:
        game = self._games[match]
        assert game is not None  # set by begin
        return game

    @staticmethod
    def _one(state: MatchState, match: int) -> MatchState:
        layout = state.layout
        return MatchState(layout.blue, layout.orange, 1, state.buffer[match : match + 1])

    @staticmethod
    def _check(parts: Components, rewards: np.ndarray, agents: Sequence[str], match: int) -> None:
        assert parts.reward_fn is not None  # it gave them
        if bad := name_of_bad(parts.reward_fn, rewards[None], agents, match):
            raise ValueError(f"{bad}, expected a finite number")

    @staticmethod
    def _provided(parts: Components, info: dict[str, Any]) -> dict[str, Any]:
        provider = parts.shared_info_provider
        return {} if provider is None else provider.create(info)
