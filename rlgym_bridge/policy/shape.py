"""The inputs and outputs of a policy, the shapes of its tensors, and the matches that it fits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from rlgym_bridge.policy.symmetry import Mirror

PERCEPTRON, ATTENTION, GRU = "perceptron", "attention", "gru"
NETWORKS: Final = (PERCEPTRON, ATTENTION, GRU)
"""Networks by name; any other one is a class of the user's own, `module:Class`."""

ATTENTION_WIDTH: Final = 64  # numbers that `attention` keeps of each car

ATTENTION_HEADS: Final = 4

GRU_WIDTH: Final = 128  # numbers that `gru` remembers of each car


@dataclass(frozen=True)
class PlayerPlaces:
    """The numbers of other cars in an observation: places of equal size, which say whether a car is there."""

    common: np.ndarray  # (numbers,) int, what belongs to no place
    blocks: np.ndarray  # (places, numbers) int, those of each place
    there: int  # number within a place that is 1 where a car is there
    enemies: np.ndarray  # (places,) int, 1 for an opponent's place

    @classmethod
    def of(cls, names: Sequence[str] | None) -> "PlayerPlaces":
        """Find the places by numbers' names, such as `enemy-0/there`; raises ValueError for none."""
        places = [name.removesuffix("/there") for name in names or () if name.endswith("/there")]
        blocks = [
            [(i, name[len(place) :]) for i, name in enumerate(names or ()) if name.startswith(f"{place}/")]
            for place in places
        ]
        if not blocks or len({tuple(name for _, name in block) for block in blocks}) > 1:
            raise ValueError(
                "attention needs an observation with places of equal size for other cars, with numbers named "
                "enemy-0/there and so on: TeamObs with zero_padding, or a class of yours that is made of it; "
                f"this one has {'no names' if names is None else f'{len(places)} such places'}"
            )
        taken = np.array([[i for i, _ in block] for block in blocks])
        common = np.setdiff1d(np.arange(len(names or ())), taken)
        there = [name for _, name in blocks[0]].index("/there")
        return cls(common, taken, there, np.array([place.startswith("enemy") for place in places], int))


@dataclass(frozen=True)
class PolicyShape:
    """The inputs and outputs of a policy."""

    obs_size: int  # numbers in an observation
    distribution: str  # `"categorical"`, `"multi_categorical"` or `"gaussian"`
    sizes: tuple[int, ...]  # choices of each decision; `(k,)` for k real numbers
    layers: tuple[int, ...]  # widths of the hidden layers
    obs_clip: float | None  # normalised observations are clipped to this; None: taken as they are
    activation: str = "relu"  # its name in `activations.ACTIVATIONS`
    layer_norm: bool = False  # whether layer normalisation stands before each activation
    mirror: Mirror | None = field(default=None, compare=False)  # for one that knows half of the field
    masked: bool = False  # whether action masks restrict what it chooses
    network: str = PERCEPTRON  # one of `NETWORKS`, or `module:Class` of the user's own
    names: tuple[str, ...] | None = field(default=None, compare=False)  # of an observation's; for attention
    weights: tuple[tuple[str, tuple[int, ...]], ...] = ()  # names and shapes, unless it is a perceptron
    state_size: int = 0  # numbers that the network remembers of each car; 0 without memory

    @property
    def is_own(self) -> bool:
        """Tell whether the network is a class of the user's own."""
        return self.network not in NETWORKS

    @property
    def outputs(self) -> int:
        """Numbers that the last layer gives."""
        return sum(self.sizes)

    @property
    def action(self) -> tuple[tuple[int, ...], str]:
        """Shape and dtype of one car's action."""
        if self.distribution == "categorical":
            return (), "int64"
        if self.distribution == "multi_categorical":
            return (len(self.sizes),), "int64"
        return self.sizes, "float32"

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all tensors, by name and in order."""
        shapes = dict(self.weights)
        if self.network != PERCEPTRON:
            return shapes | {"obs_mean": (self.obs_size,), "obs_std": (self.obs_size,)}
        for i, (inputs, outputs) in enumerate(pairwise((self.obs_size, *self.layers, self.outputs))):
            shapes |= {f"layers.{i}.weight": (outputs, inputs), f"layers.{i}.bias": (outputs,)}
        for i, width in enumerate(self.layers if self.layer_norm else ()):
            shapes |= {f"norms.{i}.weight": (width,), f"norms.{i}.bias": (width,)}
        if self.distribution == "gaussian":
            shapes["log_std"] = self.sizes
        return shapes | {"obs_mean": (self.obs_size,), "obs_std": (self.obs_size,)}

    @property
    def numbers(self) -> int:
        """Numbers in all tensors together."""
        return sum(math.prod(shape) for shape in self.tensors.values())


def explain_misfit(
    team_sizes: Sequence[tuple[int, int]], match: tuple[int, int], bot: str | None = None
) -> str | None:
    """Explain why a policy trained for `team_sizes` cannot play a match, (blue, orange); None where it can.

    `bot` is its name on a command line, for the options of `rlgym-bridge match` that play it; None leaves
    them out.
    """
    if match in team_sizes or match[::-1] in team_sizes:
        return None
    trained = ", ".join(f"{blue}v{orange}" for blue, orange in team_sizes)
    players = None if bot is None else show_players(bot, team_sizes)
    such = "" if players is None else f", such as {players}"
    return (
        f"was trained for {trained}, this match is {match[0]}v{match[1]}; change the number of cars{such}, "
        f"or train one with team_sizes = [{match[0]}, {match[1]}]"
    )


def show_players(bot: str, team_sizes: Sequence[tuple[int, int]]) -> str | None:
    """Return the options of the smallest match it was trained for; None without opponents."""
    played = [size for size in team_sizes if all(size)]
    if not played:
        return None
    blue, orange = min(played, key=sum)
    return " ".join(["--blue", *[bot] * blue, "--orange", *["chaser"] * orange])
