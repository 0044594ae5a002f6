"""What is trained beside rlgym-learn: `training.components`, but with the observation that both have."""

from dataclasses import replace

from rlgym_bridge.components import Components, ComponentSpec
from rlgym_bridge.observations import DefaultObs
from rlgym_bridge.sim.vector_env import VectorEnv
from training.components import make_components, parser
from training.config import Settings, hitbox_number

__all__ = ["make_env", "obs", "parser"]


def obs(settings: Settings) -> ComponentSpec:
    """Return what a car sees."""
    return ComponentSpec.of(DefaultObs, zero_padding=None)


def make_env(settings: Settings, matches: int) -> VectorEnv:
    """Return the matches of one collector."""

    def components() -> Components:
        return replace(make_components(settings), obs_builder=DefaultObs(None))

    return VectorEnv(
        matches,
        components,
        settings.team_sizes,
        tick_skip=settings.tick_skip,
        action_delay=settings.action_delay,
        hitbox=hitbox_number(settings),
    )
