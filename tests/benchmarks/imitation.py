"""Is it worth correcting what is imitated? `python -m tests.benchmarks.imitation [--matches N] [--ticks T]`.

The shipped policy, deciding every T ticks, plays with 2 ticks of latency and 5 % of the packets lost. It is
cloned from what the game applied and from what it commanded, three seeds each; held out is the end of every
episode.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import safetensors.numpy

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.policy.folder import ComponentSpec, load_policy, save_policy
from tests.support.processes import run_to_end
from tests.support.recorded_matches import POLICY, record

_SEEDS = 3
_PLAYED = 3  # matches
_LONGEST = 7200.0  # s, of an imitation or a match
_WORLD = ("--latency", "2", "--drop", "5")
_T = 4.303  # Student's, 95 %, two degrees of freedom


def retimed(folder: Path, ticks: int) -> Path:
    """Write the shipped policy as one that decides every so many ticks."""
    shipped = load_policy(POLICY).manifest
    weights = safetensors.numpy.load_file(Path(POLICY, "weights.safetensors"))
    save_policy(
        folder,
        weights,
        distribution=shipped.distribution,
        team_sizes=shipped.team_sizes,
        obs=shipped.obs,
        parser=ComponentSpec.of(RepeatAction, ComponentSpec.of(LookupTableAction), repeats=ticks),
        selection="argmax",
        obs_normalisation=shipped.obs_normalisation,
    )
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, default=6, help="of five minutes each")
    parser.add_argument("--ticks", type=int, default=3, help="that a decision lasts")
    parser.add_argument("--epochs", type=float, default=20)
    parser.add_argument("--keep", type=Path, help="folder for recordings and policies")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        teacher = retimed(folder / "teacher", options.ticks)
        files = []
        for seed in range(options.matches):
            files.append(folder / f"{seed}.mcap")
            if not files[-1].exists():
                record(files[-1], *_WORLD, blue=str(teacher), seconds=300, seed=seed)
                print(f"{files[-1].name} recorded", flush=True)
        found: dict[str, list[dict[str, Any]]] = {"corrected": [], "commanded": []}
        for seed in range(_SEEDS):
            for kind, results in found.items():
                out = folder / f"{kind}-{seed}"
                words = ["--commanded"] if kind == "commanded" else []
                words += ["--seed", str(seed), "--epochs", str(options.epochs), "--out", str(out)]
                results.append(_imitated(files, words, folder / f"{kind}-{seed}.json"))
                print(kind, seed, results[-1], flush=True)
        for name, what in (("accuracy", "all held-out decisions"), ("accuracy_there", "those that differ")):
            for kind, results in found.items():
                print(f"{what}, {kind}: {_interval([one[name] for one in results])}")
            gains = [a[name] - b[name] for a, b in zip(*found.values(), strict=True)]
            print(f"{what}, difference: {_interval(gains)}")
        for kind in found:
            print(kind, _plays(folder / f"{kind}-0", folder))
        print("teacher", _plays(teacher, folder))
    return 0


def _imitated(files: list[Path], words: list[str], result: Path) -> dict[str, Any]:
    """Clone, unless an interrupted run has done so."""
    if not result.exists():
        command = [sys.executable, "-m", "rlgym_bridge.training.imitate", *map(str, files), *words, "-q"]
        run_to_end([*command, "--json", str(result)], check=True, seconds=_LONGEST)
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def _plays(policy: Path, folder: Path) -> str:
    """Return the goals of a policy and of Chaser in matches over the match server, in the same world."""
    result, goals = folder / "match.json", [0, 0]
    for seed in range(_PLAYED):
        command = [sys.executable, "-m", "rlgym_bridge.cli", "match", "--blue", str(policy)]
        command += ["--orange", "chaser"]
        command += [*_WORLD, "--pace", "lockstep", "--seconds", "300", "--max-overtime", "0", "-q"]
        command += ["--seed", str(100 + seed), "--json", str(result)]
        run_to_end(command, check=True, cwd=folder, seconds=_LONGEST)
        score = json.loads(result.read_text())["score"]
        goals = [sum(pair) for pair in zip(goals, score, strict=True)]
    return f"{goals[0]} : {goals[1]} against Chaser in {_PLAYED} matches of five minutes"


def _interval(values: list[float]) -> str:
    half = _T * statistics.stdev(values) / len(values) ** 0.5
    return f"{statistics.mean(values):.2%} +- {half:.2%} (95 %, {', '.join(f'{one:.2%}' for one in values)})"


if __name__ == "__main__":
    sys.exit(main())
