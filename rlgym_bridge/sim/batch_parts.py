"""Call one set of components for many matches at once, where all of them have a batch form."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from rlgym_bridge.components import actions as parsers
from rlgym_bridge.components import batch_form
from rlgym_bridge.components.initial_states import INITIAL_STATES
from rlgym_bridge.components.mutators import WeightedMutator, blank_state
from rlgym_bridge.components.reward_base import checked_shape, name_of_bad, name_parts, split_rewards
from rlgym_bridge.components.spec import Components
from rlgym_bridge.components.user_errors import locate_method
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.state import MatchState, derive, layout_of

Judgement = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Observations `(matches, cars, size)`, terminated and truncated `(matches,)`, rewards `(matches, cars)`."""

_SOUND_PARSERS: Final = (parsers.LookupTableAction, parsers.ContinuousAction, parsers.MultiDiscreteAction)
"""Classes whose rows are controls; a subclass may have another table."""

_BLOCK: Final = 32
"""States that are drawn at once where fewer are needed: one drawn alone takes as long as the block."""

_KINDS: Final = (
    "obs_builder", "parser", "reward_fn", "termination_cond", "truncation_cond", "state_mutator",
)  # fmt: skip


class BatchParts:
    """One set of components, all with a batch form, for all matches; arguments as for `VectorEnv`."""

    def __init__(
        self, components: Components, team_sizes: tuple[int, int], tick_skip: int | None,
        hitboxes: Sequence[int],
    ) -> None:  # fmt: skip
        self._mutator: Any = components.state_mutator
        self._obs: Any = components.obs_builder
        self._parser: Any = components.parser
        self._reward: Any = components.reward_fn
        self._conditions: Sequence[Any] = (components.termination_cond, components.truncation_cond)
        self._sizes, self._hitboxes = team_sizes, hitboxes
        self._tick_skip = tick_skip or 1
        self._measured = measured_parts(components)
        self._block = _BLOCK if is_standard_mutator(self._mutator) else 1
        self.forget()

    def forget(self) -> None:
        """Drop the states that are drawn and not used yet, where a new seed begins."""
        self._drawn = np.empty((0, layout_of(*self._sizes).size), np.float32)

    def new_states(self, matches: np.ndarray, random: np.random.Generator) -> MatchState:
        """Return states that begin episodes in some matches, `(n,)` int.

        Standard mutators draw in blocks. Those of a user are called for just these matches, for they may
        change from episode to episode.
        """
        missing = len(matches) - len(self._drawn)
        if missing > 0:
            new = self._draw(max(missing, self._block), random)
            self._drawn = np.concatenate((self._drawn, new.buffer)) if len(self._drawn) else new.buffer
        states, self._drawn = np.split(self._drawn, [len(matches)])
        return MatchState(*self._sizes, len(matches), states)

    def _draw(self, count: int, random: np.random.Generator) -> MatchState:
        state = blank_state(*self._sizes, count)
        state.car_hitbox[:] = draw_hitboxes(self._hitboxes, state.car_hitbox.shape, random)
        self._mutator.apply_batch(state, random)
        derive(state)
        return state

    def begin(self, state: MatchState, matches: np.ndarray, seen: MatchState) -> np.ndarray:
        """Begin episodes in some matches, `(n,)` int; return observations `(n, cars, size)` float32.

        `seen` is what is observed: the state itself, or with noise.
        """
        begun = np.zeros(state.matches, bool)
        begun[matches] = True
        for condition in self._conditions:
            if condition is not None:
                condition.reset_batch(state, begun)
        if len(matches) < state.matches:
            seen = seen.select(matches)
        return self.observe(seen)

    def observe(self, seen: MatchState) -> np.ndarray:
        """Return checked observations `(n, cars, size)` of the matches of a state."""
        return batch_form.check_observations(
            self._obs, self._obs.build_batch(seen), seen, range(seen.layout.cars)
        )

    def masks(self, state: MatchState) -> np.ndarray | None:
        """Return which actions each car may choose, `(matches, cars, actions)` bool; None for all."""
        return batch_form.find_masks(self._parser, state)

    def rows(self, actions: np.ndarray, state: MatchState) -> np.ndarray:
        """Return control rows `(matches, cars, ticks, 8)`, with a stride of 0 where one is held."""
        parser, repeats = self._parser, 1
        if type(parser) is parsers.RepeatAction:
            parser, repeats = parser.parser, parser.repeats
        rows: np.ndarray = parser.parse_batch(actions)
        # One test for the usual case: NaN fails every comparison. Our own parsers keep to it themselves.
        if type(parser) not in _SOUND_PARSERS and not (np.abs(rows) <= 1).all():
            for plan in rows.reshape(-1, *rows.shape[2:]):
                checked_rows(plan, 1, type(parser).__name__)
        if repeats == 1 and rows.shape[2] == 1:
            repeats = self._tick_skip
        if repeats > 1:
            return np.broadcast_to(rows[:, :, :1], (*rows.shape[:2], repeats, 8))
        return rows

    def judge(self, before: MatchState, after: MatchState, seen: MatchState) -> Judgement:
        """Observe a step's end, `seen` with or without noise; ask conditions and rewards about the step."""
        obs = self.observe(seen)
        terminated, truncated = (
            np.zeros(after.matches, bool) if condition is None else ask_batch_condition(condition, after)
            for condition in self._conditions
        )
        if self._reward is None:
            return obs, terminated, truncated, np.zeros((after.matches, after.layout.cars), np.float32)
        given = self._reward.reward_batch(before, after, terminated, truncated)
        rewards = checked_shape(self._reward, given, after)
        refuse_bad(self._reward, rewards, after.agents)
        return obs, terminated, truncated, rewards

    def split_rewards(self, rewards: np.ndarray) -> list[np.ndarray]:
        """Return what each part of the reward gave in the latest step, which were `rewards` `(N, cars)`."""
        return [] if self._reward is None else split_rewards(self._reward, rewards)

    def name_rewards(self) -> list[tuple[str, float]]:
        """Return names and weights of these parts."""
        return [] if self._reward is None else name_parts(self._reward)

    def metrics(self, state: MatchState) -> dict[str, Any]:
        """Return what the components measure in a state of all matches, by name."""
        return ask_metrics(self._measured, state)


