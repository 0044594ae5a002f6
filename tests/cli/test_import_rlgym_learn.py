"""Checkpoints of rlgym-learn 2: actor and critic in one file, which plays what torch computes."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from rlgym_bridge.cli import main
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from tests.support.foreign_checkpoints import OBS, network, save_ppo

DISCRETE = ["--env", "my_env:discrete", "--out", "bot"]
RUN = Path("agent_controller_checkpoints", "rlgym-learn-run-1759000000000000000")


def layers(*widths: int, norm: bool = False) -> list[nn.Module]:
    """Linear layers, each with ReLU behind it and layer normalisation between, where asked for."""
    made: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        made += [nn.Linear(inputs, outputs), *([nn.LayerNorm(outputs)] if norm else []), nn.ReLU()]
    return made


class Discrete(nn.Module):
    def __init__(self, norm: bool = False) -> None:
        super().__init__()
        self.model = nn.Sequential(*layers(OBS, 64, 32, norm=norm), nn.Linear(32, 90), nn.Softmax(dim=-1))

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        given: torch.Tensor = self.model(obs)
        return given


class Continuous(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(*layers(OBS, 64, 32))
        self.mean_head = nn.Linear(32, 8)
        self.std_head = nn.Sequential(nn.Linear(32, 8), nn.Softplus())


class Pair(nn.Module):
    def __init__(self, actor: nn.Module, critic: nn.Module | None = None) -> None:
        super().__init__()
        self.actor = actor
        self.critic = critic or nn.ModuleDict({"model": nn.Sequential(*layers(OBS, 16), nn.Linear(16, 1))})


def save_learn(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Write what rlgym-learn-algos 0.4 writes of a policy."""
    (folder / "ppo_learner").mkdir(parents=True)
    torch.save(tensors, folder / "ppo_learner" / "actor_critic.pt")
    (folder / "ppo_agent.json").write_text(json.dumps({"cumulative_timesteps": 640}))


def imported(*words: str, env: str = "discrete", selection: str = "argmax") -> NetworkPolicy:
    given = ["--env", f"my_env:{env}", "--out", "bot", "--selection", selection, "-q"]
    assert main(["import", *words, *given, "--json", "found.json"]) == 0
    policy: Any = load_policy("bot", ["my_env"]).policy
    policy.reset([0], 0)
    return policy


def seen(rows: int = 300) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(rows, 1, OBS)).astype(np.float32)


