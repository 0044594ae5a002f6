"""Cloning what bots did in recorded matches, from the command line to a folder that plays."""

import json
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from rlgym_bridge.cli import run_command
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.recording.car_episodes import played
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.training.imitate import CloningData, choose_held_out, clone, imitate, read_cloning_data
from rlgym_bridge.training.running_scale import scaled
from tests.support.made_replicar import simulated, write_replicar
from tests.support.policy_folders import save
from tests.support.processes import run_to_end
from tests.support.recorded_matches import POLICY, record, retimed, two_policies
from tests.support.simulators import needs_native


def record_late_match(folder: Path, seconds: int) -> Path:
    """A policy that decides every three ticks against the shipped one; late inputs and lost packets."""
    quick = retimed(folder / "quick", 3)
    words = ("--latency", "2", "--drop", "5")
    return record(folder / "match.mcap", *words, blue=str(quick), orange=POLICY, seconds=seconds)


@cache
def bot(match: Path, seat: int) -> str:
    agents = read_match(match).agents.values()
    return next(one.agent_id for one in agents if one.decisions[0].seats.tolist() == [seat])


@pytest.mark.slow
def test_a_clone_of_late_inputs_learns_and_plays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    match = record_late_match(tmp_path, seconds=20)
    out, result = tmp_path / "clone", tmp_path / "result.json"
    words = ["--bot", bot(match, 0), "--epochs", "150", "--layers", "64", "--out", str(out), "-q"]
    assert run_command("imitate", [str(match), "-q"]) == 2  # of both
    said = capsys.readouterr().err
    assert "parser of" in said and "one policy cannot learn from both" in said and "--bot" in said
    assert run_command("imitate", [str(match), *words, "--json", str(result)]) == 0
    found = json.loads(result.read_text())
    assert found["corrected"] and found["bots"] == [bot(match, 0)]
    assert 0.05 < found["differing"] / found["steps"] < 0.5
    aside = [
        (car.frames[:-1] // 240 % 5 == 4, car.told) for [car] in played(read_match(match), bots=found["bots"])
    ]
    assert found["held_out"] == sum(int((held & told).sum()) for held, told in aside) > 100
    assert found["steps"] == sum(int((~held & told).sum()) for held, told in aside)
    assert found["epochs"] == 150 and found["accuracy_learned"] > 0.2
    assert 0 < found["held_out_differing"] < found["held_out"] / 2
    assert 0 < found["commonest"] < 1 and 0 <= found["accuracy_commanded"] < 1
    assert found["accuracy"] > 0.04  # by chance 1 of 90; there is little to learn from
    assert found["error"] is None

    loaded = load_policy(out)
    assert loaded.manifest.tick_skip == 3 and loaded.manifest.action_delay == 1
    assert loaded.manifest.training["imitates"] == ["match.mcap"]
    again = read_match(record(tmp_path / "played.mcap", blue=str(out), seconds=2))
    assert again.played_ticks > 200


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_policies(tmp_path_factory)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.mcap"], "missing.mcap"),
        (["{match}", "--held-out", "0"], "held_out is 0.0, expected a share above 0 and below 1"),
        (["{match}", "--held-out", "nan"], "held_out is nan"),
        (["{match}", "--held-out", "0.001", "--bot", "{bot}"], "holds nothing out of recordings as short as"),
        (["{match}", "--bot", "nobody"], "holds no decisions with observations of nobody; it holds those of"),
        (["{match}", "--epochs", "0"], "epochs is 0.0, expected a finite number above 0"),
        (["{match}", "--learning-rate", "-1"], "learning_rate is -1.0, expected a finite number above 0"),
        (["{match}", "--seed", "4294967296"], "seed is 4294967296, expected 0 to"),
        (["{match}", "--out", "/proc/no/../where"], "/proc/where"),
        (["{match}", "--layers", "0"], "layers are [0], expected 1 to 32 widths from 1 to 65536"),
        (["{match}", "--layers", "65537"], "layers are [65537], expected 1 to 32 widths from 1 to 65536"),
        (["{match}", "--layers", *["1"] * 33], "], expected 1 to 32 widths from 1 to 65536"),
        (["{match}", "--layers", "65536", "65536"], "4,294,967,296 weights between them, expected"),
    ],
)
def test_bad_input_is_named(words: list[str], message: str, clean: Path, tmp_path: Path, refused) -> None:
    more = ["--out", str(tmp_path / "out"), "--json", str(tmp_path / "result.json")]
    given = [word.format(match=clean, bot=bot(clean, 0)) for word in words]
    assert message in refused("imitate", *more, *given)
    assert not list(tmp_path.iterdir())


