"""A run that goes on from a checkpoint becomes the run that was never interrupted, to the bit."""

import csv
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rlgym_bridge.cli import run_command
from rlgym_bridge.components.relative_obs import TeamObs
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3, DeadMatches
from rlgym_bridge.training.evaluate import evaluate
from rlgym_bridge.training.ppo import Local, main
from rlgym_bridge.training.profile_training import profile_training
from rlgym_bridge.training.runs.checkpoints import STATE_FILE, Checkpoints, settings_of_run
from rlgym_bridge.training.runs.run import Iteration, run
from rlgym_bridge.training.settings import (
    SettingsError,
    TrainingSettings,
    check_settings,
    settings_as_toml,
)
from tests.support.policy_folders import random_weights, save, spec
from tests.support.processes import child
from tests.support.simulators import needs_native
from tests.support.small_learners import assert_same_learners, learner_of, train_in_two_ways
from tests.support.training_runs import BATCH, SMALL, column, forget_checksum, small_settings, stand_in

MASKED = """
from rlgym_bridge.training.components import obs
del make_env
def parser(settings):
    return ComponentSpec.of(RepeatAction, ComponentSpec.of(LookupTableAction, masked=True), repeats=8)
"""
SCENE = {"kickoff_share": 0.5, "no_touch_seconds": 0.5, "components": "rlgym_bridge.training.components"}
MEMORY = SCENE | {"network": "gru", "sequence_length": 4, "normalise_obs": True}
LEARNING = {
    "critic_learning_rate": 1e-3, "critic_learning_rate_schedule": "linear", "standardize_returns": True,
    "value_clip": 0.1, "target_kl": 0.002, "learning_rate_schedule": "linear",
}  # fmt: skip
SIZES = [[1, 1, 0.5], [2, 2, 0.25], [3, 3, 0.25]]
NOISE = {"ball_position": 20.0, "car_rotation": 0.02}
RUNS: dict[str, dict[str, Any]] = {
    "the stand-in": {"normalise_obs": True, "snapshots": 2},
    "opponents": SCENE | {"opponents": {"chaser": 0.25}, "snapshot_share": 0.0},
    "other networks": {"activation": "silu", "layer_norm": True},
    "attention": SCENE | {"network": "attention", "team_sizes": SIZES, "matches": 4, "hitboxes": "all",
                          "obs_noise": NOISE, "snapshot_share": 0.0},
    "settings of learning": LEARNING,
    "memory and an opponent": MEMORY | {"opponents": {"random": 0.25}},
    "overlap of two collectors": {"overlap": True, "snapshot_choice": "rating", "collectors": 2},
    "overlap, memory, masks, teacher": MEMORY | LEARNING | {"overlap": True},
}  # fmt: skip
TIMES = ("seconds", "steps_per_second", "collect_seconds", "learn_seconds")


