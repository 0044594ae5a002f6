"""Bots that were trained elsewhere come along, and play what their source computes."""

import json
import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from rlgym_bridge import AdvancedObs
from rlgym_bridge.cli import main
from rlgym_bridge.components.batch_form import observe
from rlgym_bridge.components.mutators import RandomStateMutator, blank_state
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.importers import find_checkpoint
from rlgym_bridge.state import MatchState, derive
from tests.support.foreign_checkpoints import OBS, OUTPUTS, libtorch_archive, network, save_ppo
from tests.support.policy_folders import make_module
from tests.support.states import random_state
from tools.bring_a_bot import bring_a_bot

WORDS = ["--env", "my_env:discrete", "--out", "bot", "-q"]
STATS = {"mean": [3.0] * OBS, "var": [900.0] * OBS, "shape": [OBS], "count": 301}


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
    save_ppo(here / "5000", network(OUTPUTS[kind]), STATS)
    assert main(["import", "5000", "--env", f"my_env:{kind}", "--out", "bot", "-q"]) == 0
    words = "match --blue bot --orange chaser --allow-modules my_env --pace lockstep --seconds 1"
    assert main([*words.split(), "--max-overtime", "0", "-q", "--json", "match.json"]) == 0
    assert json.loads(Path("match.json").read_text())["bots"][0]["replies"] > 300


def test_rlgym_learns_former_checkpoint_is_read_too(here: Path) -> None:
    model = network(90)
    learner = here / "learn" / "1700000000" / "ppo_learner"
    save_ppo(learner, model).joinpath("PPO_POLICY.pt").rename(learner / "actor.pt")
    assert main(["import", "learn", *WORDS]) == 0
    weights = load_policy(here / "bot", allow_modules=("my_env",)).policy
    np.testing.assert_array_equal(weights.network.layers[0][0], model[0].weight.detach().numpy().T)


def test_what_a_checkpoint_does_not_tell_is_unknown(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(network(90).state_dict(), here / "weights.pt")
    assert main(["import", "weights.pt", *WORDS[:-1], "--activation", "relu"]) == 0
    said = re.sub(" +", " ", capsys.readouterr().out)
    assert "standardised no\n" in said and "steps unknown\n" in said


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
    ("env", "message"),
    [
        ("raising", r"error: KeyError: 'boost' \(.*odd_env.py, line 4\)"),
        ("needing", r"error: TypeError: needing\(\) missing 1 required"),
        ("leaving", r"error: SystemExit: it ended the program with sys.exit\(3\) \(.*line 6\)"),
        ("big", r"throttle = 5.0 in row 0"),
        ("of_parts", r"Builder gave a dict with ball, rest: join its parts with np.concatenate.*line \d"),
        ("nothing", r"Builder gave None, expected a dict by agent: \['blue-0', 'orange-0'\]"),
        ("in_rows", r"Builder gave an array \(2, 46\) of .*, expected one vector of numbers"),
        ("two_lengths", r"rows of shapes \[\(3, 8\), \(4, 8\)\] .* expected the same number"),
    ],
)
def test_what_an_environment_does_wrong_is_told_in_a_line(
    env: str, message: str, here: Path, monkeypatch: pytest.MonkeyPatch, refused
) -> None:
    make_module(here, monkeypatch, "odd_env", ODD_ENVS)
    save_ppo(here / "5", network(90))
    assert re.search(message, refused("import", "5", "--out", "bot", "--env", f"odd_env:{env}"))
    if env in ("raising", "big", "of_parts"):
        assert re.search(message, refused("parity", "--ticks", "300", "--env", f"odd_env:{env}"))


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("import nowhere_at_all", ["odd_env (for odd_env:build) imports nowhere_at_all, which is not insta"]),
        (
            "import my_rewards",
            ["my_rewards (for odd_env:build) imports nowhere_at_all, which is not", "my_rewards.py, line 2)"],
        ),
        (
            "from rlgym_sim.utils import math",
            ["imports rlgym_sim, which is not installed", "RLGym 1's (rlgym-sim), whose methods take other"],
        ),
        ("def build(:", ["odd_env (for odd_env:build) cannot be imported: SyntaxError"]),
        ("raise RuntimeError('no')", ["odd_env (for odd_env:build) cannot be imported: RuntimeError: no ("]),
    ],
)
def test_a_module_that_cannot_be_imported_is_told_in_a_line(
    text: str, messages: list[str], here: Path, monkeypatch: pytest.MonkeyPatch, refused
) -> None:
    make_module(here, monkeypatch, "odd_env", text)
    make_module(here, monkeypatch, "my_rewards", "\nimport nowhere_at_all")
    save_ppo(here / "5", network(90))
    said = refused("import", "5", "--env", "odd_env:build", "--out", "bot")
    assert all(message in said for message in messages)


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
def test_an_environment_that_does_not_fit_is_refused(env: str, message: str, here: Path, refused) -> None:
    save_ppo(here / "5", network(90))
    assert re.search(message, refused("import", "5", "--env", f"my_env:{env}", "--out", "bot"))
    assert not (here / "bot").exists()


