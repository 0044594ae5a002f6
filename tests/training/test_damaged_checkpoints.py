"""Training goes on from the newest whole checkpoint, and no full disk ends it."""

import errno
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from rlgym_bridge.cli import run_command
from rlgym_bridge.live.followed_run import FollowedRun
from rlgym_bridge.policy.files import all_checkpoints, policy_path, warn_once
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.training import ppo
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.runs.run import load_newest
from rlgym_bridge.training.settings import SettingsError
from tests.support.training_runs import BATCH, column, forget_checksum
from tests.support.training_runs import small_settings as settings


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with checkpoints of 10, 20 and 30 steps, without playing."""
    learner = PPOLearner(settings(tmp_path / "run"))
    for steps in (10, 20, 30):
        learner.steps = steps
        learner.save(Checkpoints(tmp_path / "run", 3))
    warn_once.cache_clear()
    return tmp_path / "run"


def flip_bits(file: Path) -> None:
    data, draws = bytearray(file.read_bytes()), random.Random(20)
    for _ in range(20):
        data[draws.randrange(len(data))] ^= 1 << draws.randrange(8)
    file.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "training.pt with 20 flipped bits": lambda one: flip_bits(one / "training.pt"),
    "no training.pt": lambda one: (one / "training.pt").unlink(),
    "training.pt of another save": lambda one: shutil.copy(one.with_name("10") / "training.pt", one),
    "an empty training.pt": lambda one: (one / "training.pt").write_bytes(b""),
    "cut weights": lambda one: os.truncate(one / "weights.safetensors", 100),
    "an empty policy.json": lambda one: (one / "policy.json").write_bytes(b""),
    "an empty folder": lambda one: (shutil.rmtree(one), one.mkdir()),
}


def change_state(key: str, value: object) -> Callable[[Path], None]:
    """Change what an earlier version wrote, which recorded no checksum."""

    def change(one: Path) -> None:
        state = torch.load(one / "training.pt", weights_only=True)
        torch.save(state | {key: value}, one / "training.pt")
        forget_checksum(one)

    return change


MOMENTS = {"exp_avg": torch.zeros(3), "exp_avg_sq": torch.zeros(3)}
DAMAGES |= {
    "no tensors of the policy": change_state("policy", None),
    "text of the optimizer": change_state("optimizer", "Adam"),
    "moments of another shape": change_state("optimizer", {"state": {0: MOMENTS}, "param_groups": []}),
    "numbers for a scale": change_state("scale", (1, 2, 3)),
    "a list of settings": change_state("settings", []),
}
OF_POLICY = ["cut weights", "an empty policy.json", "an empty folder"]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("latest", ["30\n", "", "\0\0\0"])
def test_training_goes_on_from_the_newest_whole_checkpoint(
    damage: str, latest: str, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    DAMAGES[damage](run / "checkpoints" / "30")
    (run / "checkpoints" / "latest").write_text(latest)
    learner = PPOLearner(settings(run))
    found = load_newest(learner, run)
    assert found is not None and found[0].name == "20" and learner.steps == 20
    (said,) = caplog.messages
    assert f"the checkpoint {run / 'checkpoints' / '30'} cannot be read: " in said
    assert said.endswith(f"; training goes on from {run / 'checkpoints' / '20'}") and "\n" not in said


def test_after_going_back_the_checkpoint_before_is_taken(run: Path) -> None:
    (run / "checkpoints" / "latest").write_text("20")
    (run / "checkpoints" / "20" / "training.pt").unlink()
    learner = PPOLearner(settings(run))
    load_newest(learner, run)
    assert learner.steps == 10
    (run / "checkpoints" / "10" / "training.pt").unlink()
    load_newest(learner, run)
    assert learner.steps == 30


def test_a_resumed_run_says_it_once_and_plays(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    flip_bits(run / "checkpoints" / "30" / "training.pt")
    summary = ppo.main(settings(run, steps=20 + BATCH), resume=True, quiet=True)
    assert summary.steps == 20 + BATCH and column(run, "steps") == [20 + BATCH]
    (said,) = caplog.messages
    assert "is not the file that policy.json was saved with" in said


def test_where_no_checkpoint_is_whole_the_newest_is_named(run: Path) -> None:
    for one in all_checkpoints(run):
        flip_bits(one / "training.pt")
    said = r"checkpoints.30 cannot be read: training\.pt \([\d,]+ bytes\) is not the .* Copy the whole"
    with pytest.raises(SettingsError, match=said):
        ppo.main(settings(run), resume=True, quiet=True)


@pytest.mark.parametrize("damage", OF_POLICY)
def test_commands_play_the_newest_policy_that_is_whole(
    damage: str, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    DAMAGES[damage](run / "checkpoints" / "30")
    flip_bits(run / "checkpoints" / "20" / "training.pt")  # a policy plays whatever its learner's state is
    for _ in range(2):
        assert policy_path(str(run)) == str(run / "checkpoints" / "20")
    (said,) = caplog.messages
    assert said.startswith("damaged checkpoint: ") and str(run / "checkpoints" / "30") in said
    assert said.endswith(f"{run / 'checkpoints' / '20'} is taken in its place")
    followed = FollowedRun(run, lambda folder: load_player(str(folder), allow_modules=["tests"]))
    assert followed.taken == ["20"]


@pytest.mark.parametrize("hours", [-24, 24])
def test_checkpoints_are_kept_by_steps_whatever_the_clock_says(hours: int, run: Path) -> None:
    for one in all_checkpoints(run):
        then = one.stat().st_mtime + 3600 * hours
        os.utime(one, (then, then))
    learner = PPOLearner(settings(run))
    learner.steps = 40
    learner.save(Checkpoints(run, 3))
    assert [one.name for one in all_checkpoints(run)] == ["20", "30", "40"]


def test_a_checkpoint_that_was_being_replaced_is_put_back(run: Path) -> None:
    (run / "checkpoints" / "30").rename(run / "checkpoints" / ".30.7.before.tmp")
    (run / "checkpoints" / ".30.7.tmp").mkdir()
    learner = PPOLearner(settings(run))
    load_newest(learner, run)
    assert learner.steps == 30
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["10", "20", "30", "latest"]


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        (["30"], "the last good checkpoint is {run}/checkpoints/20"),
        (["10", "20", "30"], "no checkpoint in {run} is whole"),
    ],
)
def test_the_last_good_checkpoint_is_a_whole_one(
    damaged: list[str], expected: str, run: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name in damaged:
        flip_bits(run / "checkpoints" / name / "training.pt")

    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "run/checkpoints/40")

    monkeypatch.setattr(ppo, "main", full)
    (tmp_path / "own.toml").write_text("")
    assert run_command("train", [str(tmp_path / "own.toml"), "--out", str(run)]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-2] == "error: run/checkpoints/40 cannot be written: No space left on device"
    assert Path(said[-1]) == Path(expected.format(run=run))


def test_a_checkpoint_that_cannot_be_written_ends_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace, tries = Checkpoints.replace, []

    def full_at_first(self: Checkpoints, steps: int, write: Callable[[Path], Any]) -> Path:
        tries.append(steps)
        if len(tries) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(self, steps, write)

    monkeypatch.setattr(Checkpoints, "replace", full_at_first)
    summary = ppo.main(settings(tmp_path, steps=4 * BATCH, checkpoint_every=2 * BATCH))
    assert tries == [2 * BATCH, 4 * BATCH] and summary.checkpoint.name == str(4 * BATCH)
    said = capsys.readouterr().err.splitlines()
    place = tmp_path / "checkpoints" / str(2 * BATCH)
    why = "No space left on device; training goes on, and tries again at the next checkpoint"
    assert f"{place} cannot be written: {why}" in said
    tries.clear()
    with pytest.raises(OSError, match="No space left on device"):  # the last one of a run
        ppo.main(settings(tmp_path, steps=5 * BATCH), resume=True, quiet=True)


def test_what_is_no_former_checkpoint_is_not_put_back(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, 1)
    checkpoints.save(5, lambda folder: None)
    (checkpoints.folder / ".latest.9.before.tmp").mkdir()
    (checkpoints.folder / ".77.9.before.tmp").write_text("")
    (checkpoints.folder / ".66.9.before.tmp").symlink_to(tmp_path)
    checkpoints.save(10, lambda folder: None)
    assert sorted(path.name for path in checkpoints.folder.iterdir()) == ["10", "latest"]
