"""Change files of settings while a run goes on."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlgym_bridge.cli import run_command
from rlgym_bridge.training import ppo
from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.runs.curve_files import add_changes, forget_changes, read_changes
from rlgym_bridge.training.settings import SettingsError, TrainingSettings
from tests.support.policy_folders import make_module
from tests.support.small_learners import learner_of
from tests.support.training_runs import BATCH, column, small_settings, stand_in

STANDARD = "rlgym_bridge.training.components"
BEFORE = {"steps": 8 * BATCH, "checkpoint_every": 4 * BATCH, "components": STANDARD, "speed": 1.0}


def settings(out: Path, **changes: Any) -> TrainingSettings:
    return small_settings(out, **BEFORE | changes)


def files(*versions: TrainingSettings | SettingsError) -> Callable[[], TrainingSettings]:
    """Return a reader of files that somebody saves again after each look at them."""
    left = list(versions)

    def read() -> TrainingSettings:
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, SettingsError):
            raise found
        return found

    return read


def trained(out: Path, after: Any, capsys: pytest.CaptureFixture[str], **before: Any) -> list[str]:
    """Train with files that are others at the first checkpoint; return what was said."""
    first = settings(out, **before)
    second = after if isinstance(after, SettingsError) else settings(out, **{**before, **after})
    main(first, read_again=files(first, second))
    return [line for line in capsys.readouterr().err.splitlines() if "changed" in line or "goes on" in line]


NEW: dict[str, Any] = {"speed": -3.0, "learning_rate": 1e-3, "learning_rate_schedule": "linear"}


def test_a_change_acts_as_a_resumed_run_with_it_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path / "changed", NEW, capsys)
    changed = tmp_path / "changed" / "checkpoints"
    shutil.copytree(changed / str(4 * BATCH), tmp_path / "resumed" / "checkpoints" / str(4 * BATCH))
    resumed = main(settings(tmp_path / "resumed", **NEW), resume=True, quiet=True).checkpoint
    main(settings(tmp_path / "plain"), quiet=True)
    weights = [
        (run / str(8 * BATCH) / "weights.safetensors").read_bytes()
        for run in (changed, resumed.parent, tmp_path / "plain" / "checkpoints")
    ]
    assert weights[0] == weights[1] != weights[2]
    raw, given = (column(tmp_path / "changed", name) for name in ("reward_raw/speed", "reward/speed"))
    ratios = [one / other for one, other in zip(given, raw, strict=True)]
    assert ratios == pytest.approx([1] * 4 + [-3] * 4, 1e-5)
    assert column(tmp_path / "changed", "learning_rate")[3:6] == pytest.approx([5e-4, 5e-4, 3.75e-4])


def test_a_change_is_said_kept_and_marked_if_it_can_be_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = trained(tmp_path, {"gamma": 0.9, "speed": 2.0, "matches": 16}, capsys)
    later = "it acts once the run is stopped and goes on (--resume)"
    assert said == [
        f"not changed: matches 8 -> 16; {later}", f"not changed: gamma 0.993 -> 0.9; {later}",
        "changed: speed 1.0 -> 2.0",
    ]  # fmt: skip
    assert read_changes(tmp_path) == [(4 * BATCH, "speed 1.0 -> 2.0")]
    (event,) = EventAccumulator(str(tmp_path / "tensorboard")).Reload().Tensors("changed/text_summary")
    assert event.step == 4 * BATCH and event.tensor_proto.string_val == [b"speed 1.0 -> 2.0"]


def test_what_a_resumed_run_changes_is_kept_too(tmp_path: Path) -> None:
    main(settings(tmp_path), quiet=True)
    changes = {"gamma": 0.9, "steps": 9 * BATCH}
    main(settings(tmp_path, **changes), resume=True, quiet=True)
    assert {text.split()[0] for _, text in read_changes(tmp_path)} == {"gamma", "steps"}
    assert {steps for steps, _ in read_changes(tmp_path)} == {8 * BATCH}


def test_changes_after_the_checkpoint_are_forgotten(tmp_path: Path) -> None:
    for steps in (100, 200, 300):
        add_changes(tmp_path, steps, {"my": "{'a, b': 1} -> {}"})
    (tmp_path / "changes.csv").open("a").write("dam")
    forget_changes(tmp_path, 200)
    assert read_changes(tmp_path) == [(100, "my {'a, b': 1} -> {}")]
    forget_changes(tmp_path / "none", 0)
    assert not (tmp_path / "none").exists()


def test_files_that_are_damaged_meanwhile_end_no_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = SettingsError("my.toml: goal is 'x', expected a number")
    said = trained(tmp_path, error, capsys, checkpoint_every=2 * BATCH)
    assert said == [f"{error}; training goes on with the settings before"]
    assert column(tmp_path, "steps")[-1] == 8 * BATCH


OWN = """
from rlgym_bridge.components.rewards import *
from rlgym_bridge.training.components import obs as standard_obs
from rlgym_bridge import ComponentSpec, RelativeObs

