"""Train with Ray RLlib: our matches as its environments, recorded matches as its episodes, its algorithms."""

import logging
import os

from rlgym_bridge.user_input.extras import explain_install

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray asks before it is imported whether to report

# In RLlib's processes too: notes on how RLlib calls itself.
for _name in ("ray._common.deprecation", "ray.rllib.algorithms.algorithm_config"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)

try:
    import gymnasium  # noqa: F401
    import pyarrow  # noqa: F401
    import ray.rllib  # noqa: F401
    import torch  # noqa: F401
except ImportError as missing:
    raise ImportError(f"this needs Ray RLlib: {explain_install('train', 'rllib')} ({missing})") from missing
