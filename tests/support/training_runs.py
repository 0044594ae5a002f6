"""Short trainings of the game with known returns, and what they wrote."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.training.settings import TrainingSettings, check_settings
from tests.support.policy_folders import make_module

SMALL = {
    "components": "tests.support.mark_game",
    "collectors": 1,
    "matches": 8,
    "rollout_steps": 8,
    "snapshot_share": 0.25,  # of 16 seats 2 are a snapshot's
    "policy_layers": [16],
    "critic_layers": [16],
    "minibatch": 64,
    "threads": 1,
}


def column(out: Path, name: str) -> list[float]:
    with (out / "progress.csv").open() as file:
        return [float(row[name]) for row in csv.DictReader(file)]


BATCH = 8 * 14
"""Agent steps of an iteration with `SMALL`."""


def small_settings(out: Path, **changes: Any) -> TrainingSettings:
    return check_settings(SMALL | {"out": str(out)} | changes)


SEVERAL = "def parser(settings): return ComponentSpec.of(RepeatAction, ComponentSpec.of({}), repeats=8)"
"""Text of a module for `stand_in`, with a parser in the place of the brackets."""


def forget_checksum(checkpoint: Path) -> None:
    """Make a checkpoint one of an earlier version, which records no checksum of the learner's state."""
    file = checkpoint / "policy.json"
    manifest = json.loads(file.read_text())
    del manifest["training"]["state_sha256"]
    file.write_text(json.dumps(manifest))


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    """Make a module that is the stand-in but for `text`, and return its name."""
    name = f"changed_{abs(hash((tmp_path, text)))}"
    make_module(tmp_path, monkeypatch, name, f"{IMPORTS}{text}\n")
    return name


IMPORTS = """
import numpy as np
from tests.support import mark_game as stand_in
from tests.support.mark_game import *
from rlgym_bridge.components.actions import *
"""