NORM_BEHIND = nn.Sequential(nn.Linear(OBS, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 90))


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("touched"),))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"\(0 bytes\) cannot be read by torch without running code"),
        (Harmful(), "cannot be read by torch without running code"),
        ([1, 2], "holds list, expected a state_dict"),
        ({"model.0.weight": torch.zeros(4, 3)}, r"layer 0 has {'weight': \(4, 3\)}, expected a linear layer"),
        ({"0.weight": torch.zeros(4), "0.bias": torch.zeros(4)}, "expected a linear layer"),
        ({"a.0.weight": torch.zeros(4, 3), "b.0.bias": torch.zeros(4)}, r"tensors of \['a', 'b'\]"),
        (NORM_BEHIND.state_dict(), "a linear layer that takes 16 numbers, or layer normalisation"),
        ({"log_std": torch.zeros(8)}, r"a tensor log_std \(8,\), expected linear layers by number alone"),
    ],
)
def test_no_perceptron_is_refused_and_no_code_of_it_runs(
    content: Any, message: str, here: Path, refused
) -> None:
    if isinstance(content, bytes):
        Path("odd.pt").write_bytes(content)
    else:
        torch.save(content, "odd.pt")
    assert re.search(message, refused("import", "odd.pt", *WORDS))
    assert not Path("touched").exists()


def test_a_folder_without_a_checkpoint_says_what_was_looked_for(here: Path, refused) -> None:
    for name in ("a", "b"):
        (here / "data" / name).mkdir(parents=True)
    looked_for = "expected PPO_POLICY.pt (rlgym-ppo), ppo_learner/actor.pt or ppo_learner/actor_critic.pt"
    assert looked_for in refused("import", "data", *WORDS)
    # before options that are missing
    assert "nope is no file or folder, expected a checkpoint" in refused("import", "nope", "--out", "x")


def test_a_policy_folder_needs_no_import(here: Path, refused) -> None:
    save_ppo(here / "5", network(90))
    assert main(["import", "5", *WORDS]) == 0
    said = refused("import", "bot", "--env", "my_env:discrete", "--out", "again")
    assert "bot is a policy folder already" in said


def scaled() -> bool:
    return json.loads(Path("bot", "policy.json").read_text())["obs_normalisation"] is not None


@pytest.mark.parametrize("given", ["PPO_POLICY.pt", "5000"])
def test_a_policy_without_its_notes_is_not_taken_for_unscaled(given: str, here: Path, refused) -> None:
    folder = save_ppo(here / "5000", network(90), STATS)
    notes = folder / "BOOK_KEEPING_VARS.json"
    notes.rename(here / "notes.json")
    if given == "PPO_POLICY.pt":
        (folder / given).rename(given)
    said = refused("import", given, *WORDS)
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


