"""Training with Ray RLlib: the same settings, networks, matches and policy folders on many machines."""

import logging
import os

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray asks before it is imported whether to report

# In RLlib's processes too: notes on how RLlib calls itself.
for _name in ("ray._common.deprecation", "ray.rllib.algorithms.algorithm_config"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)

import rlgym_bridge.rllib  # noqa: E402, F401  says what to install where Ray is missing
