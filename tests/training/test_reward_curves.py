"""Curves of rewards and of play in progress.csv, TensorBoard and the terminal."""

import csv
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.runs.progress import COLUMNS, Progress
from rlgym_bridge.training.settings import TrainingSettings, check_settings
from tests.support.training_runs import SMALL, column

STANDARD = "rlgym_bridge.training.components"
BATCH = 8 * 14


def settings(out: Path, **changes: object) -> TrainingSettings:
    return check_settings(SMALL | {"out": str(out)} | changes)


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "progress.csv").open() as file:
        return list(csv.DictReader(file))


def trained(out: Path, capsys: pytest.CaptureFixture[str], **changes: object) -> list[str]:
    values = {"components": STANDARD, "steps": 2 * BATCH, "checkpoint_every": 10**6, "save": 3.0}
    main(settings(out, **values, **changes), quiet=False, rewards=True)
    return capsys.readouterr().err.splitlines()


def test_each_reward_is_in_the_table_the_board_and_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = trained(tmp_path, capsys)
    names = ("goal", "touch", "touch_strength", "save", "velocity_to_ball", "velocity_ball_to_goal")
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    for name in names:
        weight = getattr(TrainingSettings(save=3.0), name)
        given, raw = column(tmp_path, f"reward/{name}"), column(tmp_path, f"reward_raw/{name}")
        assert given == pytest.approx([weight * one for one in raw], rel=1e-5)
        shown = [event.value for event in board.Scalars(f"reward_share/{name}")]
        assert shown == pytest.approx(column(tmp_path, f"reward_share/{name}"), abs=1e-6)
    shares = [sum(float(row[f"reward_share/{name}"]) for name in names) for row in rows(tmp_path)]
    assert shares == pytest.approx([1, 1], abs=1e-5)
    (line,) = (one for one in said if one.startswith("rewards a step: "))
    first = column(tmp_path, "reward/velocity_to_ball")[0]
    assert f"velocity_to_ball {first:.4g} (" in line and all(f"{name} " in line for name in names)


def test_play_is_shown_for_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(tmp_path, capsys)
    assert 0 < column(tmp_path, "policy/boost")[0] <= 100
    assert 0 < column(tmp_path, "opponents/speed")[0] <= 2300
    events = ("touches", "flips", "shots", "saves", "goals")
    for side in ("policy", "opponents"):
        assert all(column(tmp_path, f"{side}/{event}_per_minute")[0] >= 0 for event in events)
    assert {"episode_seconds", "truncated_share"} <= set(rows(tmp_path)[0])


def report(progress: Progress, steps: int, **counts: float) -> None:
    given = {"episode_reward": 0.0, "finished_cars": 0.0, **counts}
    progress.report(steps, 1, given, dict.fromkeys(COLUMNS[COLUMNS.index("elo") :], 1.0))


def own(value: float) -> dict[str, float]:
    return {"metric/my, own": value, "metric_count/my, own": 1.0}


def values_of(out: Path, name: str) -> Sequence[float]:
    return [float(row[name]) for row in rows(out)]


def test_a_column_begins_with_the_first_line_that_has_it(tmp_path: Path) -> None:
    with Progress(settings(tmp_path), 0, quiet=True) as progress:
        report(progress, 1)
        report(progress, 2, **own(5))
        report(progress, 3)
    np.testing.assert_array_equal(values_of(tmp_path, "metrics/my__own"), [np.nan, 5, np.nan])
    with Progress(settings(tmp_path), 2, quiet=True) as progress:  # resumed from its second line
        report(progress, 3, **own(7))
    np.testing.assert_array_equal(values_of(tmp_path, "metrics/my__own"), [np.nan, 5, 7])
    assert values_of(tmp_path, "steps") == [1, 2, 3]
    assert [path.name for path in tmp_path.glob("progress*")] == ["progress.csv"]


def test_a_table_that_cannot_be_widened_ends_no_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with Progress(settings(tmp_path), 0, quiet=False) as progress:
        report(progress, 1)
        with monkeypatch.context() as patch:
            patch.setattr("rlgym_bridge.training.runs.progress.mend_table", refuse)
            for steps in (2, 3):
                report(progress, steps, **own(5))
        report(progress, 4, **own(6))
    said = [line for line in capsys.readouterr().err.splitlines() if "cannot be written" in line]
    assert len(said) == 1 and "No space left on device; training goes on" in said[0]
    assert values_of(tmp_path, "steps") == [1, 4]


def test_a_resumed_run_has_the_same_curves(tmp_path: Path) -> None:
    changes = {
        "components": STANDARD, "rollout_steps": 16, "steps": 8 * BATCH, "checkpoint_every": 4 * BATCH,
        "no_touch_seconds": 0.5,
    }  # fmt: skip
    whole = main(settings(tmp_path / "whole", **changes), quiet=True).checkpoint
    halfway = whole.with_name(str(4 * BATCH))
    shutil.copytree(halfway, tmp_path / "resumed" / "checkpoints" / halfway.name)
    main(settings(tmp_path / "resumed", **changes), resume=True, quiet=True)
    times = {"seconds", "steps_per_second", "collect_seconds", "learn_seconds"}
    for one, other in zip(rows(tmp_path / "whole")[2:], rows(tmp_path / "resumed"), strict=True):
        assert [one[name] for name in one if name not in times] == [
            other[name] for name in one if name not in times
        ]
