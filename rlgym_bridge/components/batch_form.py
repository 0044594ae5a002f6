"""Decide whether a component works on many matches at once, which is its batch form.

RLGym's form:  build_obs    parse_actions  get_rewards, reset  is_done, reset          apply
batch form:    build_batch  parse_batch    reward_batch        done_batch, reset_batch  apply_batch
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from rlgym.api import ActionParser, DoneCondition, ObsBuilder, RewardFunction, StateMutator

from rlgym_bridge.components.actions import RepeatAction
from rlgym_bridge.rlgym_types import AnyCondition, CombinedReward
from rlgym_bridge.state import Layout

_FORMS: Final = (
    (ObsBuilder, (("build_batch", "build_obs"),)),
    (ActionParser, (("parse_batch", "parse_actions"),)),
    (RewardFunction, (("reward_batch", "get_rewards"), ("reward_batch", "reset"))),
    (DoneCondition, (("done_batch", "is_done"), ("reset_batch", "reset"))),
    (StateMutator, (("apply_batch", "apply"),)),
)
"""For each kind of component its batch methods, and RLGym's methods that they stand for."""


def works_in_batches(component: object) -> bool:
    """Tell whether a component and all its parts have a batch form."""
    return foreign_part(component) is None


def foreign_part(component: object) -> Any | None:
    """Return the first part of a component that works on RLGym's objects alone.

    A subclass of ours that overrides only RLGym's form is foreign too: the batch form would bypass it.

    Args:
        component: Of any kind in RLGym but a provider of shared info. `RepeatAction` has a parser as its
            part; rewards, conditions and mutators have theirs in the attribute `parts`.

    Returns:
        The component itself, or the first such of its parts; None where all work in batches.
    """
    kind: Any = type(component)
    if not _has_batch_form(kind):
        return component
    for part in _parts_of(component):
        foreign = foreign_part(part)
        if foreign is not None:
            return foreign
    return None


_TWINS: Final = {
    "rlgym.rocket_league.action_parsers.lookup_table_action:LookupTableAction": "LookupTableAction",
    "rlgym.rocket_league.action_parsers.repeat_action:RepeatAction": "RepeatAction",
    "rlgym.rocket_league.done_conditions.goal_condition:GoalCondition": "conditions.GoalCondition",
    "rlgym.rocket_league.done_conditions.no_touch_condition:NoTouchTimeoutCondition": (
        "conditions.NoTouchTimeoutCondition"
    ),
    "rlgym.rocket_league.done_conditions.timeout_condition:TimeoutCondition": "conditions.TimeoutCondition",
    "rlgym.rocket_league.obs_builders.default_obs:DefaultObs": "DefaultObs",
    "rlgym.rocket_league.reward_functions.goal_reward:GoalReward": "rewards.GoalReward",
    "rlgym.rocket_league.reward_functions.touch_reward:TouchReward": "rewards.TouchReward",
}  # fmt: skip
"""Classes of RLGym, and ours that give the same, by their names in `rlgym_bridge`."""


def name_twin(kind: type) -> str | None:
    """Return the name of our class that gives what a class of RLGym does; None where there is none."""
    name = _TWINS.get(f"{kind.__module__}:{kind.__qualname__}")
    return None if name is None else f"rlgym_bridge.{name}"


def foreign_leaves(component: object) -> list[Any]:
    """Return everything in a component that works on RLGym's objects alone; [] where nothing does.

    Sums and joined conditions that `open_parts` opens are looked into, so that only what has to be called
    match by match is returned.
    """
    parts = open_parts(component)
    if parts:
        return [leaf for part in parts for leaf in foreign_leaves(part)]
    foreign = foreign_part(component)
    return [] if foreign is None else [foreign]


def open_parts(component: Any) -> Sequence[Any]:
    """Return the parts of a sum or of joined conditions, each of which may be asked alone.

    `join_columns` makes their answers one. These are our own classes with a method of that name, and
    RLGym's `CombinedReward` and `AnyCondition`.

    Returns:
        The parts; () for all others, and for subclasses with a `get_rewards`, `is_done` or `reset` of their
        own.
    """
    kind: Any = type(component)
    if kind is CombinedReward:
        return tuple(component.reward_fns)
    if kind is AnyCondition:
        return tuple(component.conditions)
    asked = {RewardFunction: "get_rewards", DoneCondition: "is_done"}
    names = [name for base, name in asked.items() if isinstance(component, base)]
    if names and all(_stands_for(kind, "join_columns", name) for name in (*names, "reset")):
        return _parts_of(component)
    return ()


def every_part(component: Any) -> Iterator[Any]:
    """Yield a component and all that it is made of: parts of sums, of joined conditions and of mixtures."""
    yield component
    for part in open_parts(component) or _parts_of(component):
        yield from every_part(part)


def join_columns(component: Any, columns: Sequence[np.ndarray], layout: Layout) -> np.ndarray:
    """Return what a component that `open_parts` opens makes of its parts' answers.

    Args:
        component: The component.
        columns: Answers of its parts, each `(N, cars)`.
        layout: Of the matches.

    Returns:
        `(N, cars)`, of rewards or of bools.
    """
    if type(component) is AnyCondition:
        over: np.ndarray = np.logical_or.reduce(columns)
        return over
    if type(component) is CombinedReward:
        total = np.zeros(columns[0].shape)
        for column, weight in zip(columns, component.weights, strict=True):
            total += column.astype(np.float64) * weight
        return total
    joined: np.ndarray = component.join_columns(columns, layout)
    return joined


def refuse_foreign(whole: object, foreign: object | None, needed: str, instead: str) -> None:
    """Raise unless `foreign` is None.

    Raises:
        TypeError: Names the part that has no batch form, and what to call instead.
    """
    if foreign is not None:
        raise TypeError(
            f"{type(whole).__name__} holds {type(foreign).__name__}, which has no {needed} of its own; "
            f"use {instead}, one match at a time"
        )


def _parts_of(component: Any) -> Sequence[Any]:
    if isinstance(component, RepeatAction):
        return (component.parser,)
    if isinstance(component, ObsBuilder | ActionParser):
        return ()
    parts: Sequence[Any] = getattr(component, "parts", ())
    return parts


@cache
def _has_batch_form(kind: Any) -> bool:
    pairs = next((pairs for base, pairs in _FORMS if issubclass(kind, base)), None)
    return pairs is not None and all(_stands_for(kind, batch, single) for batch, single in pairs)


def _stands_for(kind: Any, batch: str, single: str) -> bool:
    """Tell whether `batch` is defined no further up among the bases than `single`."""
    batch_depth, single_depth = (
        next((depth for depth, base in enumerate(kind.__mro__) if name in vars(base)), None)
        for name in (batch, single)
    )
    return batch_depth is not None and single_depth is not None and batch_depth <= single_depth
