"""Check that a component has the methods that RLGym 2 calls, and name the right signature if not."""

import inspect
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

KINDS: Final[tuple[type, ...]] = (
    ActionParser, DoneCondition, ObsBuilder, Renderer, RewardFunction, SharedInfoProvider, StateMutator,
)  # fmt: skip


def check_signatures(component: Any) -> None:
    """Check that a component can be called as RLGym 2 calls it.

    Args:
        component: Anything; None passes.

    Raises:
        TypeError: A method takes other arguments; the message shows both signatures.
    """
    for kind in KINDS:
        if not isinstance(component, kind):
            continue
        for name, expected in _methods(kind).items():
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


@cache
def _methods(kind: Any) -> dict[str, inspect.Signature]:
    """Return the public methods that a kind of component itself has."""
    names = [name for name in vars(kind) if not name.startswith("_") and callable(getattr(kind, name))]
    return {name: inspect.signature(getattr(kind, name)) for name in names}