def test_an_unknown_activation_is_refused(tmp_path: Path, refused) -> None:
    with pytest.raises(ValueError, match="activation is 'sigmoid', expected one of relu, leaky_relu, tanh"):
        imitate(["match.mcap"], tmp_path / "out", activation="sigmoid")
    said = refused("imitate", "match.mcap", "--activation", "sigmoid")
    assert "invalid choice: 'sigmoid' (choose from 'relu'" in said


def test_a_clone_has_the_network_that_was_asked_for(clean: Path, tmp_path: Path) -> None:
    words = ["--activation", "tanh", "--layer-norm", "--layers", "16", "8", "--epochs", "1", "-q"]
    words += ["--bot", bot(clean, 0), "--out", str(tmp_path / "clone")]
    assert run_command("imitate", [str(clean), *words]) == 0
    loaded = load_policy(tmp_path / "clone")
    assert loaded.manifest.activation == "tanh"
    weights = safetensors.numpy.load_file(tmp_path / "clone" / "weights.safetensors")
    assert weights["norms.1.weight"].shape == (8,)


@pytest.mark.parametrize("norm", [False, True])
def test_equal_seeds_give_equal_clones_that_learn(norm: bool) -> None:
    random = np.random.default_rng(0)
    obs = random.normal(size=(1500, 4)).astype(np.float32)
    actions = np.stack([obs[:, 0] > 0, obs[:, 1] > 0.5], 1).astype(np.int64)
    shape = PolicyShape(4, "multi_categorical", (2, 3), (16,), None, "relu", norm)
    said: list[str] = []
    first, again, other = (clone(obs, actions, shape, 200, 0.01, seed, said.append) for seed in (3, 3, 4))
    assert len(said) == 30 and said[:10] == said[10:20], "each tenth is told"
    losses = [float(line.split()[-1]) for line in said[:10]]
    assert losses[-1] < 0.5 * losses[0]
    assert {name: array.shape for name, array in first.items()} == {
        "layers.0.weight": (16, 4), "layers.0.bias": (16,), "layers.1.weight": (5, 16), "layers.1.bias": (5,),
        **({"norms.0.weight": (16,), "norms.0.bias": (16,)} if norm else {}),
    }  # fmt: skip
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["layers.0.weight"], other["layers.0.weight"])
    policy = NetworkPolicy(first, "multi_categorical", (2, 3), "argmax")
    assert (policy.act(obs[:, None])[:, 0] == actions).all(1).mean() > 0.95


BLOCKED = """import sys
sys.modules |= dict.fromkeys(("ray", "gymnasium", "msgpack_numpy", "tree", "pyarrow"))
from rlgym_bridge.cli import main
sys.exit(main(sys.argv[1:]))"""


