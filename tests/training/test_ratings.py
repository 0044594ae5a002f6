"""Ratings of checkpoints against anchors: Elo, its noise, what is kept, and what is refused."""

import csv
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.cli import run_command
from rlgym_bridge.training.contests.kept_matches import FILE, MatchKey, ServedResult
from rlgym_bridge.training.contests.ratings import (
    BOOK,
    Anchor,
    RatingBook,
    describe_ratings,
    rate_checkpoints,
    spread_evenly,
    summarise_ratings,
)
from rlgym_bridge.training.elo import rate_by_scores, rate_together
from rlgym_bridge.training.evaluate import evaluate
from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.runs import ruler
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.runs.ruler import RULER_FILE, Ruler
from rlgym_bridge.training.settings import SettingsError, TrainingSettings
from tests.support.policy_folders import OBS_1V1, random_weights, save
from tests.support.small_learners import learner_of
from tests.support.training_runs import BATCH, small_settings


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlgym_bridge.training.contests.kept_matches.open_pool", ThreadPoolExecutor)


def save_checkpoint(run: Path, steps: int) -> None:
    save(run / "checkpoints" / str(steps), weights=random_weights(OBS_1V1, 8, 90, seed=steps))


def rate(run: Path, *more: str) -> dict[str, Any]:
    """Rate a run by two matches of a second for each pair."""
    result = run / "result.json"
    words = [str(run), "--matches", "2", "--seconds", "1", "--quiet", "--json", str(result), *more]
    assert run_command("ratings", words) == 0
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def won_by(one: str, other: str, won: int, of: int) -> dict[MatchKey, ServedResult]:
    """Return matches of two players, each different, of which the first wins some, from both sides."""
    results = {}
    for number in range(of):
        goals = (1, 0) if (number < won) != (number % 2 == 1) else (0, 1)
        results[one, other, number] = ServedResult(goals, (0, 0), 7200 + number)
    return results


def test_ten_wins_for_each_loss_are_400_points() -> None:
    assert rate_by_scores([(1000, 10 / 11, 10**6)]).rating == pytest.approx(1400, abs=0.1)
    assert rate_by_scores([(1000, 0.5, 40)]).rating == pytest.approx(1000)
    both = rate_by_scores([(1000, 10 / 11, 10**6), (1800, 1 / 11, 10**6)])
    assert both.rating == pytest.approx(1400, abs=0.1)


def test_intervals_shrink_with_matches_and_stay_finite() -> None:
    few, many = (rate_by_scores([(0, 0.5, count)]).deviation for count in (99, 399))
    assert few == pytest.approx(2 * many) and few == pytest.approx(34.7, abs=0.1)
    lost = rate_by_scores([(1000, 0.0, 100)])
    assert -100 < lost.rating < 100 and lost.interval[1] - lost.interval[0] > 500


def test_a_league_is_rated_whatever_the_order_of_its_matches() -> None:
    outcomes = [("A", "B", 1)] * 300 + [("B", "A", 2)] * 100 + [("B", "C", 0)] * 400
    a, b, c, nobody = rate_together("ABCD", outcomes)
    assert a.rating - b.rating == pytest.approx(190.8, abs=2) and b.rating == pytest.approx(c.rating, abs=2)
    assert sum(one.rating for one in (a, b, c, nobody)) == pytest.approx(4000)
    assert a.deviation < 150 < nobody.deviation < 400
    again = rate_together("ABCD", outcomes[::-1])
    assert [one.rating for one in again] == pytest.approx([one.rating for one in (a, b, c, nobody)])


def test_checkpoints_are_rated_with_the_noise_of_copies() -> None:
    anchors = [CHASER, Anchor("a", "Old", "old", 1200, 20)]
    book = RatingBook(anchors, {"900": "y", "5000": "x", "7000": "not played"})
    results = won_by("x", "chaser", 30, 40) | won_by("y", "chaser", 40, 40) | won_by("x", "x", 25, 40)
    weak, strong = (rate_checkpoints(book, results)[place] for place in (1, 0))
    assert weak.name == "5000" and weak.elo.rating == pytest.approx(1185.2, abs=0.1)
    assert strong.name == "900" and strong.elo.rating > 1700 and strong.noise is None
    assert weak.noise is not None and weak.noise.rating == pytest.approx(86.5, abs=0.1)
    both = rate_checkpoints(book, results | won_by("x", "a", 20, 40))[1]  # an anchor that is named later
    assert weak.elo.rating < both.elo.rating < 1200 and both.elo.deviation < weak.elo.deviation
    summary = summarise_ratings([strong, weak], anchors)
    assert summary["noise"] == pytest.approx(86.5, abs=0.1)
    against = summary["checkpoints"][1]["against"][0]
    assert (against["won"], against["lost"], against["different"]) == (30, 10, 40)


