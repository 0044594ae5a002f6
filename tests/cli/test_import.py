"""Bots that were trained elsewhere come along: what the source computes is what the policy folder plays."""

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
from rlgym_bridge.components.batch_form import observe
from rlgym_bridge.components.mutators import RandomStateMutator, blank_state
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.importers import find_checkpoint
from rlgym_bridge.state import MatchState, derive
from tests.support.foreign_checkpoints import OBS, OUTPUTS, network, save_ppo
from tests.support.policy_folders import make_module


def of_source(model: nn.Sequential, obs: np.ndarray, outputs: int) -> np.ndarray:
    """Choose as rlgym-ppo's policies do with `deterministic=True`."""
    with torch.no_grad():
        given = model(torch.as_tensor(obs, dtype=torch.float32)).numpy()
    if outputs == 90:
        return given.argmax(-1)[:, None]
    if outputs == 16:
        return given[:, :8]
    bounds = np.cumsum([0, 3, 3, 3, 3, 3, 2, 2, 2])
    return np.stack([given[:, a:b].argmax(-1) for a, b in pairwise(bounds)], 1)


@pytest.mark.parametrize("scaled", [False, True], ids=["as seen", "standardised"])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_a_bot_of_rlgym_ppo_plays_what_its_trainer_computes(kind: str, scaled: bool, here: Path) -> None:
    random, model = np.random.default_rng(1), network(OUTPUTS[kind])
    stats = None
    if scaled:
        means, squares = random.normal(size=OBS), random.uniform(1, 900, OBS)
        stats = {"mean": means.tolist(), "var": squares.tolist(), "shape": [OBS], "count": 301}
    save_ppo(here / "data" / "rlgym-ppo-run-17" / "5000", model, stats)
    words = ["import", "data", "--env", f"my_env:{kind}", "--out", "bot", "--selection", "argmax", "-q"]
    assert main([*words, "--json", "found.json"]) == 0
    found = json.loads(Path("found.json").read_text())
    assert found["layers"] == [64, 32, OUTPUTS[kind]] and found["steps"] == 5000
    assert (found["tick_skip"], found["action_delay"], found["team_sizes"]) == (8, 1, [[1, 1]])

    loaded = load_policy(here / "bot", allow_modules=("my_env",))
    parts = loaded.components()
    states = blank_state(1, 1, 500)
    RandomStateMutator().apply_batch(states, random)
    derive(states)
    for match in range(500):
        game, agents = to_rlgym(states, match), list(states.agents)
        parts.obs_builder.reset(agents, game, {})
        raw = parts.obs_builder.build_obs(agents, game, {})
        shown = np.stack([raw[agent] for agent in agents])
        if stats is not None:  # rlgym-ppo takes the first number's mean and deviation for all
            mean, deviation = stats["mean"][0], np.sqrt(stats["var"][0] / 300)
            shown = np.clip((shown - mean) / deviation, -5, 5)
        theirs = of_source(model, shown, OUTPUTS[kind])
        expected = parts.parser.parse_actions(dict(zip(agents, theirs, strict=True)), game, {})
        seen = observe(
            parts.obs_builder, (0, 1), MatchState(1, 1, 1, states.buffer[match : match + 1]), game, {}
        )
        ours = loaded.policy.act(seen)[0]
        given = parts.parser.parse_actions(
            {agent: np.reshape(one, -1) for agent, one in zip(agents, ours, strict=True)}, game, {}
        )
        for agent in agents:
            np.testing.assert_allclose(given[agent], expected[agent], atol=1e-5)


@pytest.mark.parametrize(
    "kind", ["wrapped", *(pytest.param(one, marks=pytest.mark.slow) for one in ("continuous", "buttons"))]
)
def test_an_imported_bot_plays_a_match(kind: str, here: Path) -> None:
    stats = {"mean": [3.0] * OBS, "var": [900.0] * OBS, "shape": [OBS], "count": 301}
    save_ppo(here / "5000", network(OUTPUTS[kind]), stats)
    assert main(["import", "5000", "--env", f"my_env:{kind}", "--out", "bot", "-q"]) == 0
    words = [
        "match",
        "--blue",
        "bot",
        "--orange",
        "chaser",
        "--allow-modules",
        "my_env",
        "--pace",
        "lockstep",
    ]
    assert main([*words, "--seconds", "1", "--max-overtime", "0", "-q", "--json", "match.json"]) == 0
    bot = json.loads(Path("match.json").read_text())["bots"][0]
    assert bot["replies"] > 300


