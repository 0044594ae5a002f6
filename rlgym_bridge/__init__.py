"""Train a Rocket League bot in RocketSim, play it in real matches, see the difference.

What a bot maker needs is imported from here; each name loads its module when it is first used:

    from rlgym_bridge import LookupTableAction, RelativeObs, RepeatAction, VectorEnv
    from rlgym_bridge import conditions, mutators, rewards

Policy folders name components by these paths too, so that modules may move.
"""

from rlgym_bridge.user_input.current_folder import leave_out_current_folder

leave_out_current_folder()  # before anything else is imported

from rlgym_bridge.policy.matrix_kernels import choose_kernels  # noqa: E402

choose_kernels()  # before numpy is

from importlib import import_module  # noqa: E402
from typing import TYPE_CHECKING, Any, Final  # noqa: E402

if TYPE_CHECKING:  # what type checkers and editors see
    from rlgym_bridge.clock import Clock
    from rlgym_bridge.compare.comparison import compare_recordings
    from rlgym_bridge.components import conditions, mutators, rewards
    from rlgym_bridge.components.actions import (
        ContinuousAction,
        LookupTableAction,
        MultiDiscreteAction,
        RepeatAction,
    )
    from rlgym_bridge.components.advanced_obs import AdvancedObs
    from rlgym_bridge.components.ball_ahead import forecast_ball
    from rlgym_bridge.components.default_obs import DefaultObs, add_number
    from rlgym_bridge.components.player_spec import PlayerSpec, Policy
    from rlgym_bridge.components.relative_obs import RelativeObs, TeamObs
    from rlgym_bridge.components.spec import ComponentSpec
    from rlgym_bridge.engines.live import LiveEngine
    from rlgym_bridge.engines.sim import SimEngine
    from rlgym_bridge.live.play import play
    from rlgym_bridge.policy.folder import load_policy, save_policy
    from rlgym_bridge.recording.open import open_recording
    from rlgym_bridge.server import MatchServer
    from rlgym_bridge.sim.vector_env import VectorEnv
    from rlgym_bridge.state import MatchState

_HOMES: Final = {
    "AdvancedObs": "components.advanced_obs",
    "Clock": "clock",
    "ComponentSpec": "components.spec",
    "ContinuousAction": "components.actions",
    "DefaultObs": "components.default_obs",
    "LiveEngine": "engines.live",
    "LookupTableAction": "components.actions",
    "MatchServer": "server",
    "MatchState": "state",
    "MultiDiscreteAction": "components.actions",
    "PlayerSpec": "components.player_spec",
    "Policy": "components.player_spec",
    "RelativeObs": "components.relative_obs",
    "RepeatAction": "components.actions",
    "SimEngine": "engines.sim",
    "TeamObs": "components.relative_obs",
    "VectorEnv": "sim.vector_env",
    "add_number": "components.default_obs",
    "compare_recordings": "compare.comparison",
    "conditions": "components.conditions",
    "forecast_ball": "components.ball_ahead",
    "load_policy": "policy.folder",
    "mutators": "components.mutators",
    "open_recording": "recording.open",
    "play": "live.play",
    "rewards": "components.rewards",
    "save_policy": "policy.folder",
}
"""The module in which each name lies, or that it is."""

__all__ = [
    "AdvancedObs",
    "Clock",
    "ComponentSpec",
    "ContinuousAction",
    "DefaultObs",
    "LiveEngine",
    "LookupTableAction",
    "MatchServer",
    "MatchState",
    "MultiDiscreteAction",
    "PlayerSpec",
    "Policy",
    "RelativeObs",
    "RepeatAction",
    "SimEngine",
    "TeamObs",
    "VectorEnv",
    "add_number",
    "compare_recordings",
    "conditions",
    "forecast_ball",
    "load_policy",
    "mutators",
    "open_recording",
    "play",
    "rewards",
    "save_policy",
]


def __getattr__(name: str) -> Any:
    """Import a name of the public face when it is first asked for (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    module = import_module(f"{__name__}.{_HOMES[name]}")
    value = globals()[name] = getattr(module, name, module)
    return value


def is_component(name: str) -> bool:
    """Tell whether a public name is that of a component; nothing is imported."""
    return _HOMES.get(name, "").startswith("components.")


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
