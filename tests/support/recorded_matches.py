"""Matches of ours, played as fast as they go and recorded, for tests to read."""

import os
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any, Final

import pytest
import safetensors.numpy
from filelock import FileLock

from rlgym_bridge.cli import main
from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.policy.folder import ComponentSpec, load_policy, save_policy

POLICY: Final = str(Path(__file__).parents[2] / "bot" / "policy")
_FORMER: Final = str(Path(__file__).parents[2] / "lab" / "former-bot")
CHASER_AND_POLICY: Final[dict[str, Any]] = {"blue": "chaser", "orange": POLICY, "seconds": 6, "seed": 3}
"""Of `record`: the match that `chaser_and_policy` returns."""


def record(
    file: Path, *words: str, blue: str = POLICY, orange: str = "chaser", seconds: int = 8, seed: int = 0
) -> Path:
    """Play a match, 1v1 and without overtime, and return its recording; `words` are further options."""
    match = ["match", "--blue", blue, "--orange", orange, "--pace", "lockstep", "--max-overtime", "0", "-q"]
    ends = ["--seconds", str(seconds), "--seed", str(seed), "--record", str(file)]
    with chdir(file.parent):  # bots log there
        assert main([*match, *ends, *words]) == 0
    return file


def retimed(folder: Path, ticks: int) -> Path:
    """Write the shipped policy as one that decides every so many ticks."""
    shipped = load_policy(POLICY).manifest
    save_policy(
        folder,
        safetensors.numpy.load_file(Path(POLICY, "weights.safetensors")),
        distribution=shipped.distribution,
        team_sizes=shipped.team_sizes,
        obs=shipped.obs,
        parser=ComponentSpec.of(RepeatAction, ComponentSpec.of(LookupTableAction), repeats=ticks),
        selection="argmax",
        obs_normalisation=shipped.obs_normalisation,
        network=shipped.network,
    )
    return folder


def two_policies(factory: pytest.TempPathFactory) -> Path:
    """Return the recording of the former bot against itself in a perfect world, with a goal.

    The shipped one changes, and goals with it.
    """
    return once_a_run(
        factory,
        "two policies",
        lambda folder: record(
            folder / "match.mcap", "--sample", blue=_FORMER, orange=_FORMER, seconds=18, seed=3
        ),
    )


def chaser_and_policy(factory: pytest.TempPathFactory) -> Path:
    """Return the recording of Chaser against the shipped policy."""
    return once_a_run(
        factory, "chaser and policy", lambda folder: record(folder / "match.mcap", **CHASER_AND_POLICY)
    )


def once_a_run(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Path]) -> Path:
    """Return what `make` makes in an empty folder of this name, once for all workers of a run."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    made = base / f"{name}.made"
    with FileLock(base / f"{name}.lock"):
        if not made.is_file():
            (base / name).mkdir()
            made.write_text(str(make(base / name)))
    return Path(made.read_text())
