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
    sys.modules.pop(name, None)  # of this test; after it a fixture forgets all of its own modules


def network_folder(folder: Path, team_size: int) -> Path:
    """Write a random network of fixed weights: 2 x 64, sampled."""
    size = DefaultObs(zero_padding=None).size(team_size, team_size)
    weights = random_weights(size, 64, 64, 90, seed=7)
    save(folder, weights=weights, team_sizes=[(team_size, team_size)], selection="sample", seed=3)
    return folder


COUNTING_ENV = """
from rlgym.api import RLGym
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.done_conditions import GoalCondition
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import GoalReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence
from rlgym.api import SharedInfoProvider

DELAY = {delay}

class Counter(SharedInfoProvider):
    def create(self, shared_info):
        return {{"steps": 0}}
    def set_state(self, agents, initial_state, shared_info):
        return shared_info
    def step(self, agents, state, shared_info):
        shared_info["steps"] += 1
        return shared_info

class Counted(DefaultObs):
    def build_obs(self, agents, state, shared_info):
        obs = super().build_obs(agents, state, shared_info)
        return {{agent: [*row[:-1], shared_info["steps"]] for agent, row in obs.items()}}

def make():
    return RLGym(
        MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator()), Counted(None),
        RepeatAction(LookupTableAction(), 6), GoalReward(), RocketSimEngine(rlbot_delay=DELAY),
        GoalCondition(), shared_info_provider=Counter(),
    )
"""
