"""Judge what the shipped bot may be trained with: `python -m tests.benchmarks.candidates [--seconds S]`.

Trains each candidate, an observation and a network, on some seeds for equal times into a temporary folder.
Plays the policies in each team size: after equal seconds, and after the most steps that all runs made.
Prints medians over the seeds, with the least and the largest. The candidates of a seed are trained one after
another, so that a busy hour of the machine meets all of them.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from subprocess import STDOUT, CalledProcessError, TimeoutExpired
from typing import Any, Final

from rlgym_bridge.policy.files import MANIFEST_FILE, WEIGHTS_FILE
from rlgym_bridge.user_input.toml_text import toml_value
from tests.support.processes import child
from training.evaluate import evaluate

CANDIDATES: Final[dict[str, dict[str, Any]]] = {
    f"{obs} {layers}{' layer_norm' * layer_norm}": {
        "obs": obs, "policy_layers": widths, "critic_layers": widths, "layer_norm": layer_norm,
    }
    for obs in ("DefaultObs", "RelativeObs", "TeamObs")
    for layers, widths in (("2x256", [256, 256]), ("3x512", [512, 512, 512]))
    for layer_norm in (False, True)
}  # fmt: skip
"""Settings of each candidate; `obs` is a name of the public face."""

SIZES: Final = (1, 2, 3)
FIRST: Final = "first"
_TEAMS: Final = [[1, 1, 0.5], [2, 2, 0.3], [3, 3, 0.2]]
_TO_START, _TO_STOP = 120.0, 60.0  # s, longest
_POLICY_FILES: Final = (MANIFEST_FILE, WEIGHTS_FILE)


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


@dataclass(frozen=True)
class Judgement:
    """A policy's matches against the opponent.

    Attributes:
        name: Of the candidate.
        seed: Of the run.
        team_size: Cars a team.
        equal: `"seconds"` or `"steps"`: what all candidates have had the same of.
        steps: Agent steps of the policy.
        win_rate: 0 to 1; a draw counts half.
        lead: Goals a minute, less those of the opponent.
        touches: Of a car, a minute.
    """

    name: str
    seed: int
    team_size: int
    equal: str
    steps: int
    win_rate: float
    lead: float
    touches: float


def train(name: str, seed: int, folder: Path, seconds: float, changes: dict[str, Any]) -> TrainedRun:
    """Train a candidate for some seconds in a process of its own.

    Args:
        name: Of the candidate.
        seed: Of the run.
        folder: A new one for the run.
        seconds: From the first iteration to the last.
        changes: Settings that differ from the defaults.

    Raises:
        CalledProcessError: It failed.
        TimeoutExpired: It does not begin, or does not stop.
    """
    folder.mkdir(parents=True)
    candidate = dict(CANDIDATES[name])
    own = {"obs": candidate.pop("obs")}
    settings = {
        "components": "tests.benchmarks.candidate_parts", "team_sizes": _TEAMS, "seed": seed,
        "out": str(folder / "run"), "steps": 10**12, "keep_checkpoints": 10**6,
        **candidate, **changes,
    }  # fmt: skip
    lines = [f"{key} = {toml_value(value)}" for key, value in settings.items()]
    lines += ["[my]", *(f"{key} = {toml_value(value)}" for key, value in own.items())]
    (folder / "settings.toml").write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "training", folder / "settings.toml", "-q"]
    progress = folder / "run" / "progress.csv"
    output = folder / "output.txt"
    with output.open("w") as stream, child(command, stdout=stream, stderr=STDOUT) as process:
        waited = 0.0
        while not _lines_of(progress) and process.poll() is None and waited < _TO_START:
            waited += 0.5
            with suppress(TimeoutExpired):
                process.wait(0.5)
        if process.poll() is None and not _lines_of(progress):
            raise TimeoutExpired([str(word) for word in command], _TO_START)
        with suppress(TimeoutExpired):
            process.wait(seconds)
        asked = process.poll() is None
        process.terminate()
        process.wait(_TO_STOP)
        if not asked or process.returncode:
            said = output.read_text(encoding="utf-8")
            failed = CalledProcessError(process.returncode, [str(word) for word in command], said)
            failed.add_note(f"{name}, seed {seed}, ended before its time; it said: {said[-2000:]}")
            raise failed
    rows = [line.split(",") for line in _lines_of(progress)]
    touches = progress.read_text(encoding="utf-8").split("\n")[0].split(",").index("touches_per_car_minute")
    last = rows[-max(1, len(rows) // 10) :]
    checkpoints = {
        int(path.name): path for path in (folder / "run" / "checkpoints").iterdir() if path.name.isdigit()
    }
    for path in checkpoints.values():
        for file in path.iterdir():
            if file.name not in _POLICY_FILES:  # of the trainer, which are several times as large
                file.unlink()
    return TrainedRun(name, seed, checkpoints, statistics.mean(float(row[touches]) for row in last))


def choose_equal_steps(runs: Sequence[TrainedRun]) -> dict[tuple[str, int], int]:
    """Return for each run, by name and seed, the checkpoint with as many steps as all runs made.

    These are the largest steps that are not above the fewest of any run's last checkpoint.
    """
    fewest = min(run.steps for run in runs)
    return {
        (run.name, run.seed): max(steps for steps in run.checkpoints if steps <= fewest)
        if min(run.checkpoints) <= fewest
        else min(run.checkpoints)
        for run in runs
    }


def judge(runs: Sequence[TrainedRun], opponent: str, matches: int, seconds: float) -> list[Judgement]:
    """Play the policies of all runs in each team size.

    Args:
        runs: Of all candidates.
        opponent: `"chaser"`, a policy folder, or `"first"` for the first checkpoint of the same run.
        matches: Of each policy and team size.
        seconds: Game time of each.
    """
    equal_steps, found = choose_equal_steps(runs), []
    once = cache(evaluate)  # both comparisons may have the same checkpoint
    for run in runs:
        against = str(run.checkpoints[min(run.checkpoints)]) if opponent == FIRST else opponent
        for equal, steps in (("seconds", run.steps), ("steps", equal_steps[run.name, run.seed])):
            for size in SIZES:
                played = once(str(run.checkpoints[steps]), against, matches, seconds=seconds, team_size=size)
                lead = float(played.leads.sum() / played.minutes.sum())
                touches = played.touches_per_minute[0]
                found.append(
                    Judgement(run.name, run.seed, size, equal, steps, played.win_rate, lead, touches)
                )
    return found


def make_table(runs: Sequence[TrainedRun], judgements: Sequence[Judgement]) -> list[str]:
    """Return the lines of a Markdown table: for each candidate medians over the seeds, least and largest."""
    heads = [f"{size}v{size}, equal {equal}" for equal in ("seconds", "steps") for size in SIZES]
    lines = [
        "| candidate | thousand steps | touches a car and minute | " + " | ".join(heads) + " |",
        "|---" * (3 + len(heads)) + "|",
    ]
    for name in dict.fromkeys(run.name for run in runs):
        mine = [run for run in runs if run.name == name]
        cells = [_spread([run.steps / 1000 for run in mine], "{:.0f}".format)]
        cells.append(_spread([run.touches for run in mine], "{:.1f}".format))
        for equal in ("seconds", "steps"):
            for size in SIZES:
                leads = [
                    one.lead
                    for one in judgements
                    if (one.name, one.equal, one.team_size) == (name, equal, size)
                ]
                cells.append(_spread(leads, "{:+.2f}".format))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _spread(values: Sequence[float], written: Callable[[float], str]) -> str:
    median, low, high = statistics.median(values), min(values), max(values)
    return f"{written(median)} ({written(low)} to {written(high)})"


def _lines_of(progress: Path) -> list[str]:
    """Return the whole lines of a table but its head."""
    if not progress.exists():
        return []
    return progress.read_text(encoding="utf-8").split("\n")[1:-1]


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="CANDIDATE", help=f"default: all of {[*CANDIDATES]}")
    parser.add_argument("--seconds", type=float, default=600.0, help="of each run (default: 600)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each candidate (default: 3)")
    parser.add_argument("--against", default="chaser", help=f"chaser, a policy folder, or {FIRST}")
    parser.add_argument("--matches", type=int, default=50, help="of each policy and size (default: 50)")
    parser.add_argument("--match-seconds", type=float, default=60.0, help="of each match (default: 60)")
    parser.add_argument(
        "--checkpoint-every", type=int, default=500_000, help="agent steps; equal steps are multiples of it"
    )
    parser.add_argument("--json", type=Path, help="file for all results")
    options = parser.parse_args()
    unknown = set(options.names) - set(CANDIDATES)
    if unknown:
        parser.error(f"{sorted(unknown)} are no candidates, expected some of {[*CANDIDATES]}")
    names = options.names or list(CANDIDATES)
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seeds):
            for number, name in enumerate(names):
                changes = {"checkpoint_every": options.checkpoint_every}
                runs.append(train(name, seed, Path(folder, f"{seed}-{number}"), options.seconds, changes))
                print(f"{name}, seed {seed}: {runs[-1].steps:,} steps", file=sys.stderr, flush=True)
        judgements = judge(runs, options.against, options.matches, options.match_seconds)
    print(f"goals a minute less those of {options.against}: median (least to largest) of the seeds")
    equal = sorted(choose_equal_steps(runs).values())
    print(f"equal steps: {equal[0]:,} to {equal[-1]:,}\n")
    print("\n".join(make_table(runs, judgements)))
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in judgements], indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
