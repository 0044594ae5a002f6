"""Judge what the shipped bot may be trained with: `python -m tests.benchmarks.candidates [--seconds S]`.

Trains each candidate, an observation and a network, on some seeds for equal processor time, or to equal steps
with `--steps`. What else runs on the machine so counts little. Plays the policies in each team size: after
equal time, and after the most steps that all runs made. Prints medians over the seeds, with the least and the
largest. With `--out` finished runs are kept, and the next command goes on after them.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final

from rlgym_bridge.training.evaluate import evaluate
from tests.benchmarks.candidate_runs import CANDIDATES, TrainedRun, load_or_train

SIZES: Final = (1, 2, 3)
FIRST: Final = "first"


@dataclass(frozen=True)
class Judgement:
    """A policy's matches against the opponent.

    Attributes:
        name: Of the candidate.
        seed: Of the run.
        team_size: Cars a team.
        equal: `"time"` or `"steps"`: what all candidates have had the same of.
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
    equal_steps, judgements = choose_equal_steps(runs), []
    once = cache(evaluate)  # both comparisons may have the same checkpoint
    for run in runs:
        against = str(run.checkpoints[min(run.checkpoints)]) if opponent == FIRST else opponent
        for equal, steps in (("time", run.steps), ("steps", equal_steps[run.name, run.seed])):
            for size in SIZES:
                played = once(str(run.checkpoints[steps]), against, matches, seconds=seconds, team_size=size)
                lead = float(played.leads.sum() / played.minutes.sum())
                touches = played.touches_per_minute[0]
                judgements.append(
                    Judgement(run.name, run.seed, size, equal, steps, played.win_rate, lead, touches)
                )
    return judgements


def make_table(runs: Sequence[TrainedRun], judgements: Sequence[Judgement]) -> list[str]:
    """Return the lines of a Markdown table: for each candidate medians over the seeds, least and largest."""
    heads = [f"{size}v{size}, equal {equal}" for equal in ("time", "steps") for size in SIZES]
    lines = [
        "| candidate | thousand steps | touches a car and minute | " + " | ".join(heads) + " |",
        "|---" * (3 + len(heads)) + "|",
    ]
    for name in dict.fromkeys(run.name for run in runs):
        mine = [run for run in runs if run.name == name]
        cells = [_spread([run.steps / 1000 for run in mine], "{:.0f}".format)]
        cells.append(_spread([run.touches for run in mine], "{:.1f}".format))
        for equal in ("time", "steps"):
            for size in SIZES:
                leads = [
                    judgement.lead
                    for judgement in judgements
                    if (judgement.name, judgement.equal, judgement.team_size) == (name, equal, size)
                ]
                cells.append(_spread(leads, "{:+.2f}".format))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _spread(values: Sequence[float], written: Callable[[float], str]) -> str:
    median, low, high = statistics.median(values), min(values), max(values)
    return f"{written(median)} ({written(low)} to {written(high)})"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="CANDIDATE", help=f"default: all of {[*CANDIDATES]}")
    parser.add_argument(
        "--seconds", type=float, default=1200.0, help="processor time of each run (default: 1200)"
    )
    parser.add_argument("--steps", type=int, help="agent steps of each run, however long they take")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each candidate (default: 3)")
    parser.add_argument("--against", default="chaser", help=f"chaser, a policy folder, or {FIRST}")
    parser.add_argument("--matches", type=int, default=50, help="of each policy and size (default: 50)")
    parser.add_argument("--match-seconds", type=float, default=60.0, help="of each match (default: 60)")
    parser.add_argument(
        "--checkpoint-every", type=int, default=500_000, help="agent steps; equal steps are multiples of it"
    )
    parser.add_argument("--out", type=Path, help="folder that keeps the runs; finished ones are not repeated")
    parser.add_argument("--json", type=Path, help="file for all results")
    options = parser.parse_args()
    unknown = set(options.names) - set(CANDIDATES)
    if unknown:
        parser.error(f"{sorted(unknown)} are no candidates, expected some of {[*CANDIDATES]}")
    names = options.names or list(CANDIDATES)
    runs = []
    with nullcontext(options.out) if options.out else tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seeds):
            for name in names:
                changes = {"checkpoint_every": options.checkpoint_every}
                if options.steps:
                    changes["steps"] = options.steps
                own = Path(folder, f"{name.replace(' ', '-')}-{seed}")
                runs.append(
                    load_or_train(name, seed, own, math.inf if options.steps else options.seconds, changes)
                )
                print(f"{name}, seed {seed}: {runs[-1].steps:,} steps", file=sys.stderr, flush=True)
        judgements = judge(runs, options.against, options.matches, options.match_seconds)
    print(f"goals a minute less those of {options.against}: median (least to largest) of the seeds")
    equal = sorted(choose_equal_steps(runs).values())
    print(f"equal steps: {equal[0]:,} to {equal[-1]:,}\n")
    print("\n".join(make_table(runs, judgements)))
    if options.json:
        options.json.write_text(
            json.dumps([asdict(judgement) for judgement in judgements], indent=1), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
