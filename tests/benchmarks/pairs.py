"""Compare this checkout's speed with another one's: `python -m tests.benchmarks.pairs CHECKOUT [NAME...]`.

    a pair: a process of each checkout, in turns -> ratio of their speeds -> mean and 95 % interval of all

Both run the benchmark's own part alone, without its peer, with this Python. A ratio above 1 means that this
checkout is faster. The exit code is 1 where the interval of a ratio reaches down to a loss of 3 %.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.support.processes import run_to_end

_ROOT: Final = Path(__file__).parents[2]
_WORST: Final = 0.97  # of the other's speed
_SECONDS: Final = 120.0  # after which a process is ended
_DRAWS: Final = 10_000  # of the bootstrap

_BEGIN: Final = """
def of(module, name, older):  # checkouts of 2026-11-21 and before have other names
    return getattr(module, name, None) or getattr(module, older)
"""

_LIVE: Final = """
import torch
from tests.benchmarks import live_path
torch.set_num_threads(1)
packets = of(live_path, "record_packets", "_packets")({size})
numbers = live_path.DefaultObs(zero_padding=None).size({size}, {size})
weights = of(live_path, "draw_weights", "_weights")(numbers)
network = live_path.NetworkPolicy(weights, "categorical", (90,), "argmax")
network.reset([0])
times = [of(live_path, "time_ours", "_ours")(packets, network, {shadow}) for _ in range(7)]
print(1 / sorted(times)[3])
"""

_LOCKSTEP: Final = """
from tests.benchmarks import lockstep
print(of(lockstep, "time_match", "_match")({size}))
"""

_ENV: Final = """
from tests.benchmarks import env
print(env.ours({size}, 4.0))
"""

PARTS: Final = {
    "live_vs_compat_1v1": _LIVE.format(size=1, shadow=False),
    "live_vs_compat_3v3": _LIVE.format(size=3, shadow=False),
    "live_shadow_vs_compat_1v1": _LIVE.format(size=1, shadow=True),
    "server_lockstep_1v1": _LOCKSTEP.format(size=1),
    "server_lockstep_3v3": _LOCKSTEP.format(size=3),
    "env_vs_1v1": _ENV.format(size=1),
    "env_vs_3v3": _ENV.format(size=3),
}
"""For each name of `tests.benchmarks.bench`, a program that prints the speed of our own part."""


def speed(checkout: Path, name: str) -> float:
    """Return the speed that one process of a checkout measures, in the benchmark's own unit.

    Raises:
        RuntimeError: The process failed.
        subprocess.TimeoutExpired: It took longer than two minutes.
    """
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1"}
    done = run_to_end(
        [sys.executable, "-c", _BEGIN + PARTS[name]],
        seconds=_SECONDS,
        cwd=checkout,
        env=environment,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{name} failed in {checkout}: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def interval(ratios: np.ndarray) -> tuple[float, float, float]:
    """Return the geometric mean of ratios `(pairs,)`, and the ends of its 95 % interval by bootstrap."""
    logs = np.log(ratios)
    draws = np.random.default_rng(0).choice(logs, (_DRAWS, len(logs))).mean(1)
    mean, low, high = np.exp([logs.mean(), *np.quantile(draws, (0.025, 0.975))]).tolist()
    return mean, low, high


def main() -> int:
    """Measure the pairs, print a line for each benchmark, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.pairs", description=__doc__)
    parser.add_argument("checkout", type=Path, help="folder of the other checkout")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: {' '.join(PARTS)}")
    parser.add_argument("--pairs", type=int, default=20, help="of each benchmark (default: %(default)s)")
    options: Any = parser.parse_args()
    if unknown := set(options.names) - set(PARTS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    checkouts = (_ROOT, options.checkout.absolute())
    slower = []
    for name in options.names or PARTS:
        ratios = []
        for pair in range(options.pairs):
            turns = checkouts if pair % 2 else checkouts[::-1]
            speeds = {checkout: speed(checkout, name) for checkout in turns}
            ratios.append(speeds[checkouts[0]] / speeds[checkouts[1]])
        mean, low, high = interval(np.array(ratios))
        print(f"{name}: {mean:.3f} ({low:.3f} to {high:.3f}), {options.pairs} pairs", flush=True)
        if low <= _WORST:
            slower.append(name)
    if slower:
        print(f"a loss of {1 - _WORST:.0%} cannot be ruled out: {', '.join(slower)}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
