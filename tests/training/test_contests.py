"""Leagues and stress tests over the match server, with real bots."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.server import Impairments
from rlgym_bridge.training.contests.entrant import read_entrants
from rlgym_bridge.training.contests.kept_matches import FILE
from rlgym_bridge.training.contests.served_match import ServedBot, ServedMatch, play_served
from rlgym_bridge.user_input.text_files import toml_line
from tests.support.policy_folders import network_folder
from tests.support.processes import child

BOTS = Path(__file__).parents[1] / "support" / "simple_bots.py"
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def bot_toml(folder: Path, kind: str, name: str, hivemind: bool = False) -> str:
    """Write a bot.toml that starts one of the tests' simple bots."""
    file = folder / f"{name}.bot.toml"
    settings = {
        "agent_id": f"test/{name}", "name": name, "run_command": f"{sys.executable} {BOTS} {kind}",
        "run_command_linux": f"{sys.executable} {BOTS} {kind}", "hivemind": hivemind,
    }  # fmt: skip
    lines = ["[settings]", *(toml_line(key, value) for key, value in settings.items())]
    file.write_text("\n".join(lines) + "\n")
    return str(file)


def match_of(blue: str, orange: str, folder: Path, **more: object) -> ServedMatch:
    settings = {"team_size": 1, "seconds": 1.0, "seed": 0, "simulator": "rocketsim2", "allow_modules": ()}
    return ServedMatch(
        bots=(ServedBot(blue), ServedBot(orange)), log_dir=folder / "logs", **(settings | more)  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_bot_that_does_not_connect_forfeits_and_is_named(tmp_path: Path) -> None:
    gone = bot_toml(tmp_path, "exit", "Gone")
    result = play_served(match_of("chaser", gone, tmp_path))
    blue, orange = result.forfeits
    assert blue == "" and "'Gone' (agent_id 'test/Gone', orange) did not connect" in orange
    assert "no such model: weights.safetensors" in orange
    assert (tmp_path / "logs").is_dir()  # with all that it said


@pytest.mark.slow
def test_a_bot_that_leaves_in_play_forfeits_whatever_the_score(tmp_path: Path) -> None:
    result = play_served(match_of(bot_toml(tmp_path, "crash", "Crash"), "chaser", tmp_path, seconds=5.0))
    assert "Crash left before the end, exit code 3; its log ends with:" in result.forfeits[0]
    assert "out of luck" in result.forfeits[0] and result.forfeits[1] == ""


@pytest.mark.slow
def test_a_policy_of_another_team_size_forfeits_with_its_reason(tmp_path: Path) -> None:
    network_folder(tmp_path / "policy", 1)
    (tmp_path / "bot.py").write_text("from rlgym_bridge import play\nplay('policy', agent_id='test/own')\n")
    file = tmp_path / "bot.toml"
    command = toml_line("run_command_linux", f"{sys.executable} bot.py")
    file.write_text(f'[settings]\nagent_id = "test/own"\nname = "Own"\nrun_command = "x"\n{command}\n')
    result = play_served(match_of(str(file), "chaser", tmp_path, team_size=2))
    assert "trained for 1v1" in result.forfeits[0] and "refused: it " in result.forfeits[0]


@pytest.mark.slow
def test_a_hivemind_alone_plays(tmp_path: Path) -> None:
    hive = bot_toml(tmp_path, "hive", "Hive", hivemind=True)
    result = play_served(match_of(hive, "chaser", tmp_path))
    assert result.forfeits == ("", "") and result.ticks > 500 and not result.remarks
    assert not (tmp_path / "logs").exists()


@pytest.mark.slow
def test_a_league_names_who_forfeits_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
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
    kept = Path("league", FILE).read_text()
    assert main([*words, "--matches", "4"]) == 1
    assert Path("league", FILE).read_text().startswith(kept)
    assert len(Path("league", FILE).read_text().splitlines()) == 1 + 6 * 4
    assert main(["league", "chaser", gone, "--seconds", "1"]) == 2
    assert "entries are 3 there and 2 here" in capsys.readouterr().err


@pytest.mark.slow
def test_settings_without_matches_bind_no_later_league(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["league", "chaser", "random", "--gauntlet", "--seconds", "1", "--matches", "2"]
    assert main([*words, "--team-size", "9"]) == 2  # refused by the match server
    assert main(words) == 0
    kept = Path("league", FILE).read_text()
    assert main([*words, "--json", f"league/{FILE}"]) == 2
    assert "is read and would be replaced by an output" in capsys.readouterr().err
    assert Path("league", FILE).read_text() == kept


@pytest.mark.slow
def test_a_gauntlet_plays_the_matches_of_the_first_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["league", "chaser", "random", "random", "--seconds", "1", "--matches", "2"]
    assert main([*words, "--gauntlet"]) == 0
    assert "against itself:" not in capsys.readouterr().out
    pairs = json.loads(Path("league/league.json").read_text())["pairs"]
    assert len(pairs) == 2 and all("Chaser" in (one["first"], one["second"]) for one in pairs)
    assert len(Path("league", FILE).read_text().splitlines()) == 1 + 2 * 2
    assert main(words) == 0  # the same league goes on with the other matches
    assert len(Path("league", FILE).read_text().splitlines()) == 1 + 6 * 2
    whole = Path("league/league.txt").read_text()
    assert main([*words, "--gauntlet"]) == 0  # all is played, and nothing that was known is left out
    assert Path("league/league.txt").read_text() == whole


def test_a_file_where_logs_go_is_refused_before_a_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("league").mkdir()
    Path("league/logs").write_text("mine")
    assert main(["league", "chaser", "random", "--seconds", "1", "--matches", "2"]) == 2
    assert "league/logs is a file, expected a folder: move it away" in capsys.readouterr().err


@POSIX
@pytest.mark.slow
def test_ctrl_c_keeps_finished_matches_and_leaves_no_process(tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "rlgym_bridge.cli", "league", "chaser", "chaser", "--seconds", "1", "--matches",
        "8", "--jobs", "1",
    ]  # fmt: skip
    file = tmp_path / "league" / FILE
    with child(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not file.exists() or len(file.read_text().splitlines()) < 3:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate(timeout=60)
    assert process.returncode == 1 and "Chaser #1 against Chaser #2" in shown
    assert not (tmp_path / "league" / "league.txt").exists()
    done = len(file.read_text().splitlines()) - 1
    assert 2 <= done < 24 and f"stopped: {done} of 24 matches are kept in league/{FILE}" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_impairments_of_one_team_meet_it_alone(tmp_path: Path) -> None:
    network_folder(tmp_path / "net", 1)
    (net,) = read_entrants([str(tmp_path / "net")], 1)
    usual = play_served(match_of(net.path, "chaser", tmp_path, seconds=10.0))
    again = play_served(match_of(net.path, "chaser", tmp_path, seconds=10.0))
    late = play_served(
        match_of(net.path, "chaser", tmp_path, seconds=10.0, impairments=Impairments(latency=60, team=0))
    )
    assert usual == again != late and not any(late.forfeits)
