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
both: Final = pytest.mark.parametrize(
    "name", [ROCKETSIM2, pytest.param(ROCKETSIM3, marks=needs_native)], ids=list(SIMULATORS)
)

TICK_IN_3: Final = {ROCKETSIM2: 0.0, ROCKETSIM3: 1 / 120}
"""Seconds, a tick, by which RocketSim 3 begins later to use boost and to count since a jump's end.

By as much a pad's time has run at the pickup."""

STEP: Final = {ROCKETSIM2: 1e-5, ROCKETSIM3: 0.011}
"""uu and uu/s between what is set and what is shown: RocketSim 3 cuts and rounds as the game does."""
