"""Public examples of rlgym-ppo and rlgym-learn, carried over by the table in docs/train/settings.md."""

import dataclasses
import re
from pathlib import Path
from typing import Any, Final

import pytest

from rlgym_bridge.training.settings import TrainingSettings, check_settings

PAGE: Final = Path(__file__).parents[2] / "docs" / "train" / "settings.md"
BATCH: Final = ("ts_per_iteration", "timesteps_per_iteration", "exp_buffer_size", "max_size")
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "rlgym-ppo": {
        "ts_per_iteration": 50_000, "exp_buffer_size": 150_000, "ppo_batch_size": 50_000,
        "ppo_minibatch_size": 50_000, "ppo_ent_coef": 0.001, "ppo_epochs": 1, "ppo_clip_range": 0.2,
        "policy_lr": 3e-4, "critic_lr": 2e-4, "gae_gamma": 0.99, "gae_lambda": 0.95,
        "standardize_returns": True, "standardize_obs": False, "policy_layer_sizes": [256] * 3,
        "critic_layer_sizes": [512] * 3, "save_every_ts": 100_000, "n_checkpoints_to_keep": 5,
        "random_seed": 123, "timestep_limit": 1_000_000_000,
    },
    "rlgym-learn": {
        "timesteps_per_iteration": 50_000, "max_size": 150_000, "batch_size": 50_000, "n_minibatches": 1,
        "ent_coef": 0.001, "n_epochs": 1, "clip_range": 0.2, "actor_lr": 3e-4, "critic_lr": 2e-4,
        "gamma": 0.99, "lmbda": 0.95, "standardize_returns": True, "advantage_normalization": True,
        "save_every_ts": 100_000, "n_checkpoints_to_keep": 5, "random_seed": 123,
        "timestep_limit": 1_000_000_000,
    },
}  # fmt: skip
"""Names of `rlgym_v2_example.py` (AechPro/rlgym-ppo) and `quick_start_guide.py` (JPK314/rlgym-learn)."""

OURS: Final = {
    "steps": 1_000_000_000, "minibatch": 50_000, "epochs": 1, "clip": 0.2, "entropy_coefficient": 0.001,
    "learning_rate": 3e-4, "critic_learning_rate": 2e-4, "gamma": 0.99, "gae_lambda": 0.95,
    "standardize_returns": True, "seed": 123, "checkpoint_every": 100_000, "keep_checkpoints": 5,
}  # fmt: skip
NETWORKS: Final = {"policy_layers": (256,) * 3, "critic_layers": (512,) * 3, "normalise_obs": False}


@pytest.mark.parametrize("library", EXAMPLES)
def test_an_example_is_carried_over_by_the_table(library: str) -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## From rlgym-ppo and rlgym-learn")[2]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    column = [cell.strip() for cell in rows[0]].index(library)
    known = {field.name for field in dataclasses.fields(TrainingSettings)}
    given, carried, named = EXAMPLES[library], {}, set()
    for row in rows[2:]:
        ours, theirs = (re.findall(r"`(\w+)`", row[at]) for at in (0, column))
        named |= set(theirs)
        pairs = zip((name for name in ours if name in known), theirs, strict=False)
        carried |= {our: given[their] for our, their in pairs if their in given and their not in BATCH}
    settings = check_settings(carried)
    assert set(given) <= named
    expected = OURS | (NETWORKS if library == "rlgym-ppo" else {})
    assert {name: getattr(settings, name) for name in expected} == expected
