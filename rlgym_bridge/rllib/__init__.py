"""Ray RLlib: our matches as its environments, and recorded matches as its episodes.

env.py                MatchEnv: one match, every car an agent
match_runner.py       MatchRunner: an env runner that steps all its matches together
chunks.py             whole arrays as parts of RLlib's episodes
module.py             PolicyModule: the networks of single-machine training
recorded_episodes.py  recorded matches as episodes
correct_actions.py    replace the actions that were commanded by those that the game applied
logp.py               the log-probabilities of the replaced actions
"""

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
