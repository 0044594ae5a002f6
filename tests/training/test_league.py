"""Leagues over the match server: entries, kept results, standings, forfeits of real bots, and Ctrl-C."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.server import ConfigError, Impairments
from rlgym_bridge.training.contests.kept_matches import FILE, KeptMatches, ServedResult, seen_by_first
from rlgym_bridge.training.contests.league import pairs_of, rank
from rlgym_bridge.training.contests.served_match import ServedBot, ServedMatch, play_served, read_entrants
from rlgym_bridge.user_input.text_files import toml_line
from tests.support.policy_folders import network_folder, save
from tests.support.processes import child

SETTINGS = {"seconds": 60.0, "entries": [{"name": "A", "path": "a"}, {"name": "B", "path": "b"}]}
BOTS = Path(__file__).parents[1] / "support" / "simple_bots.py"
LEAGUE = Path("league", FILE)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def result(first: int, second: int, ticks: int = 7200, **more: object) -> ServedResult:
    return ServedResult((first, second), (9, 9), ticks, **more)  # type: ignore[arg-type]


# --- kept results ----------------------------------------------------------------------------


def test_results_are_there_again_in_another_process(tmp_path: Path) -> None:
    kept = KeptMatches(tmp_path / FILE, SETTINGS)
    results = {("A", "B", 0): result(2, 1), ("A", "A", 3): result(0, 0, forfeits=("it left", ""))}
    results |= {("B", "B", number): result(0, 0, forfeits=("x" * 8192, "")) for number in range(600)}
    for key in list(results)[:3]:
        kept.add({key: results[key]})
    kept.add(results)
    assert KeptMatches(tmp_path / FILE, SETTINGS).results == results
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seconds": 30.0}, "seconds is 60.0 there and 30.0 here"),
        ({"entries": [{"name": "A", "path": "a"}]}, "entries are 2 there and 1 here"),
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
        "", "{", "[1]", '{"match": ["A"]}', '{"match": ["A", "B", 1], "goals": [1]}',
        '{"match": ["A", "B", 1e999]}',
    ],
)  # fmt: skip
def test_a_line_that_is_no_result_is_named(line: str, tmp_path: Path) -> None:
    KeptMatches(tmp_path / FILE, SETTINGS)
    with (tmp_path / FILE).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ConfigError, match="line 2, is no result of a match"):
        KeptMatches(tmp_path / FILE, SETTINGS)


# --- standings and entries -------------------------------------------------------------------


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
        for pair, its in (("AB", b_wins), ("BC", result(1, 1)), ("CC", result(1, 0))):
            matches.append(seen_by_first((*pair, number), its))
    best, middle, last = rank(["A", "B", "C"], matches)
    assert [one.name for one in (best, middle, last)] == ["B", "C", "A"]
    assert best.rating.interval[0] > last.rating.interval[1]
    assert best.against_itself is None and middle.against_itself is not None
    assert middle.against_itself.results == (30, 0, 30)  # its first copy is blue in every second match
    pairs = pairs_of([best, middle, last], matches)
    assert [(names, found.results, found.different) for names, found in pairs.items()] == [
        (("B", "C"), (0, 60, 0), 1), (("B", "A"), (60, 0, 0), 1)
    ]  # fmt: skip


def test_equal_names_have_numbers_and_choices_are_named() -> None:
    save(Path("mine"))
    entrants = read_entrants(["mine", "chaser", "mine:sample", "mine"], team_size=1)
    assert [one.name for one in entrants] == ["mine #1", "Chaser", "mine (sample)", "mine #2"]
    assert [one.selection for one in entrants] == [None, None, "sample", None]


# --- matches ---------------------------------------------------------------------------------


def bot_toml(folder: Path, kind: str, name: str, hivemind: bool = False, command: str = "") -> str:
    """Write a bot.toml that starts one of the tests' simple bots, or a command."""
    file, command = folder / f"{name}.bot.toml", command or f"{sys.executable} {BOTS} {kind}"
    settings = {"agent_id": f"test/{name}", "name": name, "run_command": command, "hivemind": hivemind}
    settings["run_command_linux"] = command
    file.write_text("\n".join(["[settings]", *(toml_line(*item) for item in settings.items())]) + "\n")
    return str(file)


