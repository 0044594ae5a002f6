"""Training with RLlib: beside our own trainer, beside RLlib on plain RLGym, and with more env runners.

Equal are the match, observation, actions and tick skip, networks, batch, minibatches, epochs and threads.
"""

import csv
import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from rlgym_bridge.training.settings import settings_as_toml
from tests.support.processes import run_to_end
from tools.benchmarks.ppo import BATCH, settings_of, speed_of
from tools.benchmarks.runner import compared

_ROOT = Path(__file__).parents[2]
_RUN_SECONDS = 600.0  # at most
_RUNNERS = 2
_PEER_MATCHES = 16  # of each runner on RLGym: more are no faster
_OURS, _THEIRS = 25, 6  # iterations that count


def rllib_vs_local(rounds: int) -> dict[str, Any]:
    """RLlib as the engine of a run, against the single machine's; both with two processes that play."""
    return _compared(rounds, lambda seed: _trained(seed, "rllib"), lambda seed: _trained(seed, "local"),
                     "python -m training")  # fmt: skip


def rllib_vs_rlgym(rounds: int) -> dict[str, Any]:
    """RLlib as the engine of a run, against RLlib's own env runner on plain RLGym."""
    return _compared(rounds, lambda seed: _trained(seed, "rllib"), _rlgym,
                     f"RLlib on RLGym, {_RUNNERS} runners of {_PEER_MATCHES} matches")  # fmt: skip


def rllib_growth(rounds: int) -> dict[str, Any]:
    """RLlib with two env runners, against one; the batch is the same."""
    return _compared(rounds, lambda seed: _trained(seed, "rllib"), lambda seed: _trained(seed, "rllib", 1),
                     "one env runner")  # fmt: skip


def _compared(rounds: int, ours: Any, theirs: Any, peer: str) -> dict[str, Any]:
    values, peers = zip(*[(ours(seed), theirs(seed)) for seed in range(rounds)], strict=True)
    return compared(values, peers, "agent steps/s of playing and learning", peer)


def _trained(seed: int, engine: str, runners: int = _RUNNERS) -> float:
    """Return agent steps a second of `python -m training`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = settings_of(folder, seed, _OURS)
        more = {"collectors": runners, "matches": settings.matches * settings.collectors // runners}
        file = folder / "settings.toml"
        file.write_text(settings_as_toml(dataclasses.replace(settings, **more)), encoding="utf-8")
        _run([sys.executable, "-m", "training", str(file), "--engine", engine, "--quiet"])
        with (folder / "run" / "progress.csv").open(newline="", encoding="utf-8") as table:
            return speed_of([(int(row["steps"]), float(row["seconds"])) for row in csv.DictReader(table)])


def _rlgym(seed: int) -> float:
    """Return agent steps a second of RLlib on RLGym."""
    with tempfile.TemporaryDirectory() as name:
        file, log = Path(name, "settings.json"), Path(name, "log")
        settings = dataclasses.asdict(settings_of(Path(name), seed, _THEIRS))
        settings |= {"runners": _RUNNERS, "matches": _PEER_MATCHES, "batch": BATCH, "iterations": 3 + _THEIRS}
        file.write_text(json.dumps(settings), encoding="utf-8")
        _run([sys.executable, "-m", "tools.benchmarks.rllib_peer", str(file), str(log)])
        return speed_of([json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()])


def _run(command: list[str]) -> None:
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(_ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
    done = run_to_end(command, cwd=_ROOT, env=env, seconds=_RUN_SECONDS)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
