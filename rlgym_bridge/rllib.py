"""Use our matches as RLlib's environments, recorded matches as its episodes; `training/rllib` has it."""

from rlgym_bridge.training.rllib.correct_actions import correct_applied_actions
from rlgym_bridge.training.rllib.env import MatchEnv
from rlgym_bridge.training.rllib.match_runner import MatchRunner
from rlgym_bridge.training.rllib.module import PolicyModule
from rlgym_bridge.training.rllib.recorded_episodes import applied_of, episodes_from_recording

__all__ = [
    "MatchEnv",
    "MatchRunner",
    "PolicyModule",
    "applied_of",
    "correct_applied_actions",
    "episodes_from_recording",
]
