"""Exchange left and right, so that a policy needs to learn one half of the field alone.

Field, physics, kickoffs and pads are the same when left and right are exchanged. So what is right in one
state is right in the mirrored one, with steer, yaw and roll reversed.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rlgym_bridge.game import CONTROL_NAMES, PAD_COUNT, PAD_POSITIONS

DECIDES: Final = "self/position/x"
"""Name of the number that decides: an observation is mirrored where it is above 0."""

_REVERSED: Final = np.array([-1 if name in ("steer", "yaw", "roll") else 1 for name in CONTROL_NAMES])
_VECTORS: Final = ("position", "linear_velocity", "forward", "up")
_LOCAL: Final = ("position", "linear_velocity", "direction", "to_goal", "to_own_goal")
_SCALARS: Final = frozenset({
    "there", "timer", "boost_amount", "demo_respawn_timer", "air_time_since_jump", "handbrake", "on_ground",
    "is_holding_jump", "has_jumped", "is_jumping", "has_flipped", "is_flipping", "has_double_jumped",
    "can_flip", "is_boosting", "is_supersonic", "speed", "distance",
})  # fmt: skip


class Mirror:
    """The mirrored forms of one kind of observation and of its actions.

    `names` are those of an observation's numbers, as `TeamObs` has them, `controls` `(choices, 8)` the
    control vectors of all choices. Raises ValueError where a name does not tell how its number is mirrored,
    or a choice has no mirrored one.
    """

    def __init__(self, names: Sequence[str], controls: np.ndarray) -> None:
        if DECIDES not in names:
            raise ValueError(f"the observation has no number named {DECIDES}, expected one as of TeamObs")
        self._decides = names.index(DECIDES)
        self._order = np.array([_source(names, name) for name in names])
        self._signs = np.array([_sign(name) for name in names], np.float32)
        mirrored = controls * _REVERSED
        same = (mirrored[:, None] == controls).all(2)  # (choices, choices)
        if not same.any(1).all():
            row = mirrored[~same.any(1)][0].tolist()
            raise ValueError(f"no choice of the action gives the controls {row}, a mirrored choice")
        self._actions = same.argmax(1)

    def applies(self, obs: np.ndarray) -> np.ndarray:
        """Return which of `(..., size)` observations are mirrored, `(...)` bool."""
        found: np.ndarray = obs[..., self._decides] > 0
        return found

    def show(self, obs: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Return observations `(..., size)`, those mirrored `where` says so; a copy unless it is nowhere."""
        if not where.any():
            return obs
        shown = obs.copy()
        shown[where] = obs[where][..., self._order] * self._signs
        return shown

    def exchange(self, actions: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Return choices `(...)`, those mirrored `where` says so: the network's for the game's, and back."""
        return np.where(where, self._actions[actions], actions)

    def exchange_masks(self, masks: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Return the network's masks for the game's, `(..., choices)` bool, mirrored `where` says so."""
        return np.where(where[..., None], masks[..., self._actions], masks)


def _source(names: Sequence[str], name: str) -> int:
    """Return the place of the number that a mirrored observation has in the place of a name's."""
    first, number, *rest = (*name.split("/"), "")
    if first != "pad":
        return names.index(name)
    if number not in map(str, range(PAD_COUNT)):
        raise ValueError(f"the observation has a number named {name}, expected pad/0 to pad/{PAD_COUNT - 1}")
    places = np.array(PAD_POSITIONS)[:, :2]
    opposite = np.abs(places - places[int(number)] * (-1, 1)).sum(1).argmin()
    return names.index("/".join(["pad", str(opposite), *rest[:-1]]))


def _sign(name: str) -> int:
    """Return by what a number is multiplied when it is mirrored."""
    *_, kind, part = ("", *name.split("/"))
    if part in ("x", "y", "z") and kind == "angular_velocity":  # an axial vector
        return 1 if part == "x" else -1
    if part in ("x", "y", "z") and kind in _VECTORS:
        return -1 if part == "x" else 1
    if part in ("forward", "right", "up") and kind in _LOCAL:
        return -1 if part == "right" else 1
    if part in _SCALARS:
        return 1
    raise ValueError(
        f"the observation has a number named {name}, which does not tell how it is mirrored; expected "
        "TeamObs, names as it gives them, or speed or distance for what stays as it is"
    )
