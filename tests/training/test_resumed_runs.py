"""A run that goes on from a checkpoint becomes the run that was never interrupted, to the bit."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.components.relative_obs import TeamObs
from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.profile_training import profile_training
from rlgym_bridge.training.settings import TrainingSettings, check_settings, settings_as_toml
from tests.support.policy_folders import random_weights, save, spec
from tests.support.processes import child
from tests.support.small_learners import assert_same_learners, learner_of, train_in_two_ways
from tests.support.training_runs import BATCH, SMALL, column, small_settings, stand_in

MASKED = """
from rlgym_bridge.training.components import obs
del make_env
def parser(settings):
    return ComponentSpec.of(RepeatAction, ComponentSpec.of(LookupTableAction, masked=True), repeats=8)
"""
MEMORY = {"network": "gru", "sequence_length": 4, "value_clip": 0.1, "target_kl": 0.05}
LEARNING = {"normalise_obs": True, "standardize_returns": True, "critic_learning_rate": 1e-3}
SCENE = {"kickoff_share": 0.0, "no_touch_seconds": 0.5, "components": "rlgym_bridge.training.components"}


def settings_of(kinds: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainingSettings:
    """Return settings of a run with some of memory, masks and a teacher: four batches, two checkpoints."""
    changes: dict[str, Any] = SMALL | SCENE
    if "memory" in kinds:
        changes |= MEMORY | LEARNING
    if "masks" in kinds:
        changes["components"] = stand_in(tmp_path, monkeypatch, MASKED)
    if "teacher" in kinds:
        save(tmp_path / "old", obs=spec(TeamObs), weights=random_weights(222, 32, 90))
        changes |= {"teacher": str(tmp_path / "old"), "teacher_steps": 100_000}
    size = learner_of(tmp_path / "size", False, **changes).steps_of_iteration(1)
    return check_settings(changes | {"overlap": True, "steps": 4 * size, "checkpoint_every": 2 * size})


def test_an_overlapping_run_goes_on_to_the_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of({"memory", "masks", "teacher"}, tmp_path, monkeypatch)
    assert_same_learners(*train_in_two_ways(settings, tmp_path))
    for curve in ("epochs_taken", "entropy", "teacher_kl"):
        assert len(column(tmp_path / "resumed", curve)) == 2


def test_a_resumed_run_keeps_its_batch_where_none_is_set(tmp_path: Path) -> None:
    whole = small_settings(tmp_path / "whole", steps=4 * BATCH, checkpoint_every=2 * BATCH)
    begun = replace(whole, out=str(tmp_path / "begun"), steps=2 * BATCH)
    main(begun, quiet=True)
    unset = replace(begun, matches=0, minibatch=0, steps=whole.steps)  # of itself a machine would take others
    assert profile_training(unset, 1, resume=True).steps == BATCH
    assert_same_learners(main(whole, quiet=True).checkpoint, main(unset, resume=True, quiet=True).checkpoint)


@pytest.mark.slow
def test_a_run_killed_in_an_iteration_goes_on_to_the_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, endless = tmp_path / "killed", settings_of({"memory"}, tmp_path, monkeypatch)
    every = 4 * endless.checkpoint_every
    endless = replace(endless, checkpoint_every=every, steps=1000 * every, out=str(out))
    (file := tmp_path / "my.toml").write_text(settings_as_toml(endless), encoding="utf-8")
    with child([sys.executable, "-m", "training", file, "--quiet"]) as process:
        while True:
            rows = column(out, "steps") if (out / "progress.csv").is_file() else []
            if rows and rows[-1] > every and rows[-1] % every:
                break  # a checkpoint is behind, and the next iteration is being played and learned from
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.wait(30)
    last = int(column(out, "steps")[-1])
    steps = (last // every + 2) * every
    resumed = main(replace(endless, steps=steps), resume=True, quiet=True).checkpoint
    whole = main(replace(endless, steps=steps, out=str(tmp_path / "whole")), quiet=True).checkpoint
    assert_same_learners(whole, resumed)
    assert column(out, "steps") == column(tmp_path / "whole", "steps")
    assert column(out, "entropy") == column(tmp_path / "whole", "entropy")
