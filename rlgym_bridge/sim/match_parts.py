"""Call components of which some have no batch form: those match by match, all others in batches.

Sums of rewards and joined conditions are opened, so that their parts are called each in its own way. Within a
match the calls of third-party components are in RLGym's order.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rlgym.api import DoneCondition

from rlgym_bridge.components.batch_form import join_columns, open_parts, works_in_batches
from rlgym_bridge.components.episode import ComponentCalls
from rlgym_bridge.components.mutator_base import apply_mutator
from rlgym_bridge.components.reward_base import checked_shape, name_parts, split_rewards, weigh_parts
from rlgym_bridge.components.rlgym_state import base_state, car_of, from_rlgym
from rlgym_bridge.components.rlgym_types import Game
from rlgym_bridge.components.spec import Components
from rlgym_bridge.components.user_errors import locate_method
from rlgym_bridge.controls import checked_plan
from rlgym_bridge.game import HITBOXES
from rlgym_bridge.sim import batch_parts
from rlgym_bridge.state import MatchState


class _Node:
    """A reward or a condition of all matches, with nodes of its parts where `open_parts` opens it.

    `every` has each match's component; one that works in batches is called once for all: the first. `last`
    are the latest answers of its parts, `(N, cars)` each.
    """

    def __init__(self, every: Sequence[Any]) -> None:
        self.every, self.first = every, every[0]
        self.is_batch = works_in_batches(self.first)
        opened = [] if self.is_batch else [open_parts(one) for one in every]
        self.parts = [_Node(parts) for parts in zip(*opened, strict=True)]
        self.last: list[np.ndarray] = []

    def leaves(self) -> "list[_Node]":
        """Return the nodes that are asked themselves, in RLGym's order of calls."""
        return [leaf for part in self.parts for leaf in part.leaves()] or [self]

    def ask(
        self, batch: Callable[[Any], np.ndarray], single: Callable[[Sequence[Any]], np.ndarray],
        after: MatchState,
    ) -> np.ndarray:  # fmt: skip
        """Return a step's answers, `(N, cars)`: `batch` asks the first component, `single` all."""
        if self.is_batch:
            return batch(self.first)
        if not self.parts:
            return single(self.every)
        self.last = [part.ask(batch, single, after) for part in self.parts]
        return join_columns(self.first, self.last, after.layout)

    def split(self, rewards: np.ndarray) -> list[np.ndarray]:
        """Return what each part of a reward gave in the latest step, which were `rewards` `(N, cars)`."""
        if not self.parts:
            return split_rewards(self.first, rewards)
        pairs = zip(self.parts, self.last, strict=True)
        return [numbers for part, given in pairs for numbers in part.split(given)]

    def name(self) -> list[tuple[str, float]]:
        """Return names and weights of these parts."""
        if not self.parts:
            return name_parts(self.first)
        return weigh_parts(self.first.weights, [part.name() for part in self.parts])


