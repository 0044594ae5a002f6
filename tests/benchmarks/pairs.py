"""Compare this checkout's speed with another one's: `python -m tests.benchmarks.pairs CHECKOUT [NAME...]`.

    a process of each checkout, side by side -> slices in turns -> median of the slices' ratios
    as many such pairs of processes as asked for -> mean ratio and its 95 % interval

Both run the benchmark's own part alone, without its peer, with this Python. A ratio above 1 means that this
checkout is faster. The exit code is 1 where the interval of a ratio reaches down to a loss of 3 %.
Slices are short, so that a drift of the machine's speed meets both. Several pairs are needed, because the
memory layout of a process changes its speed.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.support.processes import child

_ROOT: Final = Path(__file__).parents[2]
_WORST: Final = 0.97  # of the other's speed
_SECONDS: Final = 180.0  # in which a process has to answer
_DRAWS: Final = 10_000  # of the bootstrap

_BEGIN: Final = """
import sys
def of(module, name, older):  # checkouts of 2026-11-21 and before have other names
    return getattr(module, name, None) or getattr(module, older)
"""

_END: Final = """
measure()
print("ready", flush=True)
for line in sys.stdin:
    print(measure(), flush=True)
"""

_LIVE: Final = """
import torch
from tests.benchmarks import live_path
try:
    from rlgym_bridge.sim import state_estimator as follower
except ImportError:  # a checkout of 2026-11-26 or before
    from rlgym_bridge.sim import shadow as follower
for module in (live_path, follower):  # older checkouts know RocketSim's thrust alone: equal packets for both
    module.DEFAULT = frozenset()
torch.set_num_threads(1)
packets = of(live_path, "record_packets", "_packets")({size})
numbers = live_path.DefaultObs(zero_padding=None).size({size}, {size})
weights = of(live_path, "draw_weights", "_weights")(numbers)
network = live_path.NetworkPolicy(weights, "categorical", (90,), "argmax")
network.reset([0])
def measure():
    return 1 / of(live_path, "time_ours", "_ours")(packets, network, {shadow})
"""

_LOCKSTEP: Final = """
import queue, threading, time
from rlgym_bridge.matches.lineup import empty_match, with_line_up
from rlgym_bridge.server import MatchServer
TICKS = 480  # in a slice
bots = ["chaser"] * {size}
asked, seconds = queue.SimpleQueue(), queue.SimpleQueue()
left, began = TICKS, 0.0
def stop_between_slices(packet):  # called before a packet is sent: everybody waits
    global left, began
    if left == 0:
        seconds.put(time.perf_counter() - began)
        asked.get()
        left, began = TICKS, time.perf_counter()
    left -= 1
def play():
    options = dict(pace="lockstep", seconds=3600.0, max_overtime=0.0, on_packet=stop_between_slices)
    with MatchServer(**options) as server:
        server.play(with_line_up(empty_match(), bots, bots))
threading.Thread(target=play, daemon=True).start()
seconds.get()  # the first slice warms up
def measure():
    asked.put(None)
    return TICKS / seconds.get()
"""

_ENV: Final = """
import time
import numpy as np
from tests.benchmarks import env as bench
env = bench._env({size}, 0, 128)
draws = np.random.default_rng(0).integers(90, size=(64, 128, 2 * {size}))
step = 0
def measure():
    global step
    began = time.process_time()
    for step in range(step, step + 16):
        env.step(draws[step % 64])
    return 16 * 128 / (time.process_time() - began)
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
"""For each name of `tests.benchmarks.bench`, a program that measures the speed of our own part."""


@contextmanager
def measuring(checkout: Path, name: str) -> Iterator[Callable[[], float]]:
    """Start a process of a checkout; yield a function that returns the speed of one slice.

    Raises:
        RuntimeError: The process fails, or does not answer for three minutes.
    """
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1"}
    with (
        tempfile.TemporaryFile("w+") as errors,
        child(
            [sys.executable, "-c", _BEGIN + PARTS[name] + _END], cwd=checkout, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        ) as process,
    ):  # fmt: skip

        def answer() -> str:
            late = threading.Timer(_SECONDS, process.kill)
            late.daemon = True
            late.start()
            line = process.stdout.readline().strip()
            late.cancel()
            if not line:
                errors.seek(0)
                raise RuntimeError(f"{name} failed in {checkout}: {errors.read()[-2000:]}")
            return line

        def measure() -> float:
            process.stdin.write("\n")
            process.stdin.flush()
            return float(answer())

        answer()  # it is ready
        yield measure


def paired_ratio(checkout: Path, name: str, slices: int) -> float:
    """Return the median ratio of speeds, this checkout's to the other's, of one pair of processes."""
    with measuring(_ROOT, name) as ours, measuring(checkout, name) as theirs:
        ratios = []
        for number in range(slices):
            if number % 2:
                other, own = theirs(), ours()
            else:
                own, other = ours(), theirs()
            ratios.append(own / other)
    return statistics.median(ratios)


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
    parser.add_argument("--pairs", type=int, default=8, help="of processes (default: %(default)s)")
    parser.add_argument("--slices", type=int, default=30, help="of each process (default: %(default)s)")
    options: Any = parser.parse_args()
    if unknown := set(options.names) - set(PARTS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    slower = []
    for name in options.names or PARTS:
        ratios = []
        for _ in range(options.pairs):
            ratios.append(paired_ratio(options.checkout.absolute(), name, options.slices))
            print(f"{name}: {ratios[-1]:.3f}", file=sys.stderr, flush=True)
        mean, low, high = interval(np.array(ratios))
        print(f"{name}: {mean:.3f} ({low:.3f} to {high:.3f}), {options.pairs} pairs", flush=True)
        if low <= _WORST:
            slower.append(name)
    if slower:
        print(f"a loss of {1 - _WORST:.0%} cannot be ruled out: {', '.join(slower)}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