def match_of(blue: str, orange: str, folder: Path, **more: object) -> ServedMatch:
    settings = {"team_size": 1, "seconds": 1.0, "seed": 0, "simulator": "rocketsim2", "allow_modules": ()}
    return ServedMatch(
        bots=(ServedBot(blue), ServedBot(orange)), log_dir=folder / "logs", **(settings | more)  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_bot_that_does_not_connect_forfeits_and_is_named(tmp_path: Path) -> None:
    blue, orange = play_served(match_of("chaser", bot_toml(tmp_path, "exit", "Gone"), tmp_path)).forfeits
    assert blue == "" and "'Gone' (agent_id 'test/Gone', orange) did not connect" in orange
    assert "no such model: weights.safetensors" in orange
    assert (tmp_path / "logs").is_dir()  # with all that it said


@pytest.mark.slow
def test_a_hivemind_alone_plays(tmp_path: Path) -> None:
    result = play_served(match_of(bot_toml(tmp_path, "hive", "Hive", hivemind=True), "chaser", tmp_path))
    assert result.forfeits == ("", "") and result.ticks > 500 and not result.remarks
    assert not (tmp_path / "logs").exists()


@pytest.mark.slow
def test_a_bot_that_leaves_in_play_forfeits_whatever_the_score(tmp_path: Path) -> None:
    result = play_served(match_of(bot_toml(tmp_path, "crash", "Crash"), "chaser", tmp_path, seconds=5.0))
    assert "Crash left before the end, exit code 3; its log ends with:" in result.forfeits[0]
    assert "out of luck" in result.forfeits[0] and result.forfeits[1] == ""


@pytest.mark.slow
def test_a_policy_of_another_team_size_forfeits_with_its_reason(tmp_path: Path) -> None:
    network_folder(tmp_path / "policy", 1)
    (tmp_path / "bot.py").write_text("from rlgym_bridge import play\nplay('policy', agent_id='test/Own')\n")
    own = bot_toml(tmp_path, "", "Own", command=f"{sys.executable} bot.py")
    result = play_served(match_of(own, "chaser", tmp_path, team_size=2))
    assert "trained for 1v1" in result.forfeits[0] and "refused: it " in result.forfeits[0]


@pytest.mark.slow
def test_a_league_names_who_forfeits_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], refused
) -> None:
    gone = bot_toml(tmp_path, "exit", "Gone")
    words = ["league", "chaser", gone, "chaser", "--seconds", "1", "--json", "out.json"]
    assert main([*words, "--matches", "2"]) == 1
    said = capsys.readouterr().out
    assert "Gone forfeited 6 matches, the first because:" in said and "did not connect" in said
    result = json.loads(Path("out.json").read_text())
    assert result == json.loads(Path("league/league.json").read_text())
    names = [one["name"] for one in result["standings"]]
    assert sorted(names[:2]) == ["Chaser #1", "Chaser #2"] and names[2] == "Gone"
    assert result["standings"][0]["rating"] > result["standings"][2]["rating"]
    assert {one["entry"] for one in result["forfeits"]} == {"Gone"}
    assert Path("league/league.png").read_bytes().startswith(b"\x89PNG")
    kept = LEAGUE.read_text()
    assert main([*words, "--matches", "4"]) == 1
    assert LEAGUE.read_text().startswith(kept) and len(LEAGUE.read_text().splitlines()) == 1 + 6 * 4
    assert "entries are 3 there and 2 here" in refused("league", "chaser", gone, "--seconds", "1")


@pytest.mark.slow
def test_a_gauntlet_plays_the_matches_of_the_first_entry(capsys: pytest.CaptureFixture[str], refused) -> None:
    words = ["league", "chaser", "random", "random", "--seconds", "1", "--matches", "2"]
    assert main([*words, "--gauntlet", "--team-size", "9"]) == 2  # refused by the match server: binds nothing
    assert main([*words, "--gauntlet"]) == 0
    assert "against itself:" not in capsys.readouterr().out
    pairs = json.loads(Path("league/league.json").read_text())["pairs"]
    assert len(pairs) == 2 and all("Chaser" in (one["first"], one["second"]) for one in pairs)
    kept = LEAGUE.read_text()
    assert len(kept.splitlines()) == 1 + 2 * 2
    assert "is read and would be replaced by an output" in refused(*words, "--json", f"league/{FILE}")
    assert LEAGUE.read_text() == kept
    assert main(words) == 0  # the same league goes on with the other matches
    assert len(LEAGUE.read_text().splitlines()) == 1 + 6 * 2
    whole = Path("league/league.txt").read_text()
    assert main([*words, "--gauntlet"]) == 0  # all is played, and nothing that was known is left out
    assert Path("league/league.txt").read_text() == whole


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.slow
def test_ctrl_c_keeps_finished_matches_and_leaves_no_process() -> None:
    words = ["league", "chaser", "chaser", "--seconds", "1", "--matches", "8", "--jobs", "1"]
    command = [sys.executable, "-m", "rlgym_bridge.cli", *words]
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not LEAGUE.exists() or len(LEAGUE.read_text().splitlines()) < 3:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate(timeout=60)
    assert process.returncode == 1 and "Chaser #1 against Chaser #2" in shown
    assert not Path("league/league.txt").exists()
    done = len(LEAGUE.read_text().splitlines()) - 1
    assert 2 <= done < 24 and f"stopped: {done} of 24 matches are kept in league/{FILE}" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_impairments_of_one_team_meet_it_alone(tmp_path: Path) -> None:
    net = str(network_folder(tmp_path / "net", 1))
    late = {"impairments": Impairments(latency=60, team=0)}
    usual, again, late = (
        play_served(match_of(net, "chaser", tmp_path, seconds=10.0, **more)) for more in ({}, {}, late)
    )
    assert usual == again != late and not any(late.forfeits)
