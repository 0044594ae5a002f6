"""`rlgym-bridge train` as it is called."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlgym_bridge.cli import run_command
from rlgym_bridge.policy.folder import load_policy
from tests.support.policy_folders import save
from tests.support.processes import child

STAND_IN = """
components = "tests.support.mark_game"
collectors = 1
matches = 4
rollout_steps = 16
threads = 1
"""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "training", *map(str, arguments)]


def config(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return file


def test_256_steps_in_the_simulator_leave_a_policy_that_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = config(tmp_path, "collectors = 1\nmatches = 4\nrollout_steps = 16\nsnapshot_share = 0.5\n")
    words = [file, "--steps", 256, "--out", tmp_path / "run", "--json", tmp_path / "summary.json"]
    assert run_command("train", [*map(str, words)]) == 0
    assert "agent steps" in capsys.readouterr().err
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["steps"] >= 256
    assert summary["last"]["touches_per_car_minute"] >= 0
    loaded = load_policy(summary["checkpoint"])
    assert loaded.manifest.training["settings"]["matches"] == 4
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    again = [str(file), "--steps", "300", "--out", str(tmp_path / "run"), "--resume", "-q"]
    assert run_command("train", again) == 0 and capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_signal_to_all_processes_saves_and_ends_well(number: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = command(config(tmp_path, STAND_IN), "--out", out)
    with child(words, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        progress = out / "progress.csv"
        while not progress.exists() or progress.read_text().count("\n") < 4:
            assert process.poll() is None
            time.sleep(0.05)
        for _ in range(2):  # an impatient second time must not cost the checkpoint
            os.killpg(process.pid, number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    steps = (out / "checkpoints" / "latest").read_text().strip()
    assert progress.read_text().splitlines()[-1].split(",")[0] == steps
    assert (out / "checkpoints" / steps / "policy.json").exists()
    assert "stopping: this iteration ends" in errors and "--resume goes on" in errors


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("gama = 1", (), "the nearest is gamma"),
        ("", ("--steps", "0"), "steps is 0, expected a whole number, 1 or more"),
        ("", ("--json", "nowhere/at/all.json"), "nowhere/at/all.json"),
        ("", ("--settings", "--json", "a.json"), "expected none with --settings"),
    ],
)
def test_bad_input_ends_with_2_and_is_named(
    text: str, arguments: tuple[str, ...], message: str, tmp_path: Path, refused
) -> None:
    assert message in refused("train", config(tmp_path, text), *arguments)


def test_no_run_is_trained_into_a_policy_folder(tmp_path: Path, refused) -> None:
    save(tmp_path / "policy")
    assert "a policy folder, expected a folder for the run alone" in refused(
        "train", "--out", tmp_path / "policy", "--steps", "10"
    )
    assert not (tmp_path / "policy" / "checkpoints").exists()


FILES = ("progress.csv", "training.lock", "run.toml", "checkpoints/latest")


@pytest.mark.parametrize(
    ("name", "is_folder", "message"),
    [
        ("", False, "is a file, expected a folder for the run"),
        ("checkpoints", False, "is a file, expected a folder for checkpoints"),
        ("tensorboard", False, "is a file, expected a folder for TensorBoard's files"),
        *((name, True, "is a folder, expected a file, which training writes") for name in FILES),
    ],
)
@pytest.mark.parametrize("resume", [False, True])
def test_what_lies_in_a_run_s_place_is_named_before_the_start(
    resume: bool, name: str, is_folder: bool, message: str, tmp_path: Path, refused
) -> None:
    out = tmp_path / "run"
    place = out / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if is_folder:
        place.mkdir()
    else:
        place.write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    words = ["--out", str(out), "--steps", "10", *(["--resume"] if resume else [])]
    said = refused("train", *words)
    assert f"error: {place} {message}: move it away, or name another folder with --out" in said
    assert sorted(tmp_path.rglob("*")) == before


def test_rounded_steps_are_said_with_both_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out, result = config(tmp_path, STAND_IN), tmp_path / "run", tmp_path / "summary.json"

    def trained(steps: int, *words: str) -> tuple[int, str]:
        options = ["--steps", str(steps), "--out", str(out), "--json", str(result), *words]
        assert run_command("train", [str(file), *options]) == 0
        return json.loads(result.read_text())["steps"], capsys.readouterr().err

    first, said = trained(3)
    rounded = "steps is {}, rounded up to whole iterations of {}: this run ends at {} agent steps"
    assert rounded.format(3, first, first) in said and f"{first} of {first} steps, " in said
    second, said = trained(2 * first, "--resume")
    assert second == 2 * first and "whole iterations" not in said
    third, said = trained(2 * first + 1, "--resume")
    assert third == 3 * first and rounded.format(2 * first + 1, first, third) in said


SLOW = """
from rlgym.rocket_league.reward_functions import GoalReward

def reward(settings): return GoalReward()
"""


def test_what_makes_matches_slow_is_said_once_a_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "slow_parts.py").write_text(SLOW)
    few = "collectors = 2\nmatches = 2\nrollout_steps = 4\nsteps = 8\nthreads = 1\n"
    file = config(tmp_path, f'components = "slow_parts"\nteam_sizes = [[1, 1, 0.5], [2, 2, 0.5]]\n{few}')
    assert run_command("train", [str(file), "--out", str(tmp_path / "run")]) == 0
    slow = "GoalReward of rlgym (in batches: rlgym_bridge.rewards.GoalReward): no batch form, so called match"
    assert " ".join(f"{caplog.text} {capfd.readouterr().err}".split()).count(slow) == 1
