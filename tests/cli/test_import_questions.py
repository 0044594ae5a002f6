"""`import` asks for what the files of a bot do not tell: activations, and how observations were scaled."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from rlgym_bridge.cli import main
from rlgym_bridge.policy.folder import load_policy
from tests.support.foreign_checkpoints import OBS, network, save_ppo

WORDS = ["--env", "my_env:discrete", "--out", "bot", "-q"]
STATS = {"mean": [3.0] * OBS, "var": [900.0] * OBS, "shape": [OBS], "count": 301}


def scaled() -> bool:
    return json.loads(Path("bot", "policy.json").read_text())["obs_normalisation"] is not None


@pytest.mark.parametrize("given", ["PPO_POLICY.pt", "5000"])
def test_a_policy_without_its_notes_is_not_taken_for_unscaled(
    given: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = save_ppo(here / "5000", network(90), STATS)
    notes = folder / "BOOK_KEEPING_VARS.json"
    notes.rename(here / "notes.json")
    if given == "PPO_POLICY.pt":
        (folder / given).rename(given)
    assert main(["import", given, *WORDS]) == 2
    said = capsys.readouterr().err
    assert "BOOK_KEEPING_VARS.json is missing" in said and "add --no-standardise" in said
    assert not Path("bot").exists()

    assert main(["import", given, *WORDS, "--no-standardise"]) == 0
    assert not scaled()
    shutil.rmtree("bot")
    (here / "notes.json").rename(notes if given == "5000" else here / notes.name)
    assert main(["import", given, *WORDS]) == 0
    assert scaled()


def test_notes_without_statistics_mean_unscaled_observations(here: Path) -> None:
    save_ppo(here / "5000", network(90))
    for words in ([], ["--no-standardise"]):
        assert main(["import", "5000", *WORDS, *words]) == 0
        assert not scaled()


def test_notes_that_contradict_the_command_are_believed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_ppo(here / "5000", network(90), STATS)
    assert main(["import", "5000", *WORDS, "--no-standardise"]) == 2
    assert "has obs_running_stats, so the bot was trained with" in capsys.readouterr().err


def test_notes_that_are_none_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save_ppo(here / "5000", network(90))
    (folder / "BOOK_KEEPING_VARS.json").write_text("[]")
    assert main(["import", "5000", *WORDS]) == 2
    assert "BOOK_KEEPING_VARS.json holds list, expected an object" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["mine.pt", "actor.pt"])
def test_a_state_dict_does_not_tell_its_activations(
    name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(network(90).state_dict(), name)
    assert main(["import", name, *WORDS]) == 2
    said = capsys.readouterr().err
    assert f"{name} holds tensors alone" in said and "add --activation relu" in said
    assert not Path("bot").exists()
    assert main(["import", name, *WORDS, "--activation", "relu"]) == 0


def test_unknown_activations_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(network(90).state_dict(), "mine.pt")
    assert main(["import", "mine.pt", *WORDS, "--activation", "mish"]) == 2
    said = capsys.readouterr().err
    assert "the activation is mish, expected one of relu, leaky_relu, tanh, silu, gelu" in said


@pytest.mark.parametrize("norm", [False, True], ids=["plain", "layer norm"])
def test_a_state_dict_plays_with_the_activation_given(norm: bool, here: Path) -> None:
    norms = [torch.nn.LayerNorm(16)] if norm else []
    model = torch.nn.Sequential(
        torch.nn.Linear(OBS, 16), *norms, torch.nn.Tanh(), torch.nn.Linear(16, 90)
    ).requires_grad_(False)
    if norm:
        model[1].weight.uniform_(0.5, 2)
    torch.save(model.state_dict(), "mine.pt")
    assert main(["import", "mine.pt", *WORDS, "--activation", "tanh"]) == 0
    policy = load_policy("bot", allow_modules=["my_env"], selection="argmax").policy
    obs = np.random.default_rng(0).normal(size=(50, 1, OBS)).astype(np.float32)
    expected = model(torch.from_numpy(obs[:, 0])).numpy()
    np.testing.assert_allclose(policy.network(obs[:, 0]), expected, atol=1e-5)


def test_norms_behind_activations_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = torch.nn.Sequential(
        torch.nn.Linear(OBS, 16), torch.nn.ReLU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 90)
    )
    torch.save(model.state_dict(), "mine.pt")
    assert main(["import", "mine.pt", *WORDS, "--activation", "relu"]) == 2
    assert "expected a linear layer that takes 16 numbers, or layer normalisation" in capsys.readouterr().err


def test_changed_bots_of_known_trainers_name_theirs(here: Path) -> None:
    save_ppo(here / "5000", network(90))
    assert main(["import", "5000", *WORDS, "--activation", "silu"]) == 0
    assert json.loads(Path("bot", "policy.json").read_text())["activation"] == "silu"


def test_a_state_dict_is_read_where_torch_is_not_installed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = network(90)
    save_ppo(here / "5000", model, STATS)
    (here / "odd.pt").write_bytes(b"no zip")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["import", "5000", *WORDS]) == 0
    weight, bias = load_policy("bot", allow_modules=("my_env",)).policy.network.layers[0]
    np.testing.assert_array_equal(weight, model[0].weight.detach().numpy().T)
    np.testing.assert_array_equal(bias, model[0].bias.detach().numpy())
    assert main(["import", "odd.pt", *WORDS, "--activation", "relu"]) == 2
    said = capsys.readouterr().err
    assert "odd.pt (6 bytes) cannot be read without torch: BadZipFile" in said and said.count("\n") == 1
