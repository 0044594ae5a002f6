"""The fixed ruler: checkpoints are rated beside training, on a scale that is the same in every run."""

import csv
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.training.evaluate import evaluate
from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.runs import ruler
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.runs.ruler import RULER_FILE, Ruler
from rlgym_bridge.training.settings import SettingsError, TrainingSettings
from tests.support.policy_folders import save
from tests.support.small_learners import learner_of
from tests.support.training_runs import BATCH, small_settings

STANDARD = {"components": "rlgym_bridge.training.components", "kickoff_share": 0.0}


def settings_of(out: Path, **changes: Any) -> TrainingSettings:
    return small_settings(out, **STANDARD | {"ruler_matches": 2} | changes)


def rows_of(out: Path) -> list[dict[str, float]]:
    with (out / "ruler-1v1" / RULER_FILE).open() as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def test_a_run_is_rated_beside_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ruler, "_SECONDS", 15.0)
    save(tmp_path / "old")
    out = tmp_path / "run"
    changes = {"ruler_every": 2 * BATCH, "checkpoint_every": 2 * BATCH, "ruler": [str(tmp_path / "old")]}
    newest = main(settings_of(out, steps=2 * BATCH, **changes)).checkpoint
    (row,) = rows_of(out)
    assert row["steps"] == int(newest.name)
    assert row["low"] < row["rating"] < row["high"]
    rates = [name for name in row if name.startswith("win_rate/")]
    assert len(rates) == 4  # Chaser, Charger, the one that presses at random, and the folder
    said = capfd.readouterr().err
    assert f"rating of {newest.name}: {row['rating']:.0f}" in said
    against = evaluate(str(newest), "chaser", 2, seconds=15.0, processes=1)
    assert against.win_rate < 0.5
    assert row[rates[0]] == against.win_rate
    # Nothing is played twice: with the next checkpoint the first one keeps its rating.
    main(settings_of(out, steps=4 * BATCH, **changes), resume=True, quiet=True)
    again = rows_of(out)
    assert len(again) == 2 and again[0] == row


def test_opponents_have_the_same_ratings_in_each_run(tmp_path: Path) -> None:
    books = []
    for number in (1, 2):
        learner = learner_of(tmp_path / str(number), False, seed=number, **STANDARD)
        learner.steps = 8
        folder = learner.save(Checkpoints(tmp_path / str(number), 1))
        settings = settings_of(tmp_path / str(number), ruler_every=1)
        one = Ruler(settings, [])
        job = folder, one._anchors, one._folder, 2, (), one._played | {"seconds": 5.0}
        assert ruler._rate(8, *job)["rating"] < 1000  # a beginner is below Chaser
        books.append(ruler.RatingBook.read(one._folder / ruler.BOOK).anchors)
    assert books[0] == books[1]
    assert [one.given for one in books[0]] == ["chaser", "charger", "random"]
    assert books[0][0].rating == 1000 and books[0][2].rating < 1000


def test_a_checkpoint_that_cannot_be_rated_is_told(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "run", ruler_every=10)
    one = Ruler(settings, [])
    (tmp_path / "run" / "checkpoints" / "20").mkdir(parents=True)
    one.offer(tmp_path / "run" / "checkpoints" / "20")
    found = one.take(wait=True)
    assert isinstance(found, str) and "checkpoint 20 is not rated: " in found and "policy.json" in found
    assert one.take() is None
    one.close()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tick_skip": 4}, "decide every 8 ticks; expected such a run, or ruler_every = 0"),
        ({"team_sizes": [1, 0], "snapshot_share": 0.0}, "in teams of equal size"),
        ({"ruler": ["nobody"]}, r"ruler is \['nobody'\]: .*nobody"),
        ({"ruler_matches": 3}, "ruler_matches is 3, expected"),
    ],
)
def test_wrong_settings_of_the_ruler(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=message):
        Ruler(settings_of(tmp_path / "run", **{"ruler_every": 10} | changes), [])


def test_a_rating_under_way_ends_with_the_run(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "run", ruler_every=1, ruler_matches=10_000)
    learner = learner_of(tmp_path / "run", False, **STANDARD)
    learner.steps = 8
    one = Ruler(settings, [])
    one.offer(learner.save(Checkpoints(tmp_path / "run", 1)))
    process = one._process
    assert process.is_alive() and one.take() is None
    one.close()
    assert not process.is_alive()
