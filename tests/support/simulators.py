"""Parametrise tests over both simulators; those of RocketSim 3 are skipped without its module."""

from typing import Final

import pytest

from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3, SIMULATORS, SimulatorError, check_simulator


def _has_native() -> bool:
    """Tell whether the module of RocketSim 3 is installed."""
    try:
        check_simulator(ROCKETSIM3)
    except SimulatorError:
        return False
    return True


needs_native: Final = pytest.mark.skipif(
    not _has_native(), reason="rocketsim_batch is not installed: make native"
)
usual: Final = pytest.mark.parametrize(
    "played_in",
    [
        pytest.param(ROCKETSIM2, marks=pytest.mark.slow if _has_native() else ()),
        pytest.param(ROCKETSIM3, marks=needs_native),
    ],
    indirect=True,
)
"""Plays in the simulator that is usual here, and slowly in the other: for what physics do not change."""

both: Final = pytest.mark.parametrize(
    "name", [ROCKETSIM2, pytest.param(ROCKETSIM3, marks=needs_native)], ids=list(SIMULATORS)
)

TICK_IN_3: Final = {ROCKETSIM2: 0.0, ROCKETSIM3: 1 / 120}
"""Seconds, a tick, by which RocketSim 3 begins later to use boost and to count since a jump's end.

By as much a pad's time has run at the pickup."""

ROUNDING: Final = {
    ROCKETSIM2: {"position": 1e-5, "linear_velocity": 1e-5, "angular_velocity": 1e-7, "rotation": 1e-6},
    ROCKETSIM3: {"position": 0.0055, "linear_velocity": 0.01, "angular_velocity": 1e-4, "rotation": 1e-5},
}
"""Most between what is set and what is shown, in uu, uu/s, rad/s, rad; RocketSim 3 rounds as the game does.

Places go to the nearest 0.01 uu, in float32. Speeds are cut to steps of 0.01 uu/s and 1e-4 rad/s, and a tenth
of a step is added. The parts of a quaternion have 18 bits.
"""
