"""Ray RLlib: our matches as its environments, and recorded matches as its episodes."""

from rlgym_bridge.user_input.extras import explain_install

try:
    import gymnasium  # noqa: F401
    import msgpack_numpy  # noqa: F401
    import pyarrow  # noqa: F401
    import ray.rllib  # noqa: F401
    import torch  # noqa: F401
except ImportError as missing:
    raise ImportError(f"this needs Ray RLlib: {explain_install('train', 'rllib')} ({missing})") from missing

from rlgym_bridge.rllib.correct_actions import correct_applied_actions
from rlgym_bridge.rllib.env import MatchEnv
from rlgym_bridge.rllib.match_runner import MatchRunner
from rlgym_bridge.rllib.module import PolicyModule
from rlgym_bridge.rllib.recorded_episodes import applied_of, episodes_from_recording

__all__ = [
    "MatchEnv",
    "MatchRunner",
    "PolicyModule",
    "applied_of",
    "correct_applied_actions",
    "episodes_from_recording",
]
