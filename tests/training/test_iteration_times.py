"""Times of the parts of training, and what is said about them."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.sim.simulator import ROCKETSIM2, PartTimes
from rlgym_bridge.training import profile_training as module
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.processes import count_usable_cores
from rlgym_bridge.training.profile_training import TrainingProfile, profile_training
from rlgym_bridge.training.runs.progress import COLUMNS, IterationTimes, Progress, mean_times
from rlgym_bridge.training.runs.run import Iteration
from rlgym_bridge.training.selfplay.matches import SelfPlayMatches
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.processes import run_to_end
from tests.support.training_runs import SMALL

PARTS = {"physics": 5.0, "reading": 1.0, "inference": 2.0}


def times(**changes: Any) -> IterationTimes:
    values: dict[str, Any] = {"collecting": 8.0, "learning": 2.0, "parts": PARTS, "slowest": 8.0, "cpu": 8.0}
    return IterationTimes(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "the learner waits 80% of the time for collectors, "
             "which spend 62% of theirs on RocketSim's physics"),
        ({"learning": 24.0}, "collectors wait 75% of the time for the learner"),
        ({"learning": 24.0, "cpu": 4.0}, "collectors wait 75% of the time for the learner; "
                                         "a collector gets 50% of a core"),
        ({"learning": 24.0, "slowest": 12.0}, "collectors wait 75% of the time for the learner; "
                                              "the slowest collector takes 1.5 times the mean"),
    ],
)  # fmt: skip
def test_one_line_says_what_holds_training_back(changes: dict[str, Any], line: str) -> None:
    assert times(**changes).name_bottleneck() == line


def test_overlapping_parts_wait_only_for_the_rest() -> None:
    seconds = [{"physics": 5.0, "total": 6.0, "cpu": 6.0}]
    fast_learner = IterationTimes.of(3.0, 4.0, seconds, overlap=True)
    assert fast_learner.waiting_for_learner == 1.0
    assert fast_learner.name_bottleneck().startswith("the learner waits 43% of the time for collectors")
    slow_learner = IterationTimes.of(0.0, 9.0, seconds, overlap=True)
    assert slow_learner.name_bottleneck().startswith("collectors wait 33% of the time for the learner")


def test_one_line_says_what_a_slow_learner_does_most() -> None:
    parts = {"taking": 1.0, "judging": 5.0, "improving": 18.0}
    line = times(learning=24.0, learner_parts=parts).name_bottleneck()
    assert (
        line
        == "collectors wait 75% of the time for the learner, which spends 75% of its work on gradient steps"
    )


def test_each_process_tells_its_work_and_its_longest_part() -> None:
    seconds = [{"physics": 2.0, "inference": 1.0, "total": 3.0, "cpu": 3.0},
               {"physics": 1.0, "inference": 3.0, "total": 4.0, "cpu": 4.0}]  # fmt: skip
    learner = [{"taking": 1.0, "improving": 4.0}, {"taking": 1.0, "improving": 2.0}]
    found = mean_times(
        [IterationTimes.of(4.0, sum(one.values()), seconds, learner_parts=one) for one in learner]
    )
    assert (found.learning, dict(found.learner_parts)) == (4.0, {"taking": 1.0, "improving": 3.0})
    assert found.by_process() == [
        ("collector 0", 3 / 8, "67% RocketSim's physics"),
        ("collector 1", 4 / 8, "75% inference"),
        ("learner", 4 / 8, "75% gradient steps"),
    ]
    assert times().by_process() == []  # of single processes nothing is known


def test_times_are_means_over_collectors_and_iterations() -> None:
    seconds = [{"physics": 2.0, "rest": 1.0, "total": 3.0, "cpu": 3.0},
               {"physics": 4.0, "rest": 1.0, "total": 5.0, "cpu": 4.0}]  # fmt: skip
    first = IterationTimes.of(6.0, 4.0, seconds)
    assert first.by_name() == {
        "physics": 3.0, "rest": 1.0, "collector_waiting": 6.0, "learning": 4.0, "learner_waiting": 6.0,
    }  # fmt: skip
    assert (first.slowest, first.cpu) == (5.0, 3.5)
    both = mean_times([first, IterationTimes.of(8.0, 4.0, seconds)])
    assert both.collecting == 7.0 and both.parts["physics"] == 3.0


def test_parts_of_a_step_are_timed_only_where_somebody_reads() -> None:
    settings = check_settings(
        {"matches": 3, "team_sizes": [1, 0], "snapshot_share": 0.0, "simulator": ROCKETSIM2}
    )
    matches, read = SelfPlayMatches(settings), PartTimes()
    actions = matches.reset(0)[..., 0].astype(int) * 0
    matches.times = read
    matches.step(actions)
    assert set(read.seconds) == {"inference", "observing", "physics", "reading", "episodes"}
    before, matches.times = dict(read.seconds), None
    matches.step(actions)
    assert read.seconds == before


def test_tensorboard_keeps_shares_and_seconds_of_all_parts(tmp_path: Path) -> None:
    stats = dict.fromkeys(COLUMNS, 1.0)
    with Progress(check_settings(SMALL | {"out": str(tmp_path)}), 0, quiet=True) as progress:
        progress.report(1, 1, {"episode_reward": 0.0, "finished_cars": 0.0}, stats, times())
    (events,) = (tmp_path / "tensorboard").iterdir()
    written = events.read_bytes()
    for part in (b"physics", b"inference", b"collector_waiting", b"learning", b"learner_waiting"):
        assert b"time_share/" + part in written and b"time_seconds/" + part in written


def test_lines_of_progress_fit_and_say_what_holds_back_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgym_bridge.training.runs.progress._LINE_SECONDS", 0.0)
    settings = check_settings(SMALL | {"out": str(tmp_path), "steps": 400_000_000})
    stats = dict.fromkeys(COLUMNS[COLUMNS.index("elo") :], 25.3)
    counts = {"episode_reward": 0.0, "finished_cars": 0.0, "touches": 52, "car_minutes": 10, "goals": 12}
    with Progress(settings, 0, quiet=False) as progress:
        for steps in (123_456_789, 133_456_789):
            progress.report(steps, 1, counts | {"game_minutes": 5.0}, stats, times())
    first, held, second = capsys.readouterr().err.splitlines()
    for line, steps in ((first, "123,456,789"), (second, "133,456,789")):
        assert len(line) <= 110 and line.startswith(f"{steps} of 400,000,000 steps, ")
        assert re.search(r"/s, touches/car-min 5.20, goals/min 2.40, Elo 25.30, \d+:\d\d:\d\d left$", line)
    assert held == f"held back: {times().name_bottleneck()}"


@pytest.mark.parametrize(
    ("opponents", "shown"),
    [({}, r"goals/min 2.40, \d"), ({"chaser": 0.1, "random": 0.8}, r"goal share against random 0.75, \d")],
)
def test_without_older_versions_no_rating_is_shown(
    opponents: dict[str, float], shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = check_settings(SMALL | {"out": str(tmp_path), "snapshot_share": 0.0, "opponents": opponents})
    stats = dict.fromkeys(COLUMNS[COLUMNS.index("elo") :], 25.3)
    counts = {"episode_reward": 0.0, "finished_cars": 0.0, "touches": 52, "car_minutes": 10, "goals": 12}
    counts |= {"goals_against_opponent/random": 3, "opponent/random_goals": 1}
    with Progress(settings, 0, quiet=False) as progress:
        progress._next_line = 0.0
        progress.report(100, 1, counts | {"game_minutes": 5.0}, stats)
    line = capsys.readouterr().err
    assert re.search(shown, line) and "Elo" not in line


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("0::/a/b\n", {"a/cpu.max": "100000 100000", "a/b/cpu.max": "max 100000"}, 1),
        ("0::/\n", {"cpu.max": "50000 100000"}, 1),
        ("0::/\n", {"cpu.max": "150000 100000"}, 2),  # one process would not use all of it
        ("0::/\n", {"cpu.max": "max 100000"}, 8),
        ("3:cpu,cpuacct:/x\n1:memory:/x\n",
         {"cpu,cpuacct/x/cpu.cfs_quota_us": "90000", "cpu,cpuacct/x/cpu.cfs_period_us": "100000"}, 1),
        ("3:cpu:/x\n", {"cpu/x/cpu.cfs_quota_us": "-1", "cpu/x/cpu.cfs_period_us": "100000"}, 8),
        ("nonsense\n", {}, 8),
    ],
)  # fmt: skip
def test_cores_are_those_that_container_and_affinity_leave(
    own: str, files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "own").write_text(own)
    assert count_usable_cores(tmp_path / "none", tmp_path / "none") == 8
    assert count_usable_cores(tmp_path, tmp_path / "own") == cores


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