CHASER = Anchor("chaser", "Chaser", "chaser", 1000, 0)
REPEATED = {("x", "chaser", number): ServedResult((1, 0)) for number in range(0, 40, 2)}
ENOUGH = "about 50 matches with each anchor (--matches 50) bring that to 100"


def described(results: dict[MatchKey, ServedResult]) -> str:
    rated = rate_checkpoints(RatingBook([CHASER], {"900": "x"}), results)
    return "\n".join(describe_ratings(rated, [CHASER]))


@pytest.mark.parametrize(
    ("results", "said"),
    [
        (REPEATED, ["anchors are too weak for 900", "anchors hardly help", "1 of 20 matches against anchor"]),
        (
            won_by("x", "chaser", 0, 40),
            ["too strong for 900", "--anchors chaser random", "be off by 484 points"],
        ),
        (won_by("x", "chaser", 10, 20), [f"may be off by 149 points, so it tells little: {ENOUGH}"]),
        (won_by("x", "chaser", 2, 4) | won_by("x", "x", 2, 4), ["noise: copies of a version ended level"]),
    ],
)
def test_what_a_rating_does_not_tell_is_said(results: dict[MatchKey, ServedResult], said: list[str]) -> None:
    lines = described(results)
    assert all(part in lines for part in said), lines
    assert "may be off" not in described(won_by("x", "chaser", 25, 50))  # as many as were advised


def test_repeated_matches_count_once() -> None:
    same, different = (
        rate_checkpoints(RatingBook([CHASER], {"900": "x"}), results)[0].elo.rating
        for results in (REPEATED, won_by("x", "chaser", 20, 20))
    )
    assert same < different


def test_later_only_newer_checkpoints_play_and_ratings_stay(tmp_path: Path) -> None:
    run, old = tmp_path / "run", tmp_path / "old"
    save_checkpoint(run, 100)
    first = rate(run)
    assert first["anchors"] == [{"name": "Chaser", "player": "chaser", "rating": 1000, "deviation": 0}]
    folder = run / "ratings-1v1"
    kept = (folder / FILE).read_text().splitlines()
    assert len(kept) == 1 + 2 * 2  # settings; a checkpoint against Chaser and itself
    assert all((folder / name).stat().st_size > 100 for name in ("ratings.png", "ratings.txt"))
    save(old, weights=random_weights(OBS_1V1, 8, 90))
    save_checkpoint(run, 200)
    shutil.rmtree(run / "checkpoints" / "100")  # as a run does that keeps only some
    second = rate(run, "--anchors", "chaser", str(old))
    lines = (folder / FILE).read_text().splitlines()
    assert lines[: len(kept)] == kept and len(lines) == len(kept) + 2 * (1 + 3)  # old; 200
    assert second["checkpoints"][0] == first["checkpoints"][0] and second["anchors"][0] == first["anchors"][0]
    assert second["anchors"][1]["name"] == "old" and second["anchors"][1]["deviation"] > 50
    assert [one["name"] for one in second["checkpoints"]] == ["100", "200"]
    assert rate(run) == second  # with the anchors of the time before, and nothing to play
    assert (folder / FILE).read_text().splitlines() == lines


@pytest.mark.parametrize(
    ("anchors", "message"),
    [
        (["run"], "'run', expected policy folders, chaser, charger or random: an anchor stays as it is"),
        (["other"], "--anchors names none of those that have a rating (chaser)"),
        (["nowhere"], "nowhere"),
    ],
)
def test_anchors_that_rate_nothing_are_refused(
    anchors: list[str], message: str, tmp_path: Path, refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    save_checkpoint(Path("run"), 100)
    save(Path("other"))
    Path("run/ratings-1v1").mkdir()
    RatingBook([CHASER], {}).write(Path("run/ratings-1v1", BOOK))
    assert message in refused("ratings", "run", "--anchors", *anchors)


def test_what_has_changed_since_it_was_rated_is_refused(tmp_path: Path, refused) -> None:
    run, old = tmp_path / "run", tmp_path / "old"
    save_checkpoint(run, 100)
    save(old)
    book = RatingBook([Anchor("0a1b2c", "old", str(old), 1000, 0)], {"100": "0a1b2c"})
    (run / "ratings-1v1").mkdir()
    book.write(run / "ratings-1v1" / BOOK)
    assert "the run was begun anew" in refused("ratings", run)
    book.checkpoints.clear()
    book.write(run / "ratings-1v1" / BOOK)
    said = refused("ratings", run)
    assert "the anchor" in said and "has other weights than when it was rated" in said
    assert "has no checkpoints" in refused("ratings", tmp_path / "old")


def test_checkpoints_are_spread_from_the_first_to_the_last() -> None:
    every = [Path(str(steps)) for steps in range(1, 12)]
    assert [one.name for one in spread_evenly(every, 3)] == ["1", "6", "11"]
    assert [one.name for one in spread_evenly(every, 1)] == ["11"]
    assert spread_evenly(every[:2], 3) == every[:2]


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
