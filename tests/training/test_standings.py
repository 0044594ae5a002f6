"""Entries of a league, its results on disk, and its standings."""

from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.server import ConfigError
from rlgym_bridge.training.contests.entrant import read_entrants
from rlgym_bridge.training.contests.kept_matches import FILE, KeptMatches, ServedResult, seen_by_first
from rlgym_bridge.training.league import pairs_of, rank
from tests.support.policy_folders import save

SETTINGS = {"seconds": 60.0, "entries": [{"name": "A", "path": "a"}, {"name": "B", "path": "b"}]}


def result(first: int, second: int, ticks: int = 7200, **more: object) -> ServedResult:
    return ServedResult((first, second), (9, 9), ticks, **more)  # type: ignore[arg-type]


# --- kept results ----------------------------------------------------------------------------


def test_results_are_there_again_in_another_process(tmp_path: Path) -> None:
    kept = KeptMatches(tmp_path / FILE, SETTINGS)
    results = {("A", "B", 0): result(2, 1), ("A", "A", 3): result(0, 0, forfeits=("it left", ""))}
    for key, its in results.items():
        kept.add({key: its})
    assert KeptMatches(tmp_path / FILE, SETTINGS).results == results
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seconds": 30.0}, "seconds is 60.0 there and 30.0 here"),
        ({"entries": SETTINGS["entries"][:1]}, "entries are 2 there and 1 here"),  # type: ignore[index]
        (
            {"entries": [{"name": "A", "path": "a"}, {"name": "B", "path": "c"}]},
            "entries 2 has path 'b' there and 'c' here",
        ),
    ],
)
def test_results_of_another_league_are_refused(
    changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    KeptMatches(tmp_path / FILE, SETTINGS).add({("A", "B", 0): result(1, 0)})
    before = (tmp_path / FILE).read_text()
    with pytest.raises(ConfigError, match=message):
        KeptMatches(tmp_path / FILE, SETTINGS | changes)
    assert (tmp_path / FILE).read_text() == before


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[1]",
        '{"match": ["A"]}',
        '{"match": ["A", "B", 1], "goals": [1]}',
        '{"match": ["A", "B", 1e999]}',
    ],
)
def test_a_line_that_is_no_result_is_named(line: str, tmp_path: Path) -> None:
    KeptMatches(tmp_path / FILE, SETTINGS)
    with (tmp_path / FILE).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ConfigError, match="line 2, is no result of a match"):
        KeptMatches(tmp_path / FILE, SETTINGS)


def test_a_league_of_many_forfeits_goes_on(tmp_path: Path) -> None:
    kept = KeptMatches(tmp_path / FILE, SETTINGS)
    kept.add({("A", "B", number): result(0, 0, forfeits=("x" * 8192, "")) for number in range(600)})
    assert len(KeptMatches(tmp_path / FILE, SETTINGS).results) == 600


@pytest.mark.parametrize("count", ["0", "3", "-2", "10002", "100000000"])
def test_matches_are_as_many_as_can_be_played_from_both_sides(count: str, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["league", "chaser", "chaser", f"--matches={count}"])
    assert f"--matches: {count}, expected an even number from 2 to 10,000" in capsys.readouterr().err


# --- standings -------------------------------------------------------------------------------


def test_the_first_entry_plays_orange_in_every_second_match() -> None:
    as_blue, as_orange = (seen_by_first(("A", "B", number), result(3, 1)) for number in (0, 1))
    assert (as_blue.goals, as_blue.lead) == ((3, 1), 2)
    assert (as_orange.goals, as_orange.lead) == ((1, 3), -2)


def test_a_forfeit_loses_whatever_the_score_is() -> None:
    left = result(5, 0, forfeits=("it left", ""))
    assert [seen_by_first(("A", "B", number), left).lead for number in (0, 1)] == [-1, 1]
    both = result(5, 0, forfeits=("it left", "it left"))
    assert seen_by_first(("A", "B", 0), both).lead == 0


def test_who_wins_more_is_rated_higher() -> None:
    matches = []
    for number in range(60):
        b_wins = result(0, 1) if number % 2 == 0 else result(1, 0)
        matches += [
            seen_by_first(("A", "B", number), b_wins),
            seen_by_first(("B", "C", number), result(1, 1)),
        ]
        matches += [seen_by_first(("C", "C", number), result(1, 0))]
    best, middle, last = rank(["A", "B", "C"], matches)
    assert [one.name for one in (best, middle, last)] == ["B", "C", "A"]
    assert best.rating.interval[0] > last.rating.interval[1]
    assert best.against_itself is None and middle.against_itself is not None
    assert middle.against_itself.results == (30, 0, 30)  # its first copy is blue in every second match
    pairs = pairs_of([best, middle, last], matches)
    assert [(names, found.results, different) for names, (found, different) in pairs.items()] == [
        (("B", "C"), (0, 60, 0), 1), (("B", "A"), (60, 0, 0), 1)
    ]  # fmt: skip


# --- entries ---------------------------------------------------------------------------------


def test_equal_names_have_numbers_and_choices_are_named(tmp_path: Path) -> None:
    save(tmp_path / "mine")
    mine = str(tmp_path / "mine")
    entrants = read_entrants([mine, "chaser", f"{mine}:sample", mine], team_size=1)
    assert [one.name for one in entrants] == ["mine #1", "Chaser", "mine (sample)", "mine #2"]
    assert [one.selection for one in entrants] == [None, None, "sample", None]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["league", "chaser"], "there is 1 ENTRY, expected two or more"),
        (["league", "chaser", "chaser:sample"], "'chaser:sample' is no policy, expected 'chaser'"),
        (["league", "chaser", "human"], "'human' plays in the real game alone"),
        (["league", "chaser", "mine", "--team-size", "2"], "trained for 1v1, this match is 2v2"),
    ],
)
def test_unplayable_matches_are_refused_before_the_first(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "mine")
    assert main(words) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