def test_what_a_checkpoint_does_not_tell_is_unknown(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.jit.script(network(90)).save(str(here / "script.pt"))
    assert (
        main(["import", "script.pt", "--env", "my_env:discrete", "--out", "bot", "--activation", "relu"]) == 0
    )
    said = re.sub(" +", " ", capsys.readouterr().out)
    assert "standardised no\n" in said and "steps unknown\n" in said


def test_rlgym_learns_checkpoint_and_torchscript_are_read_too(here: Path) -> None:
    model = network(90)
    holder = nn.Module()
    holder.model = model
    learner = here / "learn" / "1700000000" / "ppo_learner"
    learner.mkdir(parents=True)
    torch.save(holder.state_dict(), learner / "actor.pt")
    torch.jit.script(model).save(str(here / "script.pt"))
    for source in (["learn"], ["script.pt", "--activation", "relu"]):
        assert main(["import", *source, "--env", "my_env:discrete", "--out", "bot", "-q"]) == 0
        weights = load_policy(here / "bot", allow_modules=("my_env",)).policy
        np.testing.assert_array_equal(weights.network.layers[0][0], model[0].weight.detach().numpy().T)


ODD_ENVS = """
import my_env
from rlgym.api import RewardFunction
def raising(): raise KeyError("boost")
def needing(size): return my_env.discrete()
def leaving(): raise SystemExit(3)
def big():
    env = my_env.discrete()
    env.action_parser.parse_actions = lambda actions, state, shared_info: {a: [5.0] * 8 for a in actions}
    return env
def observing(given):
    env = my_env.discrete()
    class Builder(type(env.obs_builder)):
        def build_obs(self, agents, state, shared_info):
            return given(super().build_obs(agents, state, shared_info))
    env.obs_builder = Builder(zero_padding=None)
    return env
def of_parts():
    return observing(lambda built: {one: {"ball": row[:9], "rest": row[9:]} for one, row in built.items()})
def nothing(): return observing(lambda built: None)
def in_rows(): return observing(lambda built: {one: row.reshape(2, -1) for one, row in built.items()})
def two_lengths():
    env = my_env.discrete()
    env.action_parser.parse_actions = lambda actions, state, shared_info: {
        agent: [[0.0] * 8] * (3 + number) for number, agent in enumerate(actions)
    }
    return env
"""


@pytest.mark.parametrize(
    ("command", "env", "message"),
    [
        ("import", "raising", r"error: KeyError: 'boost' \(.*odd_env.py, line 4\)"),
        ("parity", "raising", r"error: KeyError: 'boost' \(.*odd_env.py, line 4\)"),
        ("import", "needing", r"error: TypeError: needing\(\) missing 1 required"),
        ("import", "leaving", r"error: SystemExit: it ended the program with sys.exit\(3\) \(.*line 6\)"),
        ("import", "big", r"throttle = 5.0 in row 0"),
        ("parity", "big", r"throttle = 5.0 in row 0"),
        (
            "import",
            "of_parts",
            r"Builder gave a dict with ball, rest: join its parts with np.concatenate.*line \d",
        ),
        (
            "parity",
            "of_parts",
            r"gave a dict .* for agent 'blue-0', expected one vector of numbers.*line \d+\)",
        ),
        ("import", "nothing", r"Builder gave None, expected a dict by agent: \['blue-0', 'orange-0'\]"),
        ("import", "in_rows", r"Builder gave an array \(2, 46\) of .*, expected one vector of numbers"),
        ("import", "two_lengths", r"rows of shapes \[\(3, 8\), \(4, 8\)\] .* expected the same number"),
    ],
)
def test_what_an_environment_does_wrong_is_told_in_a_line(
    command: str, env: str, message: str, here: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    make_module(here, monkeypatch, "odd_env", ODD_ENVS)
    save_ppo(here / "5", network(90))
    words = ["import", "5", "--out", "bot"] if command == "import" else ["parity", "--ticks", "300"]
    assert main([*words, "--env", f"odd_env:{env}"]) == 2
    said = capsys.readouterr()
    assert re.search(message, said.err) and said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import nowhere_at_all",
            "odd_env (for odd_env:build) imports nowhere_at_all, which is not installed",
        ),
        (
            "import my_rewards",
            "my_rewards (for odd_env:build) imports nowhere_at_all, which is not installed",
        ),
        ("import my_rewards", "my_rewards.py, line 2)"),
        (
            "from rlgym_sim.utils import math",
            "odd_env (for odd_env:build) imports rlgym_sim, which is not installed",
        ),
        ("from rlgym_sim.utils import math", "RLGym 1's (rlgym-sim), whose methods take other arguments"),
        ("def build(:", "odd_env (for odd_env:build) cannot be imported: SyntaxError"),
        ("raise RuntimeError('no')", "odd_env (for odd_env:build) cannot be imported: RuntimeError: no ("),
    ],
)
def test_a_module_that_cannot_be_imported_is_told_in_a_line(
    text: str, message: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_module(here, monkeypatch, "odd_env", text)
    make_module(here, monkeypatch, "my_rewards", "\nimport nowhere_at_all")
    save_ppo(here / "5", network(90))
    assert main(["import", "5", "--env", "odd_env:build", "--out", "bot"]) == 2
    assert message in capsys.readouterr().err


def test_the_newest_number_is_taken(here: Path) -> None:
    for run, steps in (("rlgym-ppo-run-9", 900), ("rlgym-ppo-run-10", 70), ("rlgym-ppo-run-10", 1000)):
        save_ppo(here / "data" / run / str(steps), network(90))
    assert find_checkpoint(here / "data").parts[-3:] == ("rlgym-ppo-run-10", "1000", "PPO_POLICY.pt")


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("twos", r"takes 92 numbers, the observation has \d+"),
        ("buttons", r"gives 90 numbers, and RepeatAction's actions .* need 21"),
        ("nothing", r"my_env:nothing returned int, expected an RLGym, or a wrapper with one in rlgym_env"),
        ("none", r"my_env has no none"),
    ],
)
def test_an_environment_that_does_not_fit_is_refused(
    env: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_ppo(here / "5", network(90))
    assert main(["import", "5", "--env", f"my_env:{env}", "--out", "bot"]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (here / "bot").exists()


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("touched"),))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"\(0 bytes\) cannot be read by torch without running code"),
        (Harmful(), "cannot be read by torch without running code"),
        ([1, 2], "holds list, expected a state_dict"),
        (
            {"model.0.weight": torch.zeros(4, 3)},
            r"layer 0 has {'weight': \(4, 3\)}, expected a linear layer, or",
        ),
        ({"0.weight": torch.zeros(4), "0.bias": torch.zeros(4)}, "expected a linear layer"),
        ({"a.0.weight": torch.zeros(4, 3), "b.0.bias": torch.zeros(4)}, r"tensors of \['a', 'b'\]"),
        ({"log_std": torch.zeros(8)}, r"a tensor log_std \(8,\), expected linear layers by number alone"),
    ],
)
def test_no_perceptron_is_refused_and_no_code_of_it_runs(
    content: Any, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if isinstance(content, bytes):
        Path("odd.pt").write_bytes(content)
    else:
        torch.save(content, "odd.pt")
    assert main(["import", "odd.pt", "--env", "my_env:discrete", "--out", "bot"]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not Path("touched").exists()


def test_a_folder_without_a_checkpoint_says_what_was_looked_for(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        (here / "data" / name).mkdir(parents=True)
    looked_for = "expected PPO_POLICY.pt (rlgym-ppo), ppo_learner/actor.pt or ppo_learner/actor_critic.pt"
    for given, said in (("data", looked_for), ("nowhere", "nowhere is no file or folder")):
        assert main(["import", given, "--env", "my_env:discrete", "--out", "bot"]) == 2
        assert said in capsys.readouterr().err


def test_a_policy_folder_needs_no_import(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_ppo(here / "5", network(90))
    assert main(["import", "5", "--env", "my_env:discrete", "--out", "bot", "-q"]) == 0
    assert main(["import", "bot", "--env", "my_env:discrete", "--out", "again"]) == 2
    assert "bot is a policy folder already" in capsys.readouterr().err
