"""Components trained beside rlgym-learn: `training.components`, but with the observation that both have."""

from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.spec import ComponentSpec
from training.components import *  # noqa: F403
from training.settings import TrainingSettings


def obs(settings: TrainingSettings) -> ComponentSpec:
    """Return what a car sees."""
    return ComponentSpec.of(DefaultObs, zero_padding=None)