class MatchParts:
    """Components of which some work on RLGym's objects: each match has its own of those; see `BatchParts`.

    A mutator has to agree with the team sizes. Hitboxes are drawn before it runs.
    """

    def __init__(
        self,
        components: Sequence[Components],
        team_sizes: tuple[int, int],
        tick_skip: int | None,
        hitboxes: Sequence[int],
    ) -> None:
        first = components[0]
        self._sizes, self._tick_skip, self._hitboxes = team_sizes, tick_skip, hitboxes
        judging = ("termination_cond", "truncation_cond", "reward_fn")
        self._ours = batch_parts.BatchParts(
            replace(first, **dict.fromkeys(judging)), team_sizes, tick_skip, hitboxes
        )
        self._obs, self._parser, self._mutator, *nodes = (
            None if getattr(first, name) is None else _Node([getattr(parts, name) for parts in components])
            for name in ("obs_builder", "parser", "state_mutator", *judging)
        )
        self._termination, self._truncation, self._reward = nodes
        asked = [
            leaf for node in (self._obs, self._parser, *nodes) if node is not None for leaf in node.leaves()
        ]
        alone = [leaf for leaf in asked if not leaf.is_batch]
        self._calls = [
            ComponentCalls(parts, [leaf.every[match] for leaf in alone])
            for match, parts in enumerate(components)
        ]
        self._measured = [part for part in batch_parts.measured_parts(first) if works_in_batches(part)]
        self._measured_alone = [
            [part for part in batch_parts.measured_parts(parts) if not works_in_batches(part)]
            for parts in components
        ]
        self._needs_games = bool(alone) or first.shared_info_provider is not None
        self._batch_conditions: list[Any] = [
            leaf.first for leaf in asked if leaf.is_batch and isinstance(leaf.first, DoneCondition)
        ]

    def forget(self) -> None:
        """Drop the states that are drawn and not used yet, where a new seed begins."""
        self._ours.forget()

    def new_states(self, matches: np.ndarray, random: np.random.Generator) -> MatchState:
        """Return states that begin episodes, for `matches` `(n,)` int; raises ValueError for wrong ones."""
        assert self._mutator is not None  # checked by VectorEnv
        made = []
        for match in matches.tolist():
            calls = self._calls[match]
            calls.renew_shared_info()
            if not self._mutator.is_batch:
                mutator, game = self._mutator.every[match], base_state()
                apply_mutator(mutator, game, calls.shared_info)
                made.append(self._checked(game, type(mutator).__name__, random).buffer)
        if self._mutator.is_batch:
            return self._ours.new_states(matches, random)
        return MatchState(*self._sizes, len(made), np.concatenate(made))

    def begin(self, state: MatchState, matches: np.ndarray, seen: MatchState) -> np.ndarray:
        """Begin episodes in some matches, `(n,)` int; return `(n, cars, size)` float32 observations."""
        begun = np.zeros(state.matches, bool)
        begun[matches] = True
        for condition in self._batch_conditions:
            condition.reset_batch(state, begun)
        if self._needs_games:
            for match in matches.tolist():
                self._calls[match].reset(state.select(slice(match, match + 1)), range(state.layout.cars))
        if len(matches) < state.matches:
            seen = seen.select(matches)
        return self._observe(seen, matches)

    def masks(self, state: MatchState) -> np.ndarray | None:
        """Return the actions that cars may choose, `(matches, cars, actions)` bool; None for all."""
        if not self._needs_games:
            return self._ours.masks(state)
        every = [calls.masks(match) for match, calls in enumerate(self._calls)]
        given = [masks for masks in every if masks is not None]
        if 0 < len(given) < len(every):
            without = next(match for match, masks in enumerate(every) if masks is None)
            raise ValueError(f"match {without} has no action mask, and others have one; expected all or none")
        return np.concatenate(given) if given else None

    def rows(self, actions: np.ndarray, state: MatchState) -> np.ndarray:
        """Return a step's control vectors `(matches, cars, ticks, 8)`; raises ValueError if ticks differ."""
        assert self._parser is not None  # every set of components has one
        if self._parser.is_batch:
            return self._ours.rows(actions, state)
        name = type(self._parser.first).__name__
        every = []
        for match, calls in enumerate(self._calls):
            given = calls.parse(actions[match : match + 1])
            every.append([checked_plan(rows, self._tick_skip, name) for rows in given])
        lengths = {len(rows) for match_rows in every for rows in match_rows}
        if len(lengths) > 1:
            raise ValueError(
                f"{name} gave rows for {sorted(lengths)} ticks, expected the same number for all cars and "
                "matches of a step"
            )
        return np.array(every, np.float32)

    def judge(self, before: MatchState, after: MatchState, seen: MatchState) -> batch_parts.Judgement:
        """Observe a step's end, and ask conditions and rewards; third-party components see no noise."""
        if self._needs_games:
            for match, calls in enumerate(self._calls):
                calls.step(after.select(slice(match, match + 1)))
        observations = self._observe(seen, np.arange(after.matches))
        flags = [self._ask_condition(node, after) for node in (self._termination, self._truncation)]
        terminated, truncated = (given.any(1) for given in flags)
        if self._reward is None:
            return observations, terminated, truncated, np.zeros(flags[0].shape, np.float32)

        def ask_batch(reward: Any) -> np.ndarray:
            return checked_shape(reward, reward.reward_batch(before, after, terminated, truncated), after)

        def ask_alone(every: Sequence[Any]) -> np.ndarray:
            return self._ask_rewards(every, flags, after.agents)

        rewards = np.asarray(self._reward.ask(ask_batch, ask_alone, after), np.float32)
        batch_parts.refuse_bad(self._reward.first, rewards, after.agents)
        return observations, terminated, truncated, rewards

    def split_rewards(self, rewards: np.ndarray) -> list[np.ndarray]:
        """Return what each part of the reward gave in the latest step, which were `rewards` `(N, cars)`."""
        return [] if self._reward is None else self._reward.split(rewards)

    def name_rewards(self) -> list[tuple[str, float]]:
        """Return names and weights of these parts."""
        return [] if self._reward is None else self._reward.name()

    def metrics(self, state: MatchState) -> dict[str, Any]:
        """Return what components measure in a state, and the shared info's numbers."""
        found = batch_parts.ask_metrics(self._measured, state)
        several: dict[str, list[Any]] = {}
        for match, (calls, measured) in enumerate(zip(self._calls, self._measured_alone, strict=True)):
            given = _numbers_in(calls.shared_info)
            if measured:
                given |= batch_parts.ask_metrics(measured, state.select(slice(match, match + 1)))
            for name, numbers in given.items():
                several.setdefault(name, []).append(np.ravel(numbers))
        return found | {name: np.concatenate(numbers) for name, numbers in several.items()}

    def _ask_condition(self, node: "_Node | None", after: MatchState) -> np.ndarray:
        shape, agents = (after.matches, after.layout.cars), after.agents

        def ask_batch(condition: Any) -> np.ndarray:
            return np.broadcast_to(batch_parts.ask_batch_condition(condition, after)[:, None], shape)

        def ask_alone(every: Sequence[Any]) -> np.ndarray:
            answers = [calls.ask_condition(one) for calls, one in zip(self._calls, every, strict=True)]
            return np.array([[bool(one.get(agent, False)) for agent in agents] for one in answers])

        return np.zeros(shape, bool) if node is None else node.ask(ask_batch, ask_alone, after)

    def _ask_rewards(
        self, every: Sequence[Any], flags: Sequence[np.ndarray], agents: Sequence[str]
    ) -> np.ndarray:  # fmt: skip
        """Return the rewards of third-party components, one for each match, `(matches, cars)` float64."""
        given = []
        cars: dict[Hashable, int] = {agent: car for car, agent in enumerate(agents)}
        ended, cut = (rows.tolist() for rows in flags)
        assert self._reward is not None  # it is being asked
        for match, (calls, reward) in enumerate(zip(self._calls, every, strict=True)):
            over = (dict(zip(agents, rows[match], strict=True)) for rows in (ended, cut))
            answer, row = calls.ask_reward(reward, *over), [0.0] * len(agents)
            left = [agent for agent in agents if agent not in answer]
            if left and reward is self._reward.every[match]:
                raise ValueError(
                    f"{type(reward).__name__} gave no reward for {', '.join(left)} in match {match}, "
                    f"expected one for each of {', '.join(agents)}{locate_method(reward, 'get_rewards')}"
                )
            for agent, number in answer.items():
                row[car_of(cars, agent)] = number
            given.append(row)
        return np.array(given, np.float64)

    def _observe(self, seen: MatchState, matches: np.ndarray) -> np.ndarray:
        """Return the checked observations of some matches, `(n, cars, size)`, whose states are `seen`."""
        assert self._obs is not None  # checked by VectorEnv
        if self._obs.is_batch:
            return self._ours.observe(seen)
        numbers = matches.tolist()
        made: Any = [self._calls[match].observe() for match in numbers]
        observations: np.ndarray = np.concatenate(made)
        finite = np.isfinite(observations)
        if not finite.all():
            place, car, number = np.argwhere(~finite)[0].tolist()
            raise ValueError(
                f"{type(self._obs.first).__name__} gave {observations[place, car, number]} as number "
                f"{number} of what {seen.agents[car]} sees in match {numbers[place]}, expected a finite "
                "number"
            )
        return observations

    def _checked(self, game: Game, mutator: str, random: np.random.Generator) -> MatchState:
        """Return what a third-party mutator made, with hitboxes of the setting."""
        drawn = batch_parts.draw_hitboxes(self._hitboxes, (1, len(game.cars)), random)[0].tolist()
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


def _numbers_in(shared_info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a match's shared info by name; those of a dict in it by both names."""
    found: dict[str, Any] = {}
    for name, value in shared_info.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        for key, number in [(f"{name}", value), *((f"{name}/{one}", each) for one, each in inner)]:
            if isinstance(number, int | float | np.number | np.bool_):
                found[key] = float(number)
    return found
