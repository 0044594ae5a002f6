"""Policy folders to play and to spoil."""

import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.components.actions import (
    ContinuousAction,
    LookupTableAction,
    MultiDiscreteAction,
    RepeatAction,
)
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.policy.folder import ComponentSpec, save_policy
from rlgym_bridge.policy.manifest import Manifest

spec = ComponentSpec.of
KINDS = {  # distribution: parser, its sizes, outputs of the network
    "categorical": (LookupTableAction, (90,), 90),
    "multi_categorical": (MultiDiscreteAction, (3, 3, 3, 3, 3, 2, 2, 2), 21),
    "gaussian": (ContinuousAction, (8,), 16),
}
OBS_1V1 = 92


def random_weights(*sizes: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng, weights = np.random.default_rng(seed), {}
    for i, (inputs, outputs) in enumerate(pairwise(sizes)):
        weights[f"layers.{i}.weight"] = (rng.normal(size=(outputs, inputs)) / inputs**0.5).astype(np.float32)
        weights[f"layers.{i}.bias"] = rng.normal(size=outputs).astype(np.float32) / 10
    return weights


def save(folder: Path, distribution: str = "categorical", **changes) -> Manifest:
    parser, _, outputs = KINDS[distribution]
    settings = {
        "distribution": distribution,
        "team_sizes": [(1, 1)],
        "obs": spec(DefaultObs, zero_padding=None),
        "parser": spec(RepeatAction, spec(parser), repeats=8),
        "weights": random_weights(OBS_1V1, 32, outputs),
    }
    return save_policy(folder, **(settings | changes))


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def edit(folder: Path, **changes) -> None:
    """Change keys of policy.json; None stands for itself, `...` takes the key out."""
    file = folder / "policy.json"
    data = json.loads(file.read_text())
    data.update(changes)
    file.write_text(json.dumps({key: value for key, value in data.items() if value is not ...}))


def observations(count: int = 6) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(count, 2, OBS_1V1)).astype(np.float32)


def make_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