def settings_of(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainingSettings:
    """Return settings of one of `RUNS`: four batches, two checkpoints."""
    changes: dict[str, Any] = SMALL | RUNS[run]
    if "masks" in run:
        changes["components"] = stand_in(tmp_path, monkeypatch, MASKED)
    if "teacher" in run:
        save(tmp_path / "old", obs=spec(TeamObs), weights=random_weights(222, 32, 90))
        changes |= {"teacher": str(tmp_path / "old"), "teacher_steps": 100_000}
    size = learner_of(tmp_path / "size", False, **changes).steps_of_iteration(changes["collectors"])
    return check_settings(changes | {"steps": 4 * size, "checkpoint_every": 2 * size})


def curves(run: Path) -> list[dict[str, str]]:
    """Return the last two lines of a run's table, without times."""
    with (run / "progress.csv").open() as file:
        rows = list(csv.DictReader(file))[-2:]
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


@pytest.mark.parametrize("run", RUNS)
def test_a_resumed_run_equals_an_uninterrupted_one_to_the_bit(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(run, tmp_path, monkeypatch)
    whole, resumed = train_in_two_ways(settings, tmp_path)
    assert_same_learners(whole, resumed)
    assert curves(tmp_path / "whole") == curves(tmp_path / "resumed")
    halfway = whole.with_name(str(settings.checkpoint_every))
    assert {path.name for path in whole.parent.iterdir()} == {halfway.name, whole.name, "latest"}
    with pytest.raises(AssertionError):
        assert_same_learners(whole, halfway)
    allowed = ["tests", settings.components]
    assert evaluate(str(whole), "random", 2, seconds=2.0, allow_modules=allowed, processes=1).matches == 2


def test_a_resumed_run_keeps_its_batch_where_none_is_set(tmp_path: Path) -> None:
    whole = small_settings(tmp_path / "whole", steps=4 * BATCH, checkpoint_every=2 * BATCH)
    begun = replace(whole, out=str(tmp_path / "begun"), steps=2 * BATCH)
    main(begun, quiet=True)
    unset = replace(begun, matches=0, minibatch=0, steps=whole.steps)  # of itself a machine would take others
    assert profile_training(unset, 1, resume=True).steps == BATCH
    assert_same_learners(main(whole, quiet=True).checkpoint, main(unset, resume=True, quiet=True).checkpoint)


@pytest.mark.slow
def test_a_run_killed_in_an_iteration_goes_on_to_the_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, endless = tmp_path / "killed", settings_of("memory and an opponent", tmp_path, monkeypatch)
    every = 4 * endless.checkpoint_every
    endless = replace(endless, checkpoint_every=every, steps=1000 * every, out=str(out))
    (file := tmp_path / "my.toml").write_text(settings_as_toml(endless), encoding="utf-8")
    with child([sys.executable, "-m", "training", file, "--quiet"]) as process:
        while True:
            rows = column(out, "steps") if (out / "progress.csv").is_file() else []
            if rows and rows[-1] > every and rows[-1] % every:
                break  # a checkpoint is behind, and the next iteration is being played and learned from
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.wait(30)
    last = int(column(out, "steps")[-1])
    steps = (last // every + 2) * every
    resumed = main(replace(endless, steps=steps), resume=True, quiet=True).checkpoint
    whole = main(replace(endless, steps=steps, out=str(tmp_path / "whole")), quiet=True).checkpoint
    assert_same_learners(whole, resumed)
    assert column(out, "steps") == column(tmp_path / "whole", "steps")
    assert column(out, "entropy") == column(tmp_path / "whole", "entropy")


SHORT = {
    "collectors": 1, "matches": 4, "rollout_steps": 16, "snapshot_share": 0.0, "policy_layers": [16],
    "critic_layers": [16], "minibatch": 64, "threads": 1, "no_touch_seconds": 1.0,
}  # fmt: skip
STEPS = 4 * 16 * 2


def trained(out: Path, steps: int = STEPS, **changes: Any) -> Path:
    """Train, and return the last checkpoint."""
    return main(check_settings(SHORT | {"out": str(out), "steps": steps} | changes), quiet=True).checkpoint


def command(file: Path, out: Path, steps: int, *words: str) -> int:
    given = [str(file), "--out", str(out), "--steps", str(steps), "--resume", "-q", *words]
    return run_command("train", given)


def settings_in(checkpoint: Path) -> dict[str, Any]:
    found: dict[str, Any] = load_policy(checkpoint).manifest.training["settings"]
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of settings that says nothing of a simulator."""
    text = settings_as_toml(check_settings(SHORT))
    lines = [line for line in text.splitlines() if "simulator" not in line[:9]]
    path = tmp_path / "short.toml"
    path.write_text("\n".join(lines))
    return path


def forget_simulator(checkpoint: Path) -> None:
    """Make a checkpoint one of before there was a choice."""
    forget_checksum(checkpoint)
    manifest = json.loads((checkpoint / "policy.json").read_text())
    del manifest["training"]["settings"]["simulator"]
    (checkpoint / "policy.json").write_text(json.dumps(manifest))
    state = torch.load(checkpoint / STATE_FILE, weights_only=True)
    del state["settings"]["simulator"]
    torch.save(state, checkpoint / STATE_FILE)


@needs_native
def test_a_run_in_rocketsim_3_says_so_and_goes_on_in_it(tmp_path: Path, file: Path) -> None:
    first = trained(tmp_path / "run", simulator=ROCKETSIM3)
    assert settings_in(first)["simulator"] == ROCKETSIM3
    assert command(file, tmp_path / "run", 2 * STEPS) == 0
    second = Checkpoints(tmp_path / "run", 1).folder / str(2 * STEPS)
    assert settings_in(second)["simulator"] == ROCKETSIM3
    straight = trained(tmp_path / "straight", 2 * STEPS, simulator=ROCKETSIM3, checkpoint_every=STEPS)
    assert (straight / "weights.safetensors").read_bytes() == (second / "weights.safetensors").read_bytes()
    other = trained(tmp_path / "other", 2 * STEPS, simulator=ROCKETSIM2, checkpoint_every=STEPS)
    assert settings_in(other)["simulator"] == ROCKETSIM2
    assert (straight / "weights.safetensors").read_bytes() != (other / "weights.safetensors").read_bytes()


@needs_native
def test_an_older_run_is_of_rocketsim_2_and_changes_by_name(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    forget_simulator(trained(out))
    assert settings_of_run(out)["simulator"] == ROCKETSIM2
    assert command(file, out, 2 * STEPS) == 0
    newest = Checkpoints(out, 1).folder
    assert settings_in(newest / str(2 * STEPS))["simulator"] == ROCKETSIM2
    named = file.with_name("named.toml")
    named.write_text('simulator = "rocketsim3"\n' + file.read_text())
    capsys.readouterr()
    assert command(named, out, 3 * STEPS) == 2
    said = capsys.readouterr().err
    for part in ("simulator was another when", "rocketsim2 -> rocketsim3", "--simulator rocketsim3"):
        assert part in said
    assert command(file, out, 3 * STEPS, "--simulator", ROCKETSIM3) == 0
    assert settings_in(newest / str(3 * STEPS))["simulator"] == ROCKETSIM3


def test_a_run_without_its_module_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgym_bridge.sim.simulator.importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        SettingsError, match=r"rocketsim_batch is not installed; install it: .*; or train with"
    ):
        trained(tmp_path / "run", simulator=ROCKETSIM3)


class Losing(Local):
    """Tells of one dead match in each of several iterations, as collectors would that have one each."""

    def iterate(self, older: int) -> Iteration:
        """Play and learn."""
        done = super().iterate(older)
        return replace(done, counts={**done.counts, "dead_matches": 1.0})


def test_a_run_stops_when_three_of_its_matches_have_died(tmp_path: Path) -> None:
    settings = small_settings(tmp_path / "run", checkpoint_every=112, steps=10**6)
    with pytest.raises(DeadMatches, match="3 matches have died inside the simulator, expected fewer than 3"):
        run(settings, Losing, quiet=True)
    assert Checkpoints(tmp_path / "run", 1).folder.joinpath("latest").exists()
