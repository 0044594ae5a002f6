"""Name the game modes that RocketSim plays with the collision meshes at hand."""

from collections.abc import Mapping
from typing import Final

PLAYED_MODES: Final[Mapping[str, int]] = {"Soccar": 0, "Heatseeker": 2, "Snowday": 3}
"""RocketSim's own numbers of the modes (`RocketSim.GameMode`), by the names of `flat.GameMode`."""

_WHY_NOT: Final = {
    "Hoops": "rlgym-rocket-league brings no collision meshes of its arena",
    "Dropshot": "RocketSim 2.2.1 makes no arena of it",
    "Rumble": "RocketSim has none of its items",
}


def mode_number(mode: str) -> int:
    """Return RocketSim's number of a mode.

    Raises:
        ValueError: RocketSim does not play it; the message says why.
    """
    if mode not in PLAYED_MODES:
        why = _WHY_NOT.get(mode, "RocketSim does not know it")
        raise ValueError(f"mode is {mode}, expected one of {', '.join(PLAYED_MODES)}: {why}")
    return PLAYED_MODES[mode]
