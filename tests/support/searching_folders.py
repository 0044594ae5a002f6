"""Policy folders whose policy looks ahead."""

from pathlib import Path
from typing import Any

import numpy as np

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.policy.manifest import SearchSettings
from tests.support.policy_folders import OBS_1V1, save, zeros

SEARCH = SearchSettings(decisions=4, choices=3, least_probability=0.1, goal=30.0, gamma=0.9)
TABLE = LookupTableAction().parse_batch(np.arange(90)[:, None])[:, 0, 0]  # (90, 8)
BACK, AHEAD = (
    next(i for i, row in enumerate(TABLE) if np.array_equal(row, [throttle, *[0] * 7]))
    for throttle in (-1, 1)
)
SPEED_AHEAD = DefaultObs(zero_padding=None).names(1, 1, 0).index("self/linear_velocity/y")


def searching(folder: Path, likely: dict[int, float], critic: dict[int, float], **changes: Any) -> Path:
    """Save a policy of fixed logits, and a critic that adds up some numbers of the observation."""
    bias, weight = np.full(90, -20, np.float32), zeros(1, OBS_1V1)
    for action, logit in likely.items():
        bias[action] = logit
    for number, factor in critic.items():
        weight[0, number] = factor
    weights = {
        "layers.0.weight": zeros(90, OBS_1V1), "layers.0.bias": bias,
        "critic.layers.0.weight": weight, "critic.layers.0.bias": zeros(1),
    }  # fmt: skip
    save(folder, **({"weights": weights, "search": SEARCH, "selection": "argmax"} | changes))
    return folder