def test_cloning_needs_neither_ray_nor_what_rllib_brings(clean: Path, tmp_path: Path) -> None:
    words = ["--bot", bot(clean, 0), "--epochs", "1", "--layers", "8", "--out", "clone"]
    done = run_to_end([sys.executable, "-c", BLOCKED, "imitate", str(clean), *words], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "clone: learned from" in done.stdout
    assert load_policy(tmp_path / "clone").manifest.training["epochs"] == 1


def test_a_policy_that_is_there_stays(clean: Path, tmp_path: Path, refused) -> None:
    retimed(tmp_path / "mine", 8)
    before = (tmp_path / "mine" / "policy.json").read_bytes()
    assert "holds a policy already" in refused("imitate", clean, "--out", tmp_path / "mine")
    assert (tmp_path / "mine" / "policy.json").read_bytes() == before
    (tmp_path / "file").touch()
    assert "is a file, expected a folder" in refused("imitate", clean, "--out", tmp_path / "file")


@pytest.mark.parametrize(
    "code",
    [
        "import rlgym_bridge.rllib",
        "from rlgym_bridge.cli import main; sys.exit(main(['train', '--engine', 'rllib']))",
    ],
)
def test_without_ray_it_is_said_what_to_install(code: str, tmp_path: Path) -> None:
    hidden = f"import sys; sys.modules['ray'] = None; {code}"
    done = run_to_end([sys.executable, "-c", hidden], cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert 'this needs Ray RLlib: pip install -c constraints.txt -e ".[train,rllib]" (in the ' in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("share", [0.01, 0.1, 0.2, 0.5, 0.9])
def test_two_seconds_here_and_there_are_held_out(share: float) -> None:
    every, some = np.arange(0, 300 * 120, 3), np.arange(7, 300 * 120, 8)
    aside = {frame // 240 for frame in every[choose_held_out(every, share)].tolist()}
    assert len(aside) == 150 * share if share > 0.01 else len(aside) == 1
    assert {frame // 240 for frame in some[choose_held_out(some, share)].tolist()} == aside
    assert not {frame // 240 for frame in some[~choose_held_out(some, share)].tolist()} & aside


@pytest.mark.slow
def test_real_numbers_are_imitated_with_a_mean_distance(tmp_path: Path) -> None:
    save(tmp_path / "teacher", "gaussian", selection="argmax")
    file = record(tmp_path / "match.mcap", blue=str(tmp_path / "teacher"), seconds=20)
    found = imitate([file], tmp_path / "clone", layers=[32], epochs=200)
    assert np.isnan(found.accuracy) and found.error < 0.5
    assert load_policy(tmp_path / "clone").manifest.distribution == "gaussian"


def test_what_was_applied_is_learned_and_commands_if_asked_for(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [car, *_] = next(iter(played(read_match(clean), bots=[bot(clean, 0)])))
    told = np.arange(len(car.told)) % 10 >= 3  # of the others nothing is known
    late = replace(car, applied=(car.chosen + 1) % 90, told=told)
    monkeypatch.setattr("rlgym_bridge.training.imitate.played", lambda *_, **__: [[late]])
    aside = car.frames[:-1] // 240 % 5 == 4
    for commanded, expected in ((False, late.applied), (True, late.chosen)):
        data = divided(clean, commanded)
        taken = ~aside & (told | commanded)
        assert np.array_equal(data.actions, expected[taken])
        assert np.array_equal(data.obs, scaled(car.obs[:-1][taken], car.policy.obs_normalisation))
        assert len(data.held_out["applied"]) == (aside & told).sum() > 0
        assert data.held_out["differs"].sum() == (aside & told & late.differs).sum()
        assert data.learned["differs"].sum() == (~aside & told & late.differs).sum()
    monkeypatch.setattr(
        "rlgym_bridge.training.imitate.played", lambda *_, **__: [[replace(car, told=~told & told)]]
    )
    with pytest.raises(ValueError, match=r"tell of too few decisions what the game applied: .*--commanded"):
        divided(clean, commanded=False)
    data = divided(clean, commanded=True)
    assert not len(data.held_out["applied"]) and len(data.actions) == (~aside).sum()


def divided(match: Path, commanded: bool) -> CloningData:
    return read_cloning_data(
        [match], bots=None, commanded=commanded, held_out=0.2, allow_modules=(), say=lambda line: None
    )


def test_replays_need_a_policy_to_play_like(tmp_path: Path, refused) -> None:
    file = tmp_path / "match.replay"
    file.write_bytes(b"replay")
    assert "expected --like POLICY" in refused("imitate", file, "--out", tmp_path / "clone")


def test_replays_need_a_python_with_replicar(
    tmp_path: Path, refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[read_cloning_data.__module__], "find_spec", lambda name: None)
    file = tmp_path / "match.replay"
    file.write_bytes(b"replay")
    assert "expected --replicar PYTHON, a Python 3.12 or later" in refused(
        "imitate", file, "--like", POLICY, "--out", tmp_path / "clone"
    )


@needs_native
@pytest.mark.slow
def test_a_clone_of_people_is_a_policy_like_the_given_one(tmp_path: Path) -> None:
    held = np.random.default_rng(0).choice([-1, 0, 1], (2, 150, 8)) * [1, 1, 1, 1, 1, 0, 0, 0]
    file = write_replicar(tmp_path / "match.parquet", simulated(np.repeat(held, 8, axis=1)))
    out, result = tmp_path / "clone", tmp_path / "result.json"
    words = ["--like", POLICY, "--epochs", "1", "--layers", "8", "--out", str(out), "--json", str(result)]
    assert run_command("imitate", [str(file), *words]) == 0
    assert json.loads(result.read_text())["bots"] == ["blue-0", "orange-0"]
    like, clone = load_policy(POLICY).manifest, load_policy(out).manifest
    assert (clone.obs, clone.parser, clone.tick_skip) == (like.obs, like.parser, like.tick_skip)
