"""`rlgym-bridge train --profile`: a table of where the time goes, and no run."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.cli import run_command
from rlgym_bridge.training import profile_training as module
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.profile_training import TrainingProfile, profile_training
from rlgym_bridge.training.runs.progress import IterationTimes
from rlgym_bridge.training.runs.run import Iteration
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.processes import run_to_end
from tests.support.training_runs import SMALL

TIMES = IterationTimes(8.0, 2.0, {"physics": 5.0, "inference": 2.0}, 7.0, 7.0)


class TimedEngine:
    """An engine whose iterations take one second more each time."""

    count = 3

    def __init__(self, learner: PPOLearner) -> None:
        self._seconds = 0.0

    def __enter__(self) -> "TimedEngine":
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def restart(self) -> None:
        pass

    def iterate(self, older: int) -> Iteration:
        self._seconds += 1
        return Iteration(100, {}, {}, IterationTimes(self._seconds, 1.0, {"rest": 1.0}, 1.0, 1.0))


def test_the_first_iteration_is_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Local", TimedEngine)
    found = profile_training(check_settings(SMALL | {"out": str(tmp_path / "run")}), 3)
    assert (found.iterations, found.collectors, found.steps, found.decisions) == (3, 3, 100, 8 * 8 * 2)
    assert found.times.collecting == 3.0  # of 2, 3 and 4
    assert found.steps_per_second == 25
    assert not (tmp_path / "run").exists()


def test_a_profile_is_a_table_and_json() -> None:
    found = TrainingProfile("1v1", 4, 2, 8, 1000.0, 500, TIMES)
    lines = found.lines()
    assert lines[1] == "4 iterations of 10.00 s after one to warm up: 100 agent steps/s"
    assert [line.split()[-3:] for line in lines if "physics" in line][:1] == [["5.000", "50.0%", "10000.00"]]
    assert lines[-2].startswith("held back: the learner waits 80% of the time")
    result = json.loads(json.dumps(found.to_json()))
    assert result["parts"]["physics"] == {"seconds": 5.0, "share": 0.5}
    assert sum(result["parts"][name]["share"] for name in ("learning", "learner_waiting")) == 1
    assert not any(line.startswith("each process") for line in lines)  # of single ones nothing is known
    assert (result["collectors"], result["cores"], result["agent_steps_per_second"]) == (2, 8, 100)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--profile", "my.toml"], "files of settings go before --profile"),
        (["--profile", "0"], "expected a number of iterations, 1 to 10000"),
        (["--profile", "--settings"], "--profile and --settings are given, expected one of them"),
        (["--profile", "--engine", "rllib"], "--profile and --engine rllib are given"),
    ],
)
def test_bad_profiles_end_with_2(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = run_command("train", words)
    except SystemExit as left:
        status = int(left.code or 0)
    assert status == 2
    assert message in capsys.readouterr().err


def test_a_profile_of_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"there is no checkpoint in .*run to profile"):
        profile_training(check_settings(SMALL | {"out": str(tmp_path / "run")}), 1, resume=True)


@pytest.mark.slow
def test_a_profile_writes_a_table_and_no_run(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("collectors = 1\nmatches = 4\nrollout_steps = 16\nthreads = 1\n")
    words = ["a.toml", "--profile", "2", "--json", "times.json"]
    done = run_to_end([sys.executable, "-m", "rlgym_bridge.training", *words], cwd=tmp_path, seconds=120)
    assert done.returncode == 0, done.stderr
    assert "RocketSim's physics" in done.stdout and "held back: " in done.stdout
    names = [line.split()[:2] for line in done.stdout.splitlines()]
    assert ["each", "process"] in names and ["collector", "0"] in names and ["gradient", "steps"] in names
    written = json.loads((tmp_path / "times.json").read_text())
    parts = written["parts"]
    assert sum(written["learner_parts"].values()) == pytest.approx(parts["learning"]["seconds"], rel=0.05)
    assert len(written["collectors_parts"]) == 1
    assert {"physics", "observing", "inference", "learning", "learner_waiting"} <= set(parts)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.toml", "times.json"]
