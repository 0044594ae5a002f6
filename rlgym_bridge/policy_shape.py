"""What a policy takes and gives, and the shapes of its tensors."""

import math
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class PolicyShape:
    """What a policy takes and gives.

    Attributes:
        obs_size: Numbers in an observation.
        distribution: `"categorical"`, `"multi_categorical"` or `"gaussian"`.
        sizes: Choices of each decision; `(k,)` for k real numbers.
        layers: Widths of the hidden layers.
        obs_clip: Normalised observations are clipped to this; None where they are taken as they are.
    """

    obs_size: int
    distribution: str
    sizes: tuple[int, ...]
    layers: tuple[int, ...]
    obs_clip: float | None

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
        """Shapes of all that a row holds, by name and in order."""
        shapes: dict[str, tuple[int, ...]] = {}
        for i, (inputs, outputs) in enumerate(pairwise((self.obs_size, *self.layers, self.outputs))):
            shapes |= {f"layers.{i}.weight": (outputs, inputs), f"layers.{i}.bias": (outputs,)}
        if self.distribution == "gaussian":
            shapes["log_std"] = self.sizes
        return shapes | {"obs_mean": (self.obs_size,), "obs_std": (self.obs_size,)}

    @property
    def numbers(self) -> int:
        """Length of a row."""
        return sum(math.prod(shape) for shape in self.tensors.values())