def test_notes_that_contradict_or_are_none_are_refused(here: Path, refused) -> None:
    folder = save_ppo(here / "5000", network(90), STATS)
    said = refused("import", "5000", *WORDS, "--no-standardise")
    assert "has obs_running_stats, so the bot was trained with" in said
    (folder / "BOOK_KEEPING_VARS.json").write_text("[]")
    said = refused("import", "5000", *WORDS)
    assert "BOOK_KEEPING_VARS.json holds list, expected an object" in said


@pytest.mark.parametrize("name", ["mine.pt", "actor.pt"])
def test_a_state_dict_does_not_tell_its_activations(name: str, here: Path, refused) -> None:
    torch.save(network(90).state_dict(), name)
    said = refused("import", name, *WORDS)
    assert f"{name} holds tensors alone" in said and "add --activation relu" in said
    said = refused("import", name, *WORDS, "--activation", "mish")
    assert "the activation is mish, expected one of relu, leaky_relu, tanh, silu, gelu" in said
    assert not Path("bot").exists()
    assert main(["import", name, *WORDS, "--activation", "relu"]) == 0


@pytest.mark.parametrize("norm", [False, True], ids=["plain", "layer norm"])
def test_a_state_dict_plays_with_the_activation_given(norm: bool, here: Path) -> None:
    model = nn.Sequential(nn.Linear(OBS, 16), *[nn.LayerNorm(16)] * norm, nn.Tanh(), nn.Linear(16, 90))
    model.requires_grad_(False)
    if norm:
        model[1].weight.uniform_(0.5, 2)
    torch.save(model.state_dict(), "mine.pt")
    assert main(["import", "mine.pt", *WORDS, "--activation", "tanh"]) == 0
    policy = load_policy("bot", allow_modules=["my_env"], selection="argmax").policy
    obs = np.random.default_rng(0).normal(size=(50, 1, OBS)).astype(np.float32)
    expected = model(torch.from_numpy(obs[:, 0])).numpy()
    np.testing.assert_allclose(policy.network(obs[:, 0]), expected, atol=1e-5)


def test_changed_bots_of_known_trainers_name_theirs(here: Path) -> None:
    save_ppo(here / "5000", network(90))
    assert main(["import", "5000", *WORDS, "--activation", "silu"]) == 0
    assert json.loads(Path("bot", "policy.json").read_text())["activation"] == "silu"


def test_a_state_dict_is_read_where_torch_is_not_installed(
    here: Path, monkeypatch: pytest.MonkeyPatch, refused
) -> None:
    model = network(90)
    save_ppo(here / "5000", model, STATS)
    (here / "odd.pt").write_bytes(b"no zip")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["import", "5000", *WORDS]) == 0
    weight, bias = load_policy("bot", allow_modules=("my_env",)).policy.network.layers[0]
    np.testing.assert_array_equal(weight, model[0].weight.detach().numpy().T)
    np.testing.assert_array_equal(bias, model[0].bias.detach().numpy())
    said = refused("import", "odd.pt", *WORDS, "--activation", "relu")
    assert "odd.pt (6 bytes) cannot be read without torch: BadZipFile" in said


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
    """Return the imported network's outputs for some observations, and these."""
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


def test_rlgyms_own_observation_takes_factors_for_each_axis(here: Path) -> None:
    save_ppo(here / "7", nn.Sequential(nn.Linear(172, 8), nn.ReLU(), nn.Linear(8, 90)))
    factors = '{"zero_padding": 3, "pos_coef": [0.000244, 0.000166, 0.00049]}'
    named = ["--obs", "rlgym.rocket_league.obs_builders:DefaultObs", "--obs-args", factors]
    assert main(["import", "7", *named, "--out", "bot", "-q"]) == 0
    assert load_policy("bot").manifest.obs_size == 172


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
