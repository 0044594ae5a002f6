"""The standard components, with the observation that `[my]` names: of `candidates.py`."""

import rlgym_bridge
from rlgym_bridge import ComponentSpec
from rlgym_bridge.training.components import *  # noqa: F403
from rlgym_bridge.training.settings import TrainingSettings


def obs(settings: TrainingSettings) -> ComponentSpec:
    """Return the observation named by `obs` in `[my]`, with room for the largest team."""
    kind = getattr(rlgym_bridge, str(settings.my["obs"]))
    return ComponentSpec.of(kind, zero_padding=max(map(max, settings.sizes)))
