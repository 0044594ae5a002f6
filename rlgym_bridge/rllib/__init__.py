"""Ray RLlib: our matches as its environments, and recorded matches as its episodes.

env.py       MatchEnv: one match, every car an agent
runner.py    MatchRunner: an env runner that steps all its matches together
module.py    PolicyModule: the networks of single-machine training
recorded.py  recorded matches as episodes
applied.py   the actions that the game applied, in place of those commanded
logp.py      and their probabilities
offline.py   episodes in files, and behaviour cloning from them
"""

try:
    import gymnasium  # noqa: F401
    import msgpack_numpy  # noqa: F401
    import pyarrow  # noqa: F401
    import ray.rllib  # noqa: F401
    import torch  # noqa: F401
except ImportError as missing:
    raise ImportError(
        f'this needs Ray RLlib: pip install -c constraints.txt -e ".[train,rllib]" ({missing})'
    ) from missing

from rlgym_bridge.rllib.applied import correct_applied_actions
from rlgym_bridge.rllib.env import MatchEnv
from rlgym_bridge.rllib.module import PolicyModule
from rlgym_bridge.rllib.recorded import applied_of, episodes_from_recording
from rlgym_bridge.rllib.runner import MatchRunner

__all__ = [
    "MatchEnv",
    "MatchRunner",
    "PolicyModule",
    "applied_of",
    "correct_applied_actions",
    "episodes_from_recording",
]
