"""A power cut at any moment of a save leaves a whole checkpoint, at most one checkpoint old."""

import functools
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.policy.files import chosen_checkpoint, read_files
from rlgym_bridge.policy.run_modules import RUN_FILE, write_run_modules
from rlgym_bridge.training.contests.kept_matches import KeptMatches
from rlgym_bridge.training.contests.ratings import RatingBook
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.runs.checkpoints import Checkpoints, read_checkpoint
from rlgym_bridge.training.runs.curve_files import mend_table
from rlgym_bridge.training.runs.run import load_newest
from rlgym_bridge.training.settings import TrainingSettings
from tests.support.power_cut import Calls, Tree, write_tree
from tests.support.training_runs import small_settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows syncs no folders")


def settings(out: Path, **changes: Any) -> TrainingSettings:
    return small_settings(out, policy_layers=[4], critic_layers=[4], **changes)


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """Keep the many small folders in memory where the system can: the disk is simulated anyway."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


def save_at(run: Path, keep: int, steps: int) -> None:
    learner = PPOLearner(settings(run))
    learner.steps = steps
    learner.save(Checkpoints(run, keep))


def different(states: list[list[Tree]]) -> list[Tree]:
    return list({frozenset(tree.items()): tree for trees in states for tree in trees}.values())


@functools.cache
def learner_of(folder: Path) -> PPOLearner:
    return PPOLearner(settings(folder))


def resumed(tree: Tree, folder: Path) -> int | None:
    """Return the steps at which `--resume` goes on where a power cut left a tree; None: nowhere."""
    shutil.rmtree(folder, ignore_errors=True)
    write_tree(tree, folder)
    learner = learner_of(folder / "run")
    found = load_newest(learner, folder / "run")
    if found is None:
        return None
    policy = chosen_checkpoint(folder / "run")  # what match and evaluate play
    assert policy is not None and read_files(policy)
    return learner.steps


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlgym_bridge.policy.files.time.sleep", lambda seconds: None)
    monkeypatch.setattr("os.fsync", lambda number: None)  # `Calls` notes it; no real disk is cut off


@pytest.mark.parametrize(
    ("before", "latest", "keep", "steps", "found"),
    [
        ((), None, 1, 10, {None, 10}),
        ((10, 20), None, 1, 30, {20, 30}),
        ((10, 20), None, 2, 30, {20, 30}),
        ((10, 20, 30), 10, 3, 20, {10, 20}),  # gone back: in place of the one that was left behind
        pytest.param((10, 20, 30), 10, 1, 20, {10, 20}, marks=pytest.mark.slow),
    ],
)
def test_a_power_cut_takes_the_checkpoint_being_saved_alone(
    before: tuple[int, ...], latest: int | None, keep: int, steps: int, found: set[int | None], disk: Path,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for one in before:
        save_at(disk / "run", 3 if latest else keep, one)
    if latest:
        (disk / "run" / "checkpoints" / "latest").write_text(f"{latest}\n")
    with monkeypatch.context() as recorded:
        calls = Calls(disk, recorded)
        save_at(disk / "run", keep, steps)
    calls.check_recorded()
    trees = different(calls.states)
    assert len(calls.states) > 15 and len(trees) > 15
    assert {resumed(tree, tmp_path / "crash") for tree in trees} == found
    # After the save it is there for good.
    assert {resumed(tree, tmp_path / "crash") for tree in calls.states[-1]} == {steps}
    kept = sorted(path.name for path in (disk / "run" / "checkpoints").iterdir())
    assert latest or kept == [*map(str, [*before, steps][-keep:]), "latest"]


def test_a_power_cut_after_a_whole_run_takes_nothing(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as recorded:
        calls = Calls(disk, recorded)
        summary = main(settings(disk / "run", steps=200, checkpoint_every=100), quiet=True)
    calls.check_recorded()
    assert {resumed(tree, tmp_path / "crash") for tree in calls.states[-1]} == {summary.steps}
    draws = random.Random(0)
    for trees in draws.sample(calls.states, 60):
        assert resumed(draws.choice(trees), tmp_path / "crash") in (None, 112, summary.steps)


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_crashed_run_saves_its_next_checkpoint(
    every: int, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_at(disk / "run", 1, 10)
    with monkeypatch.context() as recorded:
        calls = Calls(disk, recorded)
        save_at(disk / "run", 1, 20)
    for tree in different(calls.states)[::every]:
        resumed(tree, tmp_path / "crash")
        learner = learner_of(tmp_path / "crash" / "run")  # it goes on from there, if anywhere
        learner.steps = 30
        learner.save(Checkpoints(tmp_path / "crash" / "run", 1))
        names = sorted(path.name for path in (tmp_path / "crash" / "run" / "checkpoints").iterdir())
        assert names == ["30", "latest"]
        read_checkpoint(tmp_path / "crash" / "run" / "checkpoints" / "30")


WRITERS: dict[str, Callable[[Path], Any]] = {
    RUN_FILE: lambda disk: write_run_modules(disk, ["new"]),
    "matches.jsonl": lambda disk: KeptMatches(disk / "matches.jsonl", {"seconds": 5}),
    "rated.json": lambda disk: RatingBook([], {"7": "new"}).write(disk / "rated.json"),
    "progress.csv": lambda disk: mend_table(disk / "progress.csv", ["steps", "rating"], 10),
}
OLD = {
    RUN_FILE: b"modules = []\n",
    "matches.jsonl": b'{"settings": {"seconds": 4}}\n',
    "rated.json": b'{"anchors": [], "checkpoints": {}}\n',
    "progress.csv": b"steps,rating\n10,25.0\n20,26.0\n",
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_power_cut_leaves_a_file_as_it_was_or_as_it_is_to_be(
    name: str, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (disk / name).write_bytes(OLD[name])
    with monkeypatch.context() as recorded:
        calls = Calls(disk, recorded)
        WRITERS[name](disk)
    calls.check_recorded()
    new = (disk / name).read_bytes()
    assert {tree[f"/{name}"] for tree in different(calls.states)} == {OLD[name], new} and new != OLD[name]
    assert {tree[f"/{name}"] for tree in calls.states[-1]} == {new}
