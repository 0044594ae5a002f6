"""Limits of the networks that settings may ask for: as much as a policy folder may hold."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Final

from msgspec import Meta

from rlgym_bridge.policy.files import MOST_WEIGHTS_BYTES
from rlgym_bridge.user_input.arguments import show_value

Layers = Annotated[tuple[Annotated[int, Meta(ge=1, le=65_536)], ...], Meta(max_length=32)]
"""Widths of hidden layers."""

_MOST_WEIGHTS: Final = MOST_WEIGHTS_BYTES // 4


def check_layers(name: str, layers: Sequence[int]) -> None:
    """Check that the weights between hidden layers fit into a policy folder.

    Raises:
        ValueError: They are too many; the message names the setting.
    """
    weights = sum(inputs * outputs for inputs, outputs in pairwise(layers))
    if weights > _MOST_WEIGHTS:
        raise ValueError(
            f"{name} is {show_value(list(layers))}, with {weights:,} weights between them, expected "
            f"{_MOST_WEIGHTS:,} at most"
        )
