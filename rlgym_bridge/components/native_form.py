"""Let batch methods of standard components use a compiled form, where one is provided.

Both forms give the same bits. A subclass that changes what the formula is made of is computed in numpy.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Final, TypeVar, cast

import numpy as np

FORMS: Final[dict[str, Callable[..., np.ndarray | None]]] = {}
"""Compiled forms by the qualified names of batch methods, whose arguments they take.

None says that the numpy formula is to be used. `sim.native_parts` fills this where matches are stepped.
"""

_FREE: Final = frozenset(
    ("build_batch", "reward_batch", "done_batch", "reset_batch", "build_obs", "get_rewards", "is_done",
     "reset", "names", "size", "get_obs_space")
)  # fmt: skip
"""Methods that no formula asks for: a subclass may have its own."""

Method = TypeVar("Method", bound=Callable[..., np.ndarray])


def with_native_form(method: Method) -> Method:
    """Ask the compiled form of a batch method first; a decorator of that method."""
    name = method.__qualname__

    @wraps(method)
    def ask(self: Any, *given: Any, **named: Any) -> np.ndarray:
        form, kind = FORMS.get(name), cast(Any, type(self))
        if form is not None and _keeps_formula(kind, ask):
            answer = form(self, *given, **named)
            if answer is not None:
                return answer
        return method(self, *given, **named)

    return cast(Method, ask)


@cache
def _keeps_formula(kind: Any, ask: Callable[..., Any]) -> bool:
    """Tell whether a class has all methods that its formula is made of."""
    owner = next(base for base in kind.__mro__ if vars(base).get(ask.__name__) is ask)
    names = {
        name
        for base in owner.__mro__
        for name, value in vars(base).items()
        if callable(value) and not name.startswith("__") and name not in _FREE
    }
    return all(getattr(kind, name) is getattr(owner, name) for name in (*names, "__eq__", "__hash__"))