def likeliest(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Find the likeliest tanh of a normal number by trying places, closer and closer."""
    best = np.zeros(mean.shape)
    for width in (30.0, 0.1, 3e-4, 1e-6):
        places = best + np.linspace(-width, width, 2001).reshape(-1, 1, 1)
        density = -((places - mean) ** 2) / (2 * std**2) + 2 * np.log(np.cosh(places))
        best = np.take_along_axis(places, density.argmax(0)[None], 0)[0]
    found: np.ndarray = np.tanh(best)
    return found


@pytest.mark.parametrize("compiled", ["nothing", "whole", "actor", "model"])
@pytest.mark.parametrize("norm", [False, True], ids=["plain", "layer normalisation"])
def test_a_discrete_actor_plays_what_torch_computes(norm: bool, compiled: str, here: Path) -> None:
    torch.manual_seed(3)
    pair = Pair(Discrete(norm))
    tensors = {
        f"_orig_mod.{name}"
        if compiled == "whole"
        else name.replace(f"{compiled}.", f"{compiled}._orig_mod.", 1): one
        for name, one in pair.state_dict().items()
    }
    assert any("_orig_mod" in name for name in tensors) == (compiled != "nothing")
    save_learn(RUN / "100", {"actor.model.0.weight": torch.zeros(1)})
    save_learn(RUN / "1759000000000000001", tensors)
    policy, obs = imported(str(RUN.parent)), seen()
    found = json.loads(Path("found.json").read_text())
    assert (found["trainer"], found["steps"], found["layer_norm"]) == ("rlgym-learn", 640, norm)
    with torch.no_grad():
        truth = pair.actor(torch.as_tensor(obs[:, 0])).numpy()
    outputs = np.exp(policy.network(obs[:, 0]).astype(np.float64))
    np.testing.assert_allclose(outputs / outputs.sum(1, keepdims=True), truth, atol=1e-5)
    assert (policy.act(obs)[:, 0] == truth.argmax(1)).all()


def continuous_pair() -> Pair:
    torch.manual_seed(4)
    pair = Pair(Continuous())
    with torch.no_grad():  # so that some deviations have two likeliest places
        pair.actor.std_head[0].bias += torch.linspace(-3, 3, 8)
        pair.actor.mean_head.weight *= 4
    return pair


def of_torch(pair: Pair, obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with torch.no_grad():
        inner = pair.actor.trunk(torch.as_tensor(obs[:, 0]))
        return pair.actor.mean_head(inner).numpy(), pair.actor.std_head(inner).numpy()


def test_a_continuous_actor_plays_the_likeliest_action(here: Path) -> None:
    pair, obs = continuous_pair(), seen()
    save_learn(RUN / "7", pair.state_dict())
    ranges = [[-1, 1], [0, 1], [-1, 0], [-0.5, 0.5], [-1, 1], [-1, 1], [-1, 1], [-1, 1]]
    policy = imported(str(RUN), "--action-ranges", json.dumps(ranges), env="continuous")
    mean, std = of_torch(pair, obs)
    low, high = np.array(ranges).T
    expected = likeliest(mean, std) * (high - low) / 2 + (high + low) / 2
    np.testing.assert_allclose(policy.act(obs)[:, 0], expected, atol=1e-5)


def test_a_continuous_actor_draws_as_it_did_in_training(here: Path) -> None:
    pair, obs = continuous_pair(), seen(1)
    save_learn(RUN / "7", pair.state_dict())
    policy = imported(str(RUN), "--action-ranges", "[-1, 1]", env="continuous", selection="sample")
    mean, std = of_torch(pair, obs)
    drawn = policy.act(obs.repeat(40_000, 0))[:, 0]
    assert (np.abs(drawn) <= 1).all()
    # The share of draws below a place is that of the normal number below its atanh.
    for place in (-0.9, -0.3, 0.2, 0.8):
        below = torch.distributions.Normal(*map(torch.as_tensor, (mean, std))).cdf(
            torch.tensor(np.arctanh(place))
        )
        np.testing.assert_allclose((drawn <= place).mean(0), below.numpy()[0], atol=0.015)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], r"does not save the ranges of its actions: give --action-ranges"),
        (["wide"], r"--action-ranges is wide, expected a pair such as \[-1, 1\], or a list"),
        *(
            ([given], rf"error: --action-ranges is {re.escape(given)}, expected .* low first")
            for given in ("[1, -1]", "[0, 2]", "[0, 0]", "[NaN, 1]", "[-1, Infinity]", "[-1e308, 1e308]")
        ),
        (
            ["[" + "[-1, 1], " * 7 + "[-1, NaN]]"],
            r"error: --action-ranges is \[-1.0, nan\] for action 7, expected .* 8 pairs, within -1 to 1",
        ),
        (["[[-1, 1], [0, 1]]"], r"expected a pair such as .*, or a list of 8 pairs"),
    ],
)
def test_ranges_of_actions_are_asked_for(given: list[str], message: str, here: Path, refused) -> None:
    save_learn(RUN / "7", continuous_pair().state_dict())
    words = ["--action-ranges", *given] if given else []
    assert re.search(message, refused("import", RUN, "--env", "my_env:continuous", "--out", "bot", *words))


def test_ranges_of_actions_for_a_choice_are_refused(here: Path, refused) -> None:
    save_learn(RUN / "7", Pair(Discrete()).state_dict())
    said = refused("import", RUN, *DISCRETE, "--action-ranges", "[-1, 1]")
    assert "--action-ranges is given for actions that are categorical" in said


def test_of_several_controllers_one_has_to_be_named(here: Path, refused) -> None:
    for name in ("attacker", "goalie"):
        save_learn(RUN.parent / name / RUN.name / "7", Pair(Discrete()).state_dict())
    said = refused("import", RUN.parent, *DISCRETE)
    assert "holds checkpoints of attacker, goalie, expected one of them" in said
    assert main(["import", str(RUN.parent / "goalie"), *DISCRETE, "-q"]) == 0


class Shared(nn.Module):
    """A class of somebody's own: policy and value have the first layers in common."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(*layers(OBS, 64, 32))
        self.heads = nn.ModuleDict({"pi": nn.Linear(32, 90), "value": nn.Linear(32, 1)})


def test_own_classes_are_read_by_a_map_of_names(here: Path, refused) -> None:
    torch.manual_seed(5)
    own, obs = Shared(), seen()
    save_learn(RUN / "7", own.state_dict())
    message = refused("import", RUN, *DISCRETE)
    assert "has no tensors under actor, only under body.0, body.2, heads.pi, heads.value" in message
    assert "--map actor=policy.net" in message
    message = refused("import", RUN, *DISCRETE, "--map", "actor")
    assert "--map is actor, expected a part (actor, mean, std), = and the beginning" in message
    policy = imported(str(RUN), "--map", "actor=body,heads.pi")
    with torch.no_grad():
        truth = own.heads["pi"](own.body(torch.as_tensor(obs[:, 0]))).numpy()
    np.testing.assert_allclose(policy.network(obs[:, 0]), truth, atol=1e-5)


def test_several_networks_of_an_actor_are_named(here: Path, refused) -> None:
    actor = nn.ModuleDict(
        {"body": nn.Sequential(*layers(OBS, 64)), "end": nn.Sequential(nn.Linear(64, 90), nn.Softmax(-1))}
    )
    save_learn(RUN / "7", Pair(actor).state_dict())
    said = refused("import", RUN, *DISCRETE)
    assert "several networks under actor: actor.body, actor.end; name those" in said
    assert imported(str(RUN), "--map", "actor=actor.body,actor.end").network.outputs == 90


@pytest.mark.parametrize("file", ["PPO_POLICY.pt", "BOOK_KEEPING_VARS.json"])
@pytest.mark.parametrize("cut", [None, -50], ids=["missing", "cut off"])
def test_a_newest_checkpoint_that_is_not_whole_hides_none(
    file: str, cut: int | None, here: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for steps in ("900", "1000", "2000"):
        save_ppo(here / "run" / steps, network(90))
    spoilt = here / "run" / "2000" / file
    spoilt.unlink() if cut is None else spoilt.write_bytes(spoilt.read_bytes()[:cut])
    imported("run")
    assert json.loads(Path("found.json").read_text())["source"] == str(Path("run", "1000", "PPO_POLICY.pt"))
    assert "is not whole, so run/1000/PPO_POLICY.pt is taken" in caplog.text.replace("\\", "/")


def test_without_notes_the_newest_with_weights_is_taken(here: Path) -> None:
    for steps in ("900", "1000"):
        (save_ppo(here / "run" / steps, network(90)) / "BOOK_KEEPING_VARS.json").unlink()
    (here / "run" / "2000").mkdir()
    imported("run", "--no-standardise")
    assert json.loads(Path("found.json").read_text())["source"] == str(Path("run", "1000", "PPO_POLICY.pt"))


def test_a_nested_tensor_is_refused_by_name(here: Path, refused) -> None:
    torch.save({"0.weight": torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])}, "odd.pt")
    assert re.search(r"0\.weight|nested", said := refused("import", "odd.pt", *DISCRETE))
    assert "internal" not in said


def test_links_that_lead_back_hold_up_no_search(here: Path, refused) -> None:
    (here / "loop").mkdir()
    for number in range(40):
        (here / "loop" / f"l{number}").symlink_to(here / "loop")
    assert "loop" in refused("import", "loop", *DISCRETE)
