"""Check training on a machine with a GPU: `python -m tools.benchmarks.device_check [--seconds 330]`.

Prints one line of JSON a check as soon as it is done: agent steps a second and what limits them, for 1v1 and
3v3, with plain and recorded gradient steps and with larger minibatches; whether recorded steps learn what
plain ones learn; and whether a resumed run with `overlap` equals one that was never interrupted. Each check
is a process of its own. Those that do not fit into the time are named and left out. It needs numpy, torch and
the packages that training needs, and none that tests need.
"""

import argparse
import dataclasses
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import torch

from rlgym_bridge.training import profile_training as profiling
from rlgym_bridge.training.collector import rollout_layout
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import batch_of, improve, main
from rlgym_bridge.training.rollouts import CollectedSteps
from rlgym_bridge.training.settings import TrainingSettings, check_settings
from tests.support.processes import run_to_end

_LARGE: Final = {"minibatch": 32_768, "matches": 128}
SPEEDS: Final[Mapping[str, tuple[Mapping[str, Any], bool]]] = {
    "1v1": ({}, True),
    "1v1, plain steps": ({}, False),
    "1v1, minibatch 32768": (_LARGE, True),
    "3v3": ({"team_sizes": [3, 3]}, True),
    "3v3, minibatch 32768": ({"team_sizes": [3, 3], **_LARGE}, True),
    "1v1, in turns": ({"overlap": False}, True),
}
"""Settings beside the defaults, and whether gradient steps are recorded where the device can do that."""

_LONGEST: Final = 100.0  # s of one check
_REPEATS: Final = 12  # gradient steps, of which all but the first few are recorded


def measure_speed(name: str, given: Mapping[str, Any], iterations: int) -> dict[str, Any]:
    """Return what `--profile` finds with the settings of one of `SPEEDS`."""
    changes, recorded = SPEEDS[name]
    settings = check_settings({"overlap": True, **changes, **given})
    make = PPOLearner if recorded else _without_recording
    with patch.object(profiling, "PPOLearner", make):
        found = profiling.profile_training(settings, iterations).to_json()
    shown = "collectors", "agent_steps", "agent_steps_per_second", "seconds", "held_back", "learner_parts"
    parts = {part: round(1e3 * one["seconds"], 1) for part, one in found["parts"].items()}
    return {**{key: found[key] for key in shown}, "milliseconds": parts}


def compare_steps(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return how far recorded gradient steps lead from plain ones: the greatest difference of a weight."""
    settings = check_settings({"snapshot_share": 0.0, "collectors": 1, **given})
    ends = []
    for make in (PPOLearner, _without_recording):
        learner = make(settings)
        for _ in range(_REPEATS):
            improve(learner, batch_of(learner, CollectedSteps.of(learner, made_up_rollouts(learner, 1))))
        ends.append(learner.packed())
    return {"recorded": learner.device.type == "cuda", "equal": bool((ends[0] == ends[1]).all()),
            "difference": float(np.abs(ends[0] - ends[1]).max())}  # fmt: skip


def resume(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether a run that goes on from its first checkpoint ends with the weights of the whole run."""
    few = {"matches": 16, "rollout_steps": 16, "minibatch": 512, "overlap": True, "normalise_obs": True}
    with tempfile.TemporaryDirectory() as folder:
        whole, again = Path(folder, "whole"), Path(folder, "again")
        settings = check_settings({**few, "out": str(whole), **given})
        learner = PPOLearner(settings)
        batch = learner.steps_of_iteration(settings.collectors or profiling.count_usable_cores())
        settings = dataclasses.replace(settings, steps=6 * batch, checkpoint_every=3 * batch)
        end = main(settings, quiet=True).checkpoint
        first = end.with_name(str(3 * batch))
        shutil.copytree(first, again / "checkpoints" / first.name)
        resumed = main(dataclasses.replace(settings, out=str(again)), resume=True, quiet=True).checkpoint
        weights = [(one / "weights.safetensors").read_bytes() for one in (end, resumed)]
    return {"equal": weights[0] == weights[1], "agent_steps": 6 * batch}


def _without_recording(settings: TrainingSettings) -> PPOLearner:
    """Return a learner whose gradient steps are launched operation by operation."""
    learner = PPOLearner(settings)
    learner.recorded = None
    learner.set_learning_rates()
    return learner


def made_up_rollouts(learner: PPOLearner, collectors: int) -> dict[str, np.ndarray]:
    """Return rollouts `(collectors, steps, cars, ...)` that nobody played, see `rollout_layout`."""
    rng = np.random.default_rng(learner.steps)
    layout = rollout_layout(learner.settings, collectors, learner.shape)
    rollouts = {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}
    rollouts["obs"][:] = rng.normal(size=rollouts["obs"].shape)
    rollouts["rewards"][:] = rng.normal(size=rollouts["rewards"].shape)
    rollouts["actions"][:] = rng.integers(90, size=rollouts["actions"].shape)
    rollouts["log_probs"][:] = -math.log(90)  # about what a new policy has
    return rollouts


def _checks(given: Mapping[str, Any], iterations: int) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return all checks by name, those first that matter most."""
    checks: dict[str, Callable[[], dict[str, Any]]] = {
        name: lambda name=name: measure_speed(name, given, iterations)  # type: ignore[misc]
        for name in SPEEDS
    }
    return {
        "1v1": checks.pop("1v1"),
        "recorded steps": lambda: compare_steps(given),
        "resume": lambda: resume(given),
        **checks,
    }


def main_of_all(options: argparse.Namespace) -> int:
    """Run every check in a process of its own, and return the exit code: 1 where one failed."""
    began, failed = time.monotonic(), False
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    print(json.dumps({"device": device, "torch": torch.__version__}), flush=True)
    for name in _checks({}, 1):
        left = began + options.seconds - time.monotonic()
        if left < 1:
            print(json.dumps({"check": name, "left out": "the time is over"}), flush=True)
            continue
        command = [sys.executable, "-m", __spec__.name, "--only", name]
        command += ["--iterations", str(options.iterations)]
        try:
            limit = min(left, _LONGEST)
            shown = {"stdout": None, "stderr": None}
            done = run_to_end([*command, "--given", options.given], seconds=limit, **shown)
            failed |= done.returncode != 0
        except subprocess.TimeoutExpired:
            print(json.dumps({"check": name, "left out": f"it takes more than {limit:.0f} s"}), flush=True)
    return int(failed)


def main_of_one(options: argparse.Namespace) -> int:
    """Run one check, and print what it found."""
    began = time.monotonic()
    found = _checks(json.loads(options.given), options.iterations)[options.only]()
    print(
        json.dumps({"check": options.only, **found, "took": round(time.monotonic() - began, 1)}), flush=True
    )
    return int(found.get("equal") is False and options.only == "resume")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=330.0, help="in which all checks have to end")
    parser.add_argument("--iterations", type=int, default=8, help="timed ones of each speed")
    parser.add_argument("--given", default="{}", help="settings for all checks, as JSON")
    parser.add_argument("--only", choices=list(_checks({}, 1)), help="run one check, in this process")
    chosen = parser.parse_args()
    sys.exit(main_of_all(chosen) if chosen.only is None else main_of_one(chosen))
