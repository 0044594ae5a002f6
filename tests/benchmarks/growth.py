"""`python -m tests.benchmarks.growth`: how stepping grows with arenas, processes and team size.

Writes lab/environment-speed.md and its plot.
"""

import argparse
import datetime
import platform
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from tests.benchmarks.env import ours
from tests.support.processes import guard

_ARENAS = (1, 4, 16, 64, 128, 256)
_SIZES = (1, 2, 3)
_PROCESSES = (1, 2)


def measure(seconds: float, rounds: int) -> dict[tuple[int, int, int], float]:
    """Return agent steps a second by team size, processes and arenas of each; medians of some rounds."""
    found: dict[tuple[int, int, int], list[float]] = {}
    with ExitStack() as stack:
        # An executor for each process, so that each keeps its arenas from one measurement to the next.
        pools = [
            stack.enter_context(ProcessPoolExecutor(1, get_context("spawn"))) for _ in range(max(_PROCESSES))
        ]
        for size in _SIZES:
            for arenas in _ARENAS:
                for processes in _PROCESSES * rounds:
                    jobs = [
                        pools[seed].submit(ours, size, seconds, seed, arenas) for seed in range(processes)
                    ]
                    total = 2 * size * sum(job.result() for job in jobs)
                    found.setdefault((size, processes, arenas), []).append(total)
                    print(size, processes, arenas, round(total), file=sys.stderr)
    return {key: statistics.median(values) for key, values in found.items()}


def draw(found: dict[tuple[int, int, int], float], path: Path) -> None:
    """Draw agent steps over arenas, a line for each team size and number of processes."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for size, colour in zip(_SIZES, ("tab:blue", "tab:orange", "tab:green"), strict=True):
        for processes, style in zip(_PROCESSES, (":", "-"), strict=True):
            values = [found[size, processes, arenas] / 1000 for arenas in _ARENAS]
            label = f"{size}v{size}, {processes} process" + "es" * (processes > 1)
            axes.plot(_ARENAS, values, style, color=colour, marker="o", label=label)
    axes.set(xscale="log", xlabel="arenas of each process", ylabel="agent steps a second, thousands")
    axes.set_xticks(_ARENAS, [str(one) for one in _ARENAS])
    axes.set_ylim(0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=110)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement (default: 2)")
    parser.add_argument("--rounds", type=int, default=3, help="medians of so many (default: 3)")
    parser.add_argument("--folder", type=Path, default=Path("lab"))
    options = parser.parse_args()
    guard()
    found = measure(options.seconds, options.rounds)
    packages = ("rocketsim", "rlgym-rocket-league", "numpy")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    lines = [
        "# How fast the environment steps",
        "",
        f"Made by `python -m tests.benchmarks.growth --seconds {options.seconds:g} "
        f"--rounds {options.rounds}` on {datetime.date.today()} with {versions}, "
        f"Python {platform.python_version()}, on two cores of a "
        "shared virtual machine.",
        "",
        "Agent steps a second (decisions of all cars, 8 ticks each) of `VectorEnv` without a policy: random "
        "actions, goal and touch rewards, kickoffs, `DefaultObs`. One process, then two at once: what "
        "they make together in a second of the processor time of each.",
        "",
        "| arenas of each process | "
        + " | ".join(f"{s}v{s}, {p}" for s in _SIZES for p in _PROCESSES)
        + " |",
        "|---|" + "---|" * (len(_SIZES) * len(_PROCESSES)),
    ]
    for arenas in _ARENAS:
        cells = [f"{found[size, processes, arenas]:,.0f}" for size in _SIZES for processes in _PROCESSES]
        lines.append(f"| {arenas} | " + " | ".join(cells) + " |")
    lines += ["", "![agent steps a second over arenas](environment-speed.png)", ""]
    (options.folder / "environment-speed.md").write_text("\n".join(lines), encoding="utf-8")
    draw(found, options.folder / "environment-speed.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
