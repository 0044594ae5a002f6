"""Bots without an RLGym environment come along, those of C++ trainers among them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from rlgym_bridge import AdvancedObs
from rlgym_bridge.cli import main
from rlgym_bridge.policy.folder import load_policy
from tests.support.foreign_checkpoints import libtorch_archive, save_ppo
from tests.support.policy_folders import make_module
from tests.support.states import random_state
from tools.bring_a_bot import bring_a_bot

V1 = ["--obs", "rlgym_bridge:AdvancedObs", "--action-delay", "7", "--out", "bot", "-q"]
PADDED = ["--obs-args", '{"zero_padding": 3, "has_jump": true}', "--team-size", "1", "2", "3"]


def hidden(inputs: int, *widths: int, norm: bool = False) -> list[nn.Module]:
    """Layers of a C++ trainer: linear, layer normalisation or none, activation."""
    parts: list[nn.Module] = []
    for width in widths:
        parts += [nn.Linear(inputs, width), *([nn.LayerNorm(width)] * norm), nn.LeakyReLU()]
        inputs = width
    return parts


def played(inputs: int) -> tuple[np.ndarray, torch.Tensor]:
    """What the imported network makes of some observations, and these."""
    shown = np.random.default_rng(0).normal(size=(5, inputs)).astype(np.float32)
    return load_policy("bot").policy.network(shown), torch.as_tensor(shown)


def test_a_bot_of_rlgym_v1_needs_no_module_to_play(here: Path) -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(107, 16), nn.ReLU(), nn.Linear(16, 90), nn.Softmax(-1))
    libtorch_archive(model).save("PPO_POLICY.lt")
    assert main(["import", "PPO_POLICY.lt", *V1, "--json", "found.json"]) == 0
    found = json.loads(Path("found.json").read_text())
    assert (found["trainer"], found["obs_size"], found["tick_skip"]) == ("RLGymPPO_CPP", 107, 8)
    loaded = load_policy("bot")
    assert loaded.manifest.action_delay == 7
    state = random_state(1, 1, seed=2)
    seen = loaded.obs_builder().build_batch(state)
    np.testing.assert_array_equal(seen, AdvancedObs().build_batch(state))
    with torch.no_grad():
        expected = model[:3](torch.as_tensor(seen[0])).numpy()
    np.testing.assert_allclose(loaded.policy.network(seen[0]), expected, atol=1e-5)


@pytest.mark.parametrize("norm", [False, True], ids=["plain", "layer norm"])
def test_a_shared_head_stands_before_the_policys_layers(norm: bool, here: Path) -> None:
    torch.manual_seed(2)
    head = nn.Sequential(*hidden(237, 24, 20, norm=norm))
    policy = nn.Sequential(*hidden(20, 16, norm=norm), nn.Linear(16, 90))
    folder = here / "checkpoints" / "5000"
    folder.mkdir(parents=True)
    for name, model in (("SHARED_HEAD", head), ("POLICY", policy)):
        libtorch_archive(model).save(str(folder / f"{name}.lt"))
    words = ["import", "checkpoints", *V1, *PADDED, "--activation", "leaky_relu", "--json", "found.json"]
    assert main(words) == 0
    found = json.loads(Path("found.json").read_text())
    assert (found["trainer"], found["layers"]) == ("GigaLearnCPP", [24, 20, 16, 90])
    assert found["team_sizes"] == [[1, 1], [2, 2], [3, 3]] and found["layer_norm"] == norm
    ours, shown = played(237)
    with torch.no_grad():
        np.testing.assert_allclose(ours, policy(head(shown)).numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "neither --env nor --obs is given, expected the environment"),
        (["--env", "my_env:discrete", "--obs", "a:B"], "--env and --obs are given, expected --env alone"),
        (["--obs", "AdvancedObs"], "--obs is 'AdvancedObs', expected module:Class"),
        (["--obs", "a:B", "--obs-args", "{"], "--obs-args is no JSON"),
        (["--obs", "a:B", "--obs-args", "3"], "--obs-args is 3, expected a JSON object"),
        (["--obs", "a:B", "--team-size", "9"], "--team-size is [9], expected cars in a team, 1 to 4"),
        (["--obs", "rlgym_bridge:AdvancedObs", "--obs-args", '{"size": 3}'], "cannot be made with"),
        (["--obs", "rlgym_bridge:AdvancedObs"], "107"),
    ],
)
def test_components_that_do_not_fit_are_named(words: list[str], message: str, here: Path, refused) -> None:
    save_ppo(here / "7", nn.Sequential(nn.Linear(92, 8), nn.ReLU(), nn.Linear(8, 90)))
    assert message in refused("import", "7", "--out", "bot", *words)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_bot_is_brought_from_a_clean_environment(tmp_path: Path) -> None:
    figures = bring_a_bot(tmp_path)
    assert figures["environment MB"] < 150


SIM = """
from rlgym_sim.utils.obs_builders import ObsBuilder

class Mine(ObsBuilder):
    pass

class Gym:
    __module__ = "rlgym_sim.gym"

def make():
    return Gym()
"""


@pytest.mark.parametrize(
    ("option", "named", "messages"),
    [
        ("--obs", "Mine", ["expected a subclass of rlgym.api.ObsBuilder", "--obs rlgym_bridge:AdvancedObs"]),
        ("--env", "make", ["make returned Gym, expected an RLGym, or a wrapper", "take other arguments."]),
    ],
)
def test_parts_of_rlgym_1_are_named_with_the_way_out(
    option: str, named: str, messages: list[str], here: Path, monkeypatch: pytest.MonkeyPatch, refused
) -> None:
    (here / "rlgym_sim" / "utils").mkdir(parents=True)
    (here / "rlgym_sim" / "utils" / "obs_builders.py").write_text("class ObsBuilder:\n    pass\n")
    make_module(here, monkeypatch, "old_parts", SIM)
    save_ppo(here / "5", nn.Sequential(nn.Linear(107, 90)))
    said = refused("import", "5", option, f"old_parts:{named}", "--out", "bot")
    assert all(message in said for message in (*messages, "It is RLGym 1's (rlgym-sim)"))


def test_actions_that_do_not_fit_blame_what_was_given(here: Path, refused) -> None:
    save_ppo(here / "5", nn.Sequential(nn.Linear(107, 21)))
    message = refused("import", "5", *V1)
    assert "was it trained with this --parser?" in message and "--env" not in message
