"""Train what the shipped bot may be trained with, each run for equal processor time."""

import json
import shutil
import statistics
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import STDOUT, CalledProcessError, TimeoutExpired
from typing import Any, Final

import psutil

from rlgym_bridge.policy.files import MANIFEST_FILE, WEIGHTS_FILE
from rlgym_bridge.user_input.text_files import toml_value
from tests.support.processes import child

CANDIDATES: Final[dict[str, dict[str, Any]]] = {
    f"{name}{', ball ahead' * ahead}": {
        "network": network, "policy_layers": widths, "critic_layers": widths,
        "ball_ahead": [0.25, 0.5, 1.0, 2.0] * ahead,
    }
    for name, network, widths in (
        ("perceptron 2x256", "perceptron", [256, 256]),
        ("perceptron 3x512", "perceptron", [512, 512, 512]),
        ("attention 2x256", "attention", [256, 256]),
    )
    for ahead in (False, True)
}  # fmt: skip
"""Settings of each candidate; `ball_ahead` adds the ball to come to what it sees."""

_TEAMS: Final = [[1, 1, 0.5], [2, 2, 0.3], [3, 3, 0.2]]
_TO_START, _TO_STOP = 120.0, 60.0  # s, longest
_LONGEST: Final = 12  # s of the clock for each s of processor time: on busy machines a run gets little
_POLICY_FILES: Final = (MANIFEST_FILE, WEIGHTS_FILE)
_DONE: Final = "done.json"


@dataclass(frozen=True)
class TrainedRun:
    """The run of one candidate with one seed.

    Attributes:
        name: Of the candidate.
        seed: Of the run.
        checkpoints: Folders of policies by agent steps.
        touches: A car and minute of play, mean over the last tenth of the run.
    """

    name: str
    seed: int
    checkpoints: dict[int, Path]
    touches: float

    @property
    def steps(self) -> int:
        """Agent steps at the end of its time."""
        return max(self.checkpoints)


def load_or_train(name: str, seed: int, folder: Path, seconds: float, changes: dict[str, Any]) -> TrainedRun:
    """Return a run that an earlier command has finished in a folder, or train it there.

    What an earlier command has left unfinished is deleted.

    Args:
        name: Of the candidate.
        seed: Of the run.
        folder: Of this run alone.
        seconds: See `train`.
        changes: See `train`.

    Raises:
        ValueError: The finished run had other arguments.
        CalledProcessError: See `train`.
        TimeoutExpired: See `train`.
    """
    done = folder / _DONE
    arguments = {"name": name, "seed": seed, "seconds": seconds, "changes": changes}
    if not done.exists():
        if folder.exists():
            shutil.rmtree(folder)
        run = train(name, seed, folder, seconds, changes)
        done.write_text(json.dumps({**arguments, "touches": run.touches}), encoding="utf-8")
        return run
    kept = json.loads(done.read_text(encoding="utf-8"))
    touches = kept.pop("touches")
    if kept != arguments:
        raise ValueError(f"{done} is of {kept}, expected {arguments}: take another folder")
    return TrainedRun(name, seed, _checkpoints(folder), touches)


def train(name: str, seed: int, folder: Path, seconds: float, changes: dict[str, Any]) -> TrainedRun:
    """Train a candidate in a process of its own, for some processor time or to the steps in `changes`.

    Args:
        name: Of the candidate.
        seed: Of the run.
        folder: A new one for the run.
        seconds: Processor time of all processes of the run, from the first iteration on.
        changes: Settings that differ from the defaults.

    Raises:
        CalledProcessError: It failed, or ended before its time without steps of its own.
        TimeoutExpired: It does not begin, does not stop, or gets less than a twelfth of a core.
    """
    folder.mkdir(parents=True)
    settings = {
        "team_sizes": _TEAMS, "seed": seed, "out": str(folder / "run"), "steps": 10**12,
        "keep_checkpoints": 10**6, **CANDIDATES[name], **changes,
    }  # fmt: skip
    lines = [f"{key} = {toml_value(value)}" for key, value in settings.items()]
    (folder / "settings.toml").write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "training", str(folder / "settings.toml"), "-q"]
    progress, output = folder / "run" / "progress.csv", folder / "output.txt"
    with output.open("w") as stream, child(command, stdout=stream, stderr=STDOUT) as process:
        waited = 0.0
        while not _lines_of(progress) and process.poll() is None:
            if waited > _TO_START:
                raise TimeoutExpired(command, _TO_START)
            with suppress(TimeoutExpired):
                process.wait(0.5)
            waited += 0.5
        before, used, waited = _processor_seconds(process.pid), 0.0, 0.0
        while used < seconds and process.poll() is None:
            if waited > _LONGEST * seconds:
                raise TimeoutExpired(command, _LONGEST * seconds)
            with suppress(TimeoutExpired):
                process.wait(1.0)
            waited += 1.0
            used = _processor_seconds(process.pid) - before
        was_running = process.poll() is None
        process.terminate()
        process.wait(_TO_STOP)
        if process.returncode or not (was_running or "steps" in changes):
            printed = output.read_text(encoding="utf-8")
            failure = CalledProcessError(process.returncode, command, printed)
            failure.add_note(f"{name}, seed {seed}, ended before its time; it said: {printed[-2000:]}")
            raise failure
    rows = [line.split(",") for line in _lines_of(progress)]
    touches = progress.read_text(encoding="utf-8").split("\n")[0].split(",").index("touches_per_car_minute")
    last = rows[-max(1, len(rows) // 10) :]
    checkpoints = _checkpoints(folder)
    for path in checkpoints.values():
        for file in path.iterdir():
            if file.name not in _POLICY_FILES:  # of the trainer, which are several times as large
                file.unlink()
    return TrainedRun(name, seed, checkpoints, statistics.mean(float(row[touches]) for row in last))


def _checkpoints(folder: Path) -> dict[int, Path]:
    """Return the policies of a run by their agent steps."""
    return {
        int(path.name): path for path in (folder / "run" / "checkpoints").iterdir() if path.name.isdigit()
    }


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process and all that it has started and that still run [s]."""
    total = 0.0
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = each.cpu_times()
                total += times.user + times.system
    return total


def _lines_of(progress: Path) -> list[str]:
    """Return the whole lines of a table but its head."""
    if not progress.exists():
        return []
    return progress.read_text(encoding="utf-8").split("\n")[1:-1]
