"""Attention over players, and networks of a user's own: trained, resumed, played, and refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlgym_bridge.components.relative_obs import TeamObs
from rlgym_bridge.policy.carried_modules import carried_names
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.shape import PlayerPlaces, PolicyShape
from rlgym_bridge.policy.torch_network import make_networks
from rlgym_bridge.project.package_bot import PackagePlan, make_bot, try_bot
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import batch_of, improve, main
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.runs.run import load_newest
from rlgym_bridge.training.selfplay.snapshots import pack, unpack
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.policy_folders import make_module
from tests.support.small_learners import collected_by, learner_of
from tests.support.states import random_state
from tests.support.training_runs import SMALL

STANDARD = {"components": "rlgym_bridge.training.components", "kickoff_share": 0.0}
OWN = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first, self.norm = nn.Linear(inputs, 24), nn.LayerNorm(24)
        self.last = nn.Linear(24, outputs{more})

    def forward(self, obs):
        return self.last(torch.tanh(self.norm(self.first(obs))))
"""

SHORT = """
import torch
from torch import nn

class MyNet(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.last = nn.Linear(inputs, outputs)
        {parts}

    def forward(self, obs):
        return {answer}
"""


def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, more: str = "") -> str:
    make_module(tmp_path, monkeypatch, name, OWN.format(name="MyNet", more=more))
    return f"{name}:MyNet"


def short_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, parts: str, answer: str) -> str:
    make_module(tmp_path, monkeypatch, name, SHORT.format(parts=parts or "pass", answer=answer))
    return f"{name}:MyNet"


def attention(obs: TeamObs, cars: int) -> Any:
    torch.manual_seed(1)
    names = obs.names(cars, cars)
    shape = PolicyShape(len(names), "categorical", (90,), (32, 32), None, network="attention", names=names)
    shape, policy, critic = make_networks(shape, (16,))
    with torch.no_grad():
        for one in policy.parameters():
            one += 0.1 * torch.randn_like(one)
    return shape, policy, critic


@pytest.mark.parametrize("cars", [1, 2, 3, 4])
def test_attention_in_numpy_is_torchs_for_all_team_sizes(cars: int) -> None:
    builder = TeamObs(zero_padding=4)
    shape, policy, critic = attention(builder, 4)
    obs = builder.build_batch(random_state(cars, cars, seed=cars, matches=20)).reshape(-1, shape.obs_size)
    player = unpack(shape, pack(shape, policy.arrays(), None), (0,))
    with torch.no_grad():
        theirs = policy(torch.from_numpy(obs)).numpy()
        assert critic.values(torch.from_numpy(obs)).shape == (len(obs),)
    np.testing.assert_allclose(player.network(obs), theirs, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(player.network.row_by_row(obs[:3]), theirs[:3], atol=1e-5, rtol=1e-5)


def test_attention_ignores_order_and_empty_places() -> None:
    builder = TeamObs(zero_padding=3)
    shape, policy, _ = attention(builder, 3)
    places = PlayerPlaces.of(shape.names)
    obs = torch.from_numpy(
        builder.build_batch(random_state(2, 2, seed=1, matches=30)).reshape(-1, shape.obs_size)
    )
    changed, swapped = obs.clone(), obs.clone()
    empty = np.flatnonzero((obs[:, places.blocks[:, places.there]] == 0).all(0).numpy())
    assert len(empty) == 2  # a team mate's and an opponent's
    numbers = np.delete(places.blocks[empty], places.there, 1).ravel()
    changed[:, numbers] += 3.0
    torch.testing.assert_close(policy(changed), policy(obs))
    one, other = np.flatnonzero(places.enemies)[:2]
    swapped[:, places.blocks[one]], swapped[:, places.blocks[other]] = (
        obs[:, places.blocks[other]], obs[:, places.blocks[one]],
    )  # fmt: skip
    torch.testing.assert_close(policy(swapped), policy(obs), atol=1e-5, rtol=1e-5)
    mate = places.blocks[0]
    swapped[:, places.blocks[one]], swapped[:, mate] = obs[:, mate], obs[:, places.blocks[one]]
    assert (policy(swapped) - policy(obs)).abs().max() > 1e-3  # a team mate is no opponent


@pytest.mark.parametrize("network", ["attention", "own"])
def test_a_run_with_such_a_network_is_played(
    network: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow = []
    if network == "own":
        network = own_module(tmp_path, monkeypatch, "nets_of_mine")
        allow = ["nets_of_mine"]
    sizes = [[1, 1, 0.5], [2, 2, 0.5]]
    changes = SMALL | STANDARD | {"network": network, "team_sizes": sizes, "matches": 4}
    size = learner_of(tmp_path / "size", False, **changes).steps_of_iteration(1)
    settings = check_settings(changes | {"steps": size})
    whole = main(replace(settings, out=str(tmp_path / "whole")), quiet=True).checkpoint
    loaded = load_policy(whole, allow)
    assert loaded.manifest.network == network
    obs = loaded.obs_builder().build_batch(random_state(2, 2, seed=3, matches=9))
    learner = PPOLearner(replace(settings, out=str(tmp_path / "again")))
    learner.load(whole)
    with torch.no_grad():
        theirs = learner.policy(torch.from_numpy(obs.reshape(-1, obs.shape[2]))).numpy()
    ours = loaded.policy.network(obs.reshape(-1, obs.shape[2]))
    np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=1e-5)
    start = replace(settings, out=str(tmp_path / "next"), start_from=str(whole), critic_alone=0)
    PPOLearner(start).start()
    with pytest.raises(SettingsError, match=r"its network is .*, this run's perceptron"):
        PPOLearner(replace(start, network="perceptron", components=settings.components)).start()
    with pytest.raises(SettingsError, match=r"network was .* is perceptron now.*\(out\)$"):
        main(replace(settings, out=str(tmp_path / "whole"), network="perceptron"), resume=True, quiet=True)
    if allow:
        assert carried_names(whole) == allow
        with pytest.raises(ValueError, match="importing it would run code of nets_of_mine"):
            load_policy(whole)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": "lstm"}, "network is 'lstm', expected perceptron, attention"),
        ({"network": "nobody_has_it:Net"}, "nobody_has_it .* cannot be imported"),
        ({"network": "pathlib:Path"}, r"network is pathlib:Path, which is .*, expected a class of torch"),
        ({"network": "torch.nn:ReLU"}, "network is torch.nn:ReLU, which cannot be made or called:"),
        ({"network": "attention", "normalise_obs": True}, "expected normalise_obs = false: TeamObs"),
        ({"network": "attention", "components": "tests.support.mark_game"}, "needs .* TeamObs .* no "),
    ],
)  # fmt: skip
def test_wrong_networks_get_a_sentence(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=message):
        learner_of(tmp_path, False, **STANDARD | changes)


