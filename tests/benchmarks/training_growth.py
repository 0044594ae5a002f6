"""Measure how training grows with collectors: `python -m tests.benchmarks.training_growth [--json FILE]`.

Trains some iterations with each number of collectors, team size, network and device, each in a process of
its own. Prints agent steps a second, their ratio to as many times those of one collector, and what the
learner waits. Each collector plays as many matches as `training/config.toml` says, so batches grow too.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, Final

import torch

from rlgym_bridge.training.processes import count_usable_cores
from rlgym_bridge.user_input.text_files import toml_value
from tests.support.processes import run_to_end

COLLECTORS: Final = (1, 2, 4, 8, 14)
_LAYERS: Final = {"2x256": [256, 256], "3x512": [512, 512, 512]}
_LONGEST: Final = 600.0  # s of one run


@dataclass(frozen=True)
class Cell:
    """The speed of training with some collectors.

    Attributes:
        device: Of the learner.
        layers: Of both networks, a name of the table.
        team_size: Cars a team.
        collectors: Processes that play.
        steps_a_second: Agent steps, of collecting and learning; the median of the rounds.
        learner_waits: Share of the time that the learner waits for collectors, 0 to 1.
        collector_cores: Share of a core that a working collector got, 0 to 1.
    """

    device: str
    layers: str
    team_size: int
    collectors: int
    steps_a_second: float
    learner_waits: float
    collector_cores: float


def measure(device: str, layers: str, team_size: int, collectors: int, iterations: int) -> Cell:
    """Train some iterations in a process of its own.

    Raises:
        CalledProcessError: It failed; what it printed is a note.
        TimeoutExpired: It does not end in ten minutes.
    """
    settings = {
        "device": device, "policy_layers": _LAYERS[layers], "critic_layers": _LAYERS[layers],
        "team_sizes": [team_size, team_size], "collectors": collectors,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        written, out = Path(folder, "settings.toml"), Path(folder, "profile.json")
        lines = [f"{key} = {toml_value(value)}" for key, value in settings.items()]
        written.write_text("\n".join(lines), encoding="utf-8")
        command = [sys.executable, "-m", "training", written, "--out", Path(folder, "run")]
        command += ["--profile", str(iterations), "--json", out]
        try:
            run_to_end(command, seconds=_LONGEST, check=True)
        except CalledProcessError as failure:
            failure.add_note(f"with {settings} it said: {failure.stderr[-2000:]}")
            raise
        profile: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    parts = profile["parts"]
    working = profile["seconds"] - parts["collector_waiting"]["seconds"]
    return Cell(
        device, layers, team_size, collectors, profile["agent_steps_per_second"],
        parts["learner_waiting"]["share"], profile["collector_cpu_seconds"] / working,
    )  # fmt: skip


def make_table(cells: Sequence[Cell], cores: int) -> list[str]:
    """Return the lines of a Markdown table: a row for each kind of training, a column for each number."""
    numbers = sorted({cell.collectors for cell in cells})
    heads = [f"{number} collector{'s' * (number > 1)}" for number in numbers]
    lines = [
        f"| learner, network, match ({cores} cores) | " + " | ".join(heads) + " |",
        "|---" * (1 + len(numbers)) + "|",
    ]
    for device, layers, size in dict.fromkeys((cell.device, cell.layers, cell.team_size) for cell in cells):
        row = {
            cell.collectors: cell
            for cell in cells
            if (cell.device, cell.layers, cell.team_size) == (device, layers, size)
        }
        lines.append(f"| {device}, {layers}, {size}v{size} | " + " | ".join(_texts(row, numbers)) + " |")
    return lines


def _texts(row: dict[int, Cell], numbers: Sequence[int]) -> list[str]:
    texts = []
    for number in numbers:
        if number not in row:
            texts.append("")
            continue
        cell = row[number]
        text = f"{cell.steps_a_second:,.0f}"
        if 1 in row and number > 1:
            text += f" ({cell.steps_a_second / (number * row[1].steps_a_second):.2f} x {number} times one)"
        texts.append(f"{text}, learner waits {cell.learner_waits:.0%}")
    return texts


def _median(cells: Sequence[Cell]) -> Cell:
    """Return the round whose speed is the median; of an even number the lower one."""
    speed = statistics.median_low(cell.steps_a_second for cell in cells)
    return next(cell for cell in cells if cell.steps_a_second == speed)


def main() -> int:
    """Run the command."""
    cores = count_usable_cores()
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    usual = [number for number in COLLECTORS if number <= cores]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collectors", type=int, nargs="+", default=usual, help=f"default here: {usual}")
    parser.add_argument("--team-sizes", type=int, nargs="+", default=[1, 3], choices=(1, 2, 3, 4))
    parser.add_argument("--networks", nargs="+", default=[*_LAYERS], choices=_LAYERS)
    parser.add_argument("--devices", nargs="+", default=devices, help=f"default here: {devices}")
    parser.add_argument("--iterations", type=int, default=3, help="timed, of each run (default: 3)")
    parser.add_argument("--rounds", type=int, default=1, help="of all runs; medians are printed (default: 1)")
    parser.add_argument("--json", type=Path, help="file for all results")
    options = parser.parse_args()
    kinds = list(product(options.devices, options.networks, options.team_sizes, options.collectors))
    found: dict[tuple[str, str, int, int], list[Cell]] = {kind: [] for kind in kinds}
    for _ in range(options.rounds):
        for kind in kinds:
            found[kind].append(measure(*kind, options.iterations))
            print(found[kind][-1], file=sys.stderr, flush=True)
    cells = [_median(rounds) for rounds in found.values()]
    print("\n".join(make_table(cells, cores)))
    if options.json:
        written = [[asdict(cell) for cell in rounds] for rounds in found.values()]
        options.json.write_text(json.dumps(written, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
