"""Fuzz all readers for some time, or those that are named: `python -m tools.fuzz [TARGET...] --seconds N`.

Each target has its share of the time, half of it for each engine. Findings are written to `build/fuzz`.
"""

import argparse
import importlib.util
import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.processes import run_to_end
from tools.fuzz.targets import ROOT, TARGETS

_WAIT_SECONDS = 600  # a process has this long beyond its time: it limits its processor time itself


def _children_seconds() -> float:
    """Return the processor time of the child processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Run the command; 1 where there is a finding."""
    names = [one.name for one in TARGETS]
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(names)}; all by default")
    parser.add_argument("--seconds", type=float, default=300.0, help="for all targets (default: %(default)g)")
    parser.add_argument("--seed", type=int, default=random.randrange(1, 1 << 30), help="of what is random")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "fuzz", help="folder for findings")
    options = parser.parse_args()
    chosen = options.targets or names
    if unknown := set(chosen) - set(names):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    engines = ["hypothesis"]
    if importlib.util.find_spec("atheris") is not None:
        engines.append("atheris")
    else:
        print("atheris is not installed (pip install atheris): inputs are drawn by chance alone")
    options.out.mkdir(parents=True, exist_ok=True)
    share = options.seconds / len(chosen) / len(engines)
    print(f"seed {options.seed}, {share:.1f} s for each target and engine", flush=True)
    failed, env = [], {**os.environ, "OMP_NUM_THREADS": "1"}
    for name in chosen:
        for engine in engines:
            words = [engine, name, f"{share:.1f}", str(options.seed), str(options.out)]
            command = [sys.executable, "-m", "tools.fuzz.engines", *words]
            before = _children_seconds()
            try:
                done = run_to_end(command, cwd=ROOT, seconds=share + _WAIT_SECONDS, errors="replace", env=env)
                code, said = done.returncode, done.stdout + done.stderr
                if code == -signal.SIGXCPU:
                    said += f"{name}: an input took all the processor time that the process may use"
            except subprocess.TimeoutExpired:
                code, said = -1, f"it did not end within {share + _WAIT_SECONDS:.0f} s: does it wait?"
            if code:
                failed.append(f"{name} ({engine})")
                print(f"FINDING in {name} by {engine}:\n{said[-3000:]}", flush=True)
            else:
                lines = [
                    line for line in said.splitlines() if "inputs by" in line or "number_of_exec" in line
                ]
                used = _children_seconds() - before
                print(f"{name}: {engine}: {' '.join(lines)}; {used:.0f} s of processor time", flush=True)
    print(f"findings in: {', '.join(failed)}" if failed else "no finding")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
