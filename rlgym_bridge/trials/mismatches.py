"""Count the numbers that differ between the two worlds."""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

TOLERANCE: Final = 1e-5
"""Greatest difference of a number, times its size where that is above 1: float32 has 7 digits."""


@dataclass
class Mismatch:
    """A number that differs.

    Attributes:
        name: Of the number; where the builder has no names its index, and the state's field it comes from.
        count: How often.
        worst: Greatest difference.
    """

    name: str
    count: int = 0
    worst: float = 0.0


@dataclass
class Parity:
    """The result of a comparison.

    Attributes:
        samples: Observations and control rows compared.
        numbers: Numbers in them.
        compared: Decisions whose observations were compared.
        unknown: Decisions left out, because the decoder marks a field as unknown then.
    """

    samples: int = 0
    numbers: int = 0
    compared: int = 0
    unknown: int = 0
    _by_name: dict[str, Mismatch] = field(default_factory=dict)

    @property
    def mismatches(self) -> list[Mismatch]:
        """All numbers that differ, the most frequent first."""
        return sorted(self._by_name.values(), key=lambda mismatch: (-mismatch.count, mismatch.name))

    def note(self, name: str, difference: float) -> None:
        """Count a number that differs."""
        mismatch = self._by_name.setdefault(name, Mismatch(name))
        mismatch.count += 1
        mismatch.worst = max(mismatch.worst, difference)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "samples": self.samples,
            "numbers": self.numbers,
            "unknown": self.unknown,
            "mismatches": [
                {"name": mismatch.name, "count": mismatch.count, "worst": mismatch.worst}
                for mismatch in self.mismatches
            ],
        }


def differs(difference: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Tell which numbers of observations differ by more than the tolerance; NaN does.

    Args:
        difference: Absolute differences, of any shape.
        numbers: The numbers themselves, of the same shape.

    Returns:
        Bool, of the same shape.
    """
    off: np.ndarray = ~(difference <= TOLERANCE * np.maximum(1, np.abs(numbers)))
    return off
