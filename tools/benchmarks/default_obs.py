"""Components trained beside rlgym-learn: the standard ones, but with the observation that both have."""

from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.spec import ComponentSpec
from rlgym_bridge.training.components import *  # noqa: F403
from rlgym_bridge.training.settings import TrainingSettings


def obs(settings: TrainingSettings) -> ComponentSpec:
    """Return what a car sees."""
    return ComponentSpec.of(DefaultObs, zero_padding=None)
