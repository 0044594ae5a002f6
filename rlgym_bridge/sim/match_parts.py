"""Call the components of many matches match by match: real RLGym calls on real RLGym objects."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rlgym.rocket_league.api import GameState

from rlgym_bridge.components.batch_form import foreign_part
from rlgym_bridge.components.episode import ComponentCalls
from rlgym_bridge.components.mutator_base import BatchMutator, apply_mutator, blank_state
from rlgym_bridge.components.reward_base import name_of_bad
from rlgym_bridge.components.spec import Components
from rlgym_bridge.components.user_errors import locate_method
from rlgym_bridge.controls import checked_plan
from rlgym_bridge.derived_fields import derive
from rlgym_bridge.game import HITBOXES
from rlgym_bridge.rlgym_state import base_state, from_rlgym
from rlgym_bridge.sim.batch_parts import Judgement
from rlgym_bridge.sim.episode_hitboxes import draw_hitboxes
from rlgym_bridge.state import MatchState


class MatchParts:
    """Components of their own for every match, called as `RLGym` calls them.

    Args:
        components: Of each match.
        team_sizes: Cars of blue and orange; what the mutators make has to agree.
        tick_skip: See `VectorEnv`.
        hitboxes: Of which each car's is drawn for each episode, before the mutator runs.
    """

    def __init__(
        self,
        components: Sequence[Components],
        team_sizes: tuple[int, int],
        tick_skip: int | None,
        hitboxes: Sequence[int],
    ) -> None:
        if any(parts.state_mutator is None for parts in components):
            raise ValueError("components have no state_mutator, expected one that begins an episode")
        self._calls = [ComponentCalls(parts) for parts in components]
        self._sizes, self._tick_skip, self._hitboxes = team_sizes, tick_skip, hitboxes

    def new_states(self, matches: np.ndarray, random: np.random.Generator) -> MatchState:
        """Return states that begin episodes, one for each match.

        Args:
            matches: `(n,)` int, the matches that begin.
            random: Generator of our mutators; foreign ones draw from their own.

        Raises:
            ValueError: A mutator made cars of another hitbox, other team sizes, or a value that no match has.
        """
        made = []
        for match in matches.tolist():
            calls, game = self._calls[match], base_state()
            calls.renew_shared_info()
            mutator = calls.parts.state_mutator
            assert mutator is not None  # checked by the constructor
            if isinstance(mutator, BatchMutator) and foreign_part(mutator) is None:
                # Ours fills the cars that there are; RLGym's base state has none.
                state = blank_state(*self._sizes, 1)
                state.car_hitbox[:] = draw_hitboxes(self._hitboxes, state.car_hitbox.shape, random)
                mutator.apply_batch(state, random)
                derive(state)
            else:
                apply_mutator(mutator, game, calls.shared_info)
                state = self._checked(game, type(mutator).__name__, random)
            made.append(state.buffer)
        return MatchState(*self._sizes, len(made), np.concatenate(made))

    def begin(self, state: MatchState, matches: np.ndarray, seen: MatchState) -> np.ndarray:
        """Begin the components' episodes in some matches.

        Args:
            state: All matches.
            matches: `(n,)` int, those that begin.
            seen: The same state: foreign components see no noise.

        Returns:
            `(n, cars, size)` float32 observations.
        """
        observations = []
        for match in matches.tolist():
            self._calls[match].reset(_match_of(state, match), range(state.layout.cars))
            observations.append(self._observe(match, state.agents))
        return np.concatenate(observations)

    def rows(self, actions: np.ndarray, state: MatchState) -> np.ndarray:
        """Return the control rows of a step.

        Args:
            actions: `(matches, cars)` or `(matches, cars, k)`.
            state: Not read: each match's components know their own.

        Returns:
            `(matches, cars, ticks, 8)` float32.

        Raises:
            ValueError: Matches differ in the number of ticks: they go on together.
        """
        every = []
        for match, calls in enumerate(self._calls):
            name = type(calls.parts.parser).__name__
            given = calls.parse(actions[match : match + 1])
            every.append([checked_plan(rows, self._tick_skip, name) for rows in given])
        lengths = {len(rows) for match_rows in every for rows in match_rows}
        if len(lengths) > 1:
            name = type(self._calls[0].parts.parser).__name__
            raise ValueError(
                f"{name} gave rows for {sorted(lengths)} ticks, expected the same number for all cars and "
                "matches of a step"
            )
        return np.array(every, np.float32)

    def judge(self, before: MatchState, after: MatchState, seen: MatchState) -> Judgement:
        """Observe a step's end, and ask conditions and rewards about it.

        Args:
            before: Not read: foreign components keep what they need.
            after: All matches at the end of the step.
            seen: The same state: foreign components see no noise.
        """
        agents = list(after.agents)
        observations, flags = [], np.zeros((2, after.matches), bool)
        rewards = np.zeros((after.matches, len(agents)), np.float32)
        for match, calls in enumerate(self._calls):
            calls.step(_match_of(after, match))
            observations.append(self._observe(match, agents))
            verdict = calls.judge()
            flags[:, match] = any(verdict.terminated.values()), any(verdict.truncated.values())
            if calls.parts.reward_fn is None:
                continue
            name = type(calls.parts.reward_fn).__name__
            if missing := [agent for agent in agents if agent not in verdict.rewards]:
                raise ValueError(
                    f"{name} gave no reward for {', '.join(missing)} in match {match}, expected one for each "
                    f"of {', '.join(agents)}{locate_method(calls.parts.reward_fn, 'get_rewards')}"
                )
            rewards[match] = [verdict.rewards[agent] for agent in agents]
            if bad := name_of_bad(calls.parts.reward_fn, rewards[match : match + 1], agents, match):
                raise ValueError(f"{bad}, expected a finite number")
        return np.concatenate(observations), flags[0], flags[1], rewards

    def _observe(self, match: int, agents: Sequence[str]) -> np.ndarray:
        """Return the checked observations of a match, `(1, cars, size)`."""
        calls = self._calls[match]
        observations = calls.observe()
        if observations is None:
            raise ValueError("components have no obs_builder, expected one")
        finite = np.isfinite(observations)
        if not finite.all():
            _, car, number = np.argwhere(~finite)[0].tolist()
            raise ValueError(
                f"{type(calls.parts.obs_builder).__name__} gave {observations[0, car, number]} as number "
                f"{number} of what {agents[car]} sees in match {match}, expected a finite number"
            )
        return observations

    def _checked(self, game: GameState[Any], mutator: str, random: np.random.Generator) -> MatchState:
        """Return what a foreign mutator made, with hitboxes of the setting.

        Raises:
            ValueError: Cars have another hitbox, or the teams other sizes.
        """
        drawn = draw_hitboxes(self._hitboxes, (1, len(game.cars)), random)[0].tolist()
        for car, hitbox in zip(game.cars.values(), drawn, strict=True):
            if car.hitbox_type not in (0, *self._hitboxes):
                setting = "hitbox" if len(self._hitboxes) == 1 else "hitboxes"
                raise ValueError(
                    f"{mutator} made a car with the hitbox {HITBOXES[int(car.hitbox_type)].name}, expected "
                    f"{' or '.join(HITBOXES[number].name for number in sorted(set(self._hitboxes)))} "
                    f"(the setting {setting})"
                )
            if car.hitbox_type == 0:  # the mutator left it as it was
                car.hitbox_type = hitbox
        state = from_rlgym(game)
        sizes = (state.layout.blue, state.layout.orange)
        if sizes != self._sizes:
            raise ValueError(
                f"{mutator} made {sizes[0]} blue and {sizes[1]} orange cars, expected {self._sizes[0]} and "
                f"{self._sizes[1]} (team_sizes); RLGym's MutatorSequence(FixedTeamSizeMutator(blue, orange), "
                "...) makes cars"
            )
        return state


def _match_of(state: MatchState, match: int) -> MatchState:
    """Return one match as a view of the state."""
    layout = state.layout
    return MatchState(layout.blue, layout.orange, 1, state.buffer[match : match + 1])
