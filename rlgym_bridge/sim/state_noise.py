"""Add noise to what observations are built from; all else sees the state as it is."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from rlgym_bridge.components.initial_states import check_known
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.arguments import show_value

NOISY_FIELDS: Final = {
    "ball_position": (1000.0, "uu"),
    "ball_linear_velocity": (1000.0, "uu/s"),
    "ball_angular_velocity": (6.0, "rad/s"),
    "car_position": (1000.0, "uu"),
    "car_linear_velocity": (1000.0, "uu/s"),
    "car_angular_velocity": (6.0, "rad/s"),
    "car_rotation": (1.0, "rad"),
}
"""Fields of `MatchState` that may have noise: the largest standard deviation, and its unit."""


class StateNoise:
    """Gaussian noise of some fields, drawn anew for each number at each look.

    A rotation is turned by an angle about each of the car's axes. All cars of a match see the same noise.
    Standard deviations are in units of the game, by the names of `NOISY_FIELDS`. Raises ValueError if a field
    is unknown, or a deviation out of range.
    """

    def __init__(self, deviations: Mapping[str, float]) -> None:
        self._deviations = {name: value for name, value in parse_noise(deviations).items() if value}

    def __bool__(self) -> bool:
        """Say whether there is any noise."""
        return bool(self._deviations)

    def seen(self, state: MatchState, random: np.random.Generator) -> MatchState:
        """Return a copy of a state with noise; derived fields are those of the state."""
        noisy = state.copy()
        for name, deviation in self._deviations.items():
            field = getattr(noisy, name)
            if name == "car_rotation":
                angles = random.normal(0.0, deviation, field.shape[:-1])
                field[:] = field @ _rotations(angles)
            else:
                field += random.normal(0.0, deviation, field.shape)
        return noisy


def parse_noise(table: object) -> dict[str, float]:
    """Return standard deviations from a table as TOML gives it; raises ValueError for anything else."""
    if not isinstance(table, Mapping):
        raise ValueError(
            f"obs_noise is {show_value(table)}, expected a table [obs_noise] of {', '.join(NOISY_FIELDS)}"
        )
    check_known(table, "obs_noise", NOISY_FIELDS)
    found = {}
    for name, value in table.items():
        most, unit = NOISY_FIELDS[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise ValueError(
                f"{name} in [obs_noise] is {show_value(value)}, expected a standard deviation, 0 to "
                f"{most:g} {unit}"
            )
        found[name] = float(value)
    return found


def _rotations(angles: np.ndarray) -> np.ndarray:
    """Return the rotations `(..., 3, 3)` by vectors of angles `(..., 3)` in rad [Rodrigues' formula]."""
    length = np.linalg.norm(angles, axis=-1)[..., None, None]
    x, y, z = np.moveaxis(angles / np.maximum(length[..., 0], 1e-12), -1, 0)
    none = np.zeros_like(x)
    rows = ((none, -z, y), (z, none, -x), (-y, x, none))
    cross = np.stack([np.stack(row, -1) for row in rows], -2)
    return np.asarray(np.eye(3) + np.sin(length) * cross + (1 - np.cos(length)) * (cross @ cross))