def test_a_network_of_another_size_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = own_module(tmp_path, monkeypatch, "wide_nets", " + 1")
    with pytest.raises(SettingsError, match=r"gives \(2, 91\) for observations .* a tensor \(2, 90\)"):
        learner_of(tmp_path / "run", False, network=network, **STANDARD)


@pytest.mark.parametrize(
    ("parts", "answer", "message"),
    [
        ("", "torch.zeros(len(obs), self.last.out_features)", "depend on no parameter that learns"),
        ("self.last.requires_grad_(False)", "self.last(obs)", "depend on no parameter that learns"),
        ("", "self.last(obs).detach()", "depend on no parameter that learns"),
        ("", "self.last(obs) * float('nan')", "gives numbers that are not finite"),
        ("", "self.last(obs.mul_(2))", "changes the observations that it is given"),
        ("self.drop = nn.Dropout()", "self.last(self.drop(obs))", "no Dropout, no noise"),
        ("", "self.last(obs - obs.mean(0))", "a row beside others and alone differently"),
    ],
)
def test_a_network_that_cannot_learn_is_named(
    parts: str, answer: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = short_module(tmp_path, monkeypatch, f"poor_nets_{abs(hash((parts, answer)))}", parts, answer)
    with pytest.raises(SettingsError, match=f"network is {network}, which .*{message}"):
        learner_of(tmp_path / "run", False, network=network)


def test_frozen_and_unused_parameters_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = "self.frozen, self.unused = nn.Linear(inputs, inputs).requires_grad_(False), nn.Linear(2, 2)"
    network = short_module(tmp_path, monkeypatch, "partly_learning", parts, "self.last(self.frozen(obs))")
    learner = learner_of(tmp_path / "run", False, network=network)
    before = {name: value.clone() for name, value in learner.policy.state_dict().items()}
    improve(learner, batch_of(learner, collected_by(learner)))
    after = learner.policy.state_dict()
    assert {name for name in before if not torch.equal(before[name], after[name])} == {
        "net.last.weight",
        "net.last.bias",
    }


def test_a_run_whose_class_has_changed_names_the_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = short_module(tmp_path, monkeypatch, "changing_nets", "", "self.last(obs)")
    learner_of(tmp_path / "run", False, network=network).save(Checkpoints(tmp_path / "run", 1))
    parts = "self.more = nn.Linear(inputs, inputs)"
    short_module(tmp_path, monkeypatch, "changing_nets", parts, "self.last(self.more(obs))")
    message = r"its policy \(changing_nets:MyNet\) has other tensors .* now: net.more.bias, net.more.weight"
    with pytest.raises(SettingsError, match=message):
        load_newest(learner_of(tmp_path / "run", False, network=network), tmp_path / "run")


def test_a_bot_with_a_network_of_its_own_is_packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = own_module(tmp_path, monkeypatch, "nets_to_package")
    learner = learner_of(tmp_path / "run", False, network=network, **STANDARD)
    learner.steps = 8
    folder = learner.save(Checkpoints(tmp_path / "run", 1))
    bot = make_bot(PackagePlan(folder, "Mine", "me", ["nets_to_package"]))
    assert {"nets_to_package.py", "policy/weights.safetensors"} <= set(bot.files)
    assert "\ntorch==" in bot.files["requirements.txt"].decode()
    assert '"torch"' not in (spec := bot.files["bot.spec"].decode()) and "*[]" in spec  # left out there
    assert "download.pytorch.org/whl/cpu" in bot.files["README.md"].decode()
    assert try_bot(bot) > 0  # it connects, with torch