def _parts_in(components: Components) -> list[Any]:
    return [part for kind in _KINDS if (part := getattr(components, kind)) is not None]


def measured_parts(components: Components) -> list[Any]:
    """Return the components, and parts of them, that have a method `metrics`."""
    every = {id(part): part for one in _parts_in(components) for part in batch_form.every_part(one)}
    return [part for part in every.values() if callable(getattr(part, "metrics", None))]


def ask_metrics(measured: Iterable[Any], state: MatchState) -> dict[str, Any]:
    """Return what `metrics` of components give, by name; raises ValueError unless it is numbers."""
    found: dict[str, Any] = {}
    for part in measured:
        given = part.metrics(state)
        where = f"metrics of {type(part).__name__}"
        if not isinstance(given, Mapping):
            raise ValueError(
                f"{where} gave {batch_form.describe_array(given)}, expected a dict with a number or an array "
                f"of numbers for each name{locate_method(part, 'metrics')}"
            )
        for name, numbers in given.items():
            if not isinstance(name, str) or not batch_form.is_number_array(np.asarray(numbers)):
                raise ValueError(
                    f"{where} gave {batch_form.describe_array(numbers)} for {name!r}, expected a number or "
                    f"an array of numbers, by a name{locate_method(part, 'metrics')}"
                )
        found |= given
    return found


def refuse_bad(reward: Any, rewards: np.ndarray, agents: Sequence[str]) -> None:
    """Raise ValueError, which names reward, car and match, unless all rewards are finite."""
    bad = name_of_bad(reward, rewards, agents)
    if bad is not None:
        raise ValueError(f"{bad}, expected a finite number")


def ask_batch_condition(condition: Any, after: MatchState) -> np.ndarray:
    """Return the matches that a condition ends, `(matches,)` bool."""
    done = condition.done_batch(after)
    if not isinstance(done, np.ndarray) or done.dtype != bool or done.shape != (after.matches,):
        raise ValueError(
            f"condition {type(condition).__name__} gave {batch_form.describe_array(done)}, expected an array "
            f"({after.matches},) of bool: one a match{locate_method(condition, 'done_batch')}"
        )
    return done


def is_standard_mutator(mutator: Any) -> bool:
    """Tell whether a mutator and all its parts are classes of this project, which draw each state anew."""
    if type(mutator) is WeightedMutator:
        return all(map(is_standard_mutator, mutator.parts))
    return type(mutator) in {type(one) for one in INITIAL_STATES.values()}


def is_batch(components: Components) -> bool:
    """Tell whether all components have a batch form."""
    all_do = all(map(batch_form.works_in_batches, _parts_in(components)))
    return all_do and components.shared_info_provider is None


def third_party_parts(components: Components) -> list[Any]:
    """Return the parts without a batch form; a provider of shared info never has one."""
    third_party = [leaf for part in _parts_in(components) for leaf in batch_form.third_party_leaves(part)]
    provider = components.shared_info_provider
    return third_party if provider is None else [*third_party, provider]


def draw_hitboxes(hitboxes: Sequence[int], shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Draw a hitbox for each car, `(matches, cars)` int, every entry as likely; one alone draws no number."""
    if len(set(hitboxes)) == 1:
        return np.full(shape, hitboxes[0])
    return np.asarray(random.choice(np.array(hitboxes), shape))
