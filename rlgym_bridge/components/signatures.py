"""Check that a component has the methods that RLGym 2 calls, and name the right signature if not."""

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from rlgym.api import (
    ActionParser,
    DoneCondition,
    ObsBuilder,
    Renderer,
    RewardFunction,
    SharedInfoProvider,
    StateMutator,
)  # fmt: skip

from rlgym_bridge.components.user_errors import locate_class
from rlgym_bridge.rlgym_types import AllCondition, AnyCondition, CombinedReward, MutatorSequence, RepeatAction

KINDS: Final[tuple[type, ...]] = (
    ActionParser, DoneCondition, ObsBuilder, Renderer, RewardFunction, SharedInfoProvider, StateMutator,
)  # fmt: skip

_HOLDERS: Final = (
    (RepeatAction, "parser"), (CombinedReward, "reward_fns"), (AnyCondition, "conditions"),
    (AllCondition, "conditions"), (MutatorSequence, "mutators"),
)  # fmt: skip

_NEVER_CALLED: Final = ("get_obs_space", "close")
"""Methods that a component may leave out: nothing here needs their result."""


def check_signatures(component: Any) -> None:
    """Check that a component and its parts can be called as RLGym 2 calls them.

    Args:
        component: Anything; None passes.

    Raises:
        TypeError: A method is missing or takes other arguments; the message shows the right signature.
    """
    for part in _parts_of(component):
        check_signatures(part)
    for kind in KINDS:
        if not isinstance(component, kind):
            continue
        for name, expected in _methods(kind).items():
            own = getattr(component, name)
            if getattr(own, "__func__", own) is getattr(kind, name) and name not in _NEVER_CALLED:
                raise TypeError(
                    f"{type(component).__name__}{locate_class(component)} has no {name} of its own, expected "
                    f"a subclass of rlgym.api.{kind.__name__} with {name}({', '.join(expected.parameters)})"
                )
            try:
                signature = inspect.signature(getattr(component, name))
            except ValueError:  # it is not written in Python and does not say
                continue
            except TypeError:
                raise TypeError(
                    f"{type(component).__name__}.{name} is {getattr(component, name)!r}, expected a method "
                    f"{name}({', '.join(expected.parameters)}) as in rlgym.api.{kind.__name__}"
                ) from None
            try:
                signature.bind(*[None] * (len(expected.parameters) - 1))  # without self
            except TypeError:
                written = str(signature).replace("(", "(self, " if signature.parameters else "(self", 1)
                raise TypeError(
                    f"{type(component).__name__}.{name}{written} does not take what RLGym 2 gives it, "
                    f"expected {name}({', '.join(expected.parameters)}) as in rlgym.api.{kind.__name__}"
                ) from None


def _parts_of(component: Any) -> Sequence[Any]:
    """Return the parts of RLGym's components that hold others."""
    for kind, attribute in _HOLDERS:
        if isinstance(component, kind):
            parts = getattr(component, attribute)
            return parts if isinstance(parts, tuple | list) else (parts,)
    return ()


@cache
def _methods(kind: Any) -> dict[str, inspect.Signature]:
    """Return the public methods that a kind of component itself has."""
    names = [name for name in vars(kind) if not name.startswith("_") and callable(getattr(kind, name))]
    return {name: inspect.signature(getattr(kind, name)) for name in names}
