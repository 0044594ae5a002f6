"""Decide whether a component works on many matches at once, which is its batch form.

RLGym's form:  build_obs    parse_actions  get_rewards, reset  is_done, reset          apply
batch form:    build_batch  parse_batch    reward_batch        done_batch, reset_batch  apply_batch
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from rlgym.api import ActionParser, DoneCondition, ObsBuilder, RewardFunction, StateMutator

from rlgym_bridge.components.actions import RepeatAction

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