def obs(settings):
    return ComponentSpec.of(RelativeObs, zero_padding=None, pos_coef=settings.my["coef"])

def reward(settings):
    return WeightedSum([(SpeedReward(), settings.my["speed"])])
"""


def test_numbers_of_ones_own_change_but_not_the_observation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_module(tmp_path, monkeypatch, "live_parts", OWN)
    own = {"components": "live_parts", "speed": 0.0, "my": {"speed": 1.0, "coef": 0.5}}
    trained(tmp_path / "speed", {"my": {"speed": 2.0, "coef": 0.5}}, capsys, **own)
    given, raw = (column(tmp_path / "speed", name)[-1] for name in ("reward/speed", "reward_raw/speed"))
    assert given == pytest.approx(2 * raw, rel=1e-5)
    for my, why in (
        ({"speed": 1.0, "coef": 0.6}, "the observation or the parser of live_parts would be another one"),
        ({"speed": "fast", "coef": 0.5}, "the components of live_parts do not fit: TypeError: must be real"),
    ):
        (said,) = trained(tmp_path / str(my["speed"]), {"my": my}, capsys, **own)
        assert said.startswith(f"not changed: my: {why}")
        assert said.endswith("; training goes on with the settings before")


def test_a_change_that_makes_no_matches_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "def make_env(settings, matches): return MarkEnv(matches, settings.cars // settings.my.get('by', 1))"
    )
    learner = learner_of(tmp_path, False, components=stand_in(tmp_path, monkeypatch, text))
    before = learner.settings
    with pytest.raises(SettingsError, match=r"do not fit: ZeroDivisionError: .* \(.*py, line \d+\)"):
        learner.renew(replace(before, my={"by": 0}))
    assert learner.settings is before


def test_a_changed_weight_that_nobody_reads_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_module(tmp_path, monkeypatch, "deaf_parts", OWN)
    own = {"components": "deaf_parts", "speed": 0.0, "my": {"speed": 1.0, "coef": 0.5}}
    changed = (settings(tmp_path, **own, save=one) for one in (0.0, 2.0))
    main(settings(tmp_path, **own), read_again=files(*changed))
    said = capsys.readouterr().err.splitlines()
    place = said.index("changed: save 0.0 -> 2.0")
    assert said[place + 1] == "without effect: save = 2.0: the reward of deaf_parts does not read it"


def test_the_command_reads_its_files_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []

    def note(*given: Any) -> Any:
        taken.append(given[-1])
        raise RuntimeError("that was enough")

    monkeypatch.setattr(ppo, "main", note)
    file = tmp_path / "own.toml"
    file.write_text("goal = 4.0\n")
    run_command("train", [str(file), "--out", str(tmp_path / "run"), "--steps", "100"])
    (read,) = taken
    assert (read().goal, read().steps) == (4.0, 100)
    file.write_text("goal = 5.0\n")
    assert (read().goal, read().steps) == (5.0, 100)
    file.write_text("goal = [\n")
    with pytest.raises(SettingsError, match=r"own\.toml"):
        read()
