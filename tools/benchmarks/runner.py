"""Runs benchmarks, each in a process of its own, so that one that fails or hangs costs itself alone.

registry (module, names) -> process for each -> result, or why there is none -> printed, benchmarks.json
"""

import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.processes import run_to_end

_ROOT: Final = Path(__file__).parents[2]


class Skipped(RuntimeError):
    """The peer cannot be run here; the message says why."""


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    Attributes:
        measure: Returns what `compared` does.
        seconds: After which it is ended: several times what it takes.
    """

    measure: Callable[[], dict[str, Any]]
    seconds: float = 900.0


def compared(
    values: Sequence[float], peers: Sequence[float], unit: str, peer: str, less_is_better: bool = False
) -> dict[str, Any]:
    """Return medians of ours and the peer's, their ratio (above 1: we are better) and its spread."""
    value, peer_value = statistics.median(values), statistics.median(peers)
    turn = -1 if less_is_better else 1
    ratios = [(own / other) ** turn for own, other in zip(values, peers, strict=True)]
    return {
        "value": value, "unit": unit, "peer": peer, "peer_value": peer_value,
        "ratio": (value / peer_value) ** turn, "spread": [min(ratios), max(ratios)],
    }  # fmt: skip


def run_all(registry: str, names: Sequence[str], out: Path) -> int:
    """Run benchmarks, write the results; return 1 where one failed, 2 where there is no such one."""
    benchmarks: dict[str, Benchmark] = importlib.import_module(registry).BENCHMARKS
    unknown = set(names) - set(benchmarks)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(benchmarks)}")
        return 2
    results, failed = [], []
    for name in names or benchmarks:
        began = time.perf_counter()
        found = _in_a_process(registry, name, benchmarks[name].seconds)
        print(f"{name}: {_told(found)}   [{time.perf_counter() - began:.0f} s]", flush=True)
        if "error" in found:
            failed.append(name)
        elif "skipped" not in found:
            results.append({"name": name, **found})
    out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if failed:
        print(f"{len(failed)} failed: {', '.join(failed)}", flush=True)
    return 1 if failed else 0


def _told(found: dict[str, Any]) -> str:
    for name, words in (("error", "FAILED."), ("skipped", "skipped.")):
        if name in found:
            return f"{words} {found[name]}"
    ours, theirs = (f"{found[name]:,.1f}" for name in ("value", "peer_value"))
    low, high = found.get("spread", [found["ratio"]] * 2)
    spread = f" ({low:.2f} to {high:.2f})" if low < high else ""
    return f"{ours} {found['unit']} against {theirs} ({found['peer']}): ratio {found['ratio']:.2f}{spread}"


def _in_a_process(registry: str, name: str, seconds: float) -> dict[str, Any]:
    """Return what a benchmark measured; `{"error": why}` or `{"skipped": why}` where it did not."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "result.json")
        code = "from tools.benchmarks.runner import measure_one; measure_one()"
        search = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])
        try:
            done = run_to_end(
                [sys.executable, "-c", code, registry, name, out], seconds=seconds, stdout=None, stderr=None,
                env={**os.environ, "PYTHONPATH": search},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"it took more than {seconds:g} s and was ended"}
        if not out.exists():
            return {"error": f"its process ended with exit code {done.returncode}"}
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return found


def measure_one() -> None:
    """Measure the benchmark that the command line names, `REGISTRY NAME FILE`, and write what came of it."""
    registry, name, out = sys.argv[1:]
    try:
        found = importlib.import_module(registry).BENCHMARKS[name].measure()
    except Skipped as why:
        found = {"skipped": str(why)}
    except Exception as error:  # whatever may go wrong in it
        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {error}"}
    Path(out).write_text(json.dumps(found), encoding="utf-8")
