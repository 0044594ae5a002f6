"""Bots that are broken on purpose are named with the right reason, and none of their processes stays."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.cli import main
from tests.support.broken_bots import make_bot
from tests.support.policy_folders import network_folder

BOT = Path(__file__).parents[2] / "bot"
BUSY = {"in time", "answers"}
"""Checks that may fail beside: other programs hold up answers, and a bot that breaks gives none."""


def check(bot: Path, out: Path, code: int, *words: str) -> dict[str, dict[str, Any]]:
    assert main(["check", str(bot), "--json", str(out), *words]) == code
    found: list[dict[str, Any]] = json.loads(out.read_text())
    assert all(set(one) == {"name", "result", "seen", "expected", "remedy"} for one in found)
    assert len({one["name"] for one in found}) == len(found)
    return {one["name"]: one for one in found}


def failures(found: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, one in found.items() if one["result"] == "failure"}


@pytest.mark.parametrize(
    ("kind", "name", "seen"),
    [
        (
            "crashes in initialize",
            "initialises",
            "exit code 0 before the match; its log ends with: ValueError: no weights here",
        ),
        ("wrong agent id", "agent id", "the process connects as 'somebody/else'"),
    ],
)
def test_a_bot_that_does_not_start_is_named(
    kind: str, name: str, seen: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = check(make_bot(tmp_path / "bot", kind), tmp_path / "out.json", 1)
    assert failures(found) == {name} and seen in found[name]["seen"] and found[name]["remedy"]
    assert found["goal"]["result"] == "not tried"
    said = capsys.readouterr()
    assert "failure" in said.out and "not tried because of what is above: " in said.out
    assert "lockstep match with scenes ..." in said.err


def test_the_last_line_of_a_bots_log_is_shown_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_bot(tmp_path / "bot")
    program = folder / "bot.py"
    line = " ".join(f"word{number}" for number in range(200))
    program.write_text(f"import sys\nsys.exit({line!r})\n", encoding="utf-8")
    found = check(folder, tmp_path / "out.json", 1)
    assert found["connects"]["seen"].endswith(f"; its log ends with: {line}")
    assert "mend what its log says" in found["connects"]["remedy"]
    shown = capsys.readouterr().out
    assert "word199" in shown and "..." not in shown.partition("word0")[2].partition("word199")[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "names", "seen"),
    [
        ("connects twice", {"agent id"}, "'tests/broken', 'somebody/else'"),
        ("never connects", {"connects"}, "its process runs and does not connect"),
        ("wrong port", {"connects"}, "connect"),
        ("hangs in initialize", {"initialises"}, "it did not get ready in time"),
        ("raises", {"answers"}, "not one answer"),
        ("slow", {"in time"}, "reply p50 5"),
        ("stands still", {"moves"}, "it stands still as blue and as orange"),
        ("not a number", {"numbers"}, "inputs with NaN or infinity"),
        ("dies after a goal", {"goal"}, "exit code 3; its log ends with: score does not fit"),
        ("stops when demolished", {"demolition", "overtime"}, "it stood still after its car came back"),
        ("gives up in overtime", {"overtime", "joins midway"}, "it answered no more after the kickoff of ov"),
        ("comes only at the beginning", {"joins midway"}, "it stood still after it had joined"),
    ],
)
def test_what_breaks_a_bot_is_named(kind: str, names: set[str], seen: str, tmp_path: Path) -> None:
    found = check(make_bot(tmp_path / "bot", kind), tmp_path / "out.json", 1, "-q", "--timeout", "20")
    assert names <= failures(found) <= names | BUSY
    assert any(seen in found[name]["seen"] and found[name]["remedy"] for name in names)


@pytest.mark.slow
def test_tags_that_promise_too_much_are_named(tmp_path: Path) -> None:
    made = make_bot(tmp_path / "bot", "drives only in a duel", tags='["1v1", "teamplay"]')
    found = check(made, tmp_path / "out.json", 1, "-q")
    assert failures(found) - BUSY == {"tags"} and "in 2v2 it stands still" in found["tags"]["seen"]


@pytest.mark.slow
def test_a_policy_for_duels_is_not_for_teams(tmp_path: Path) -> None:
    file = tmp_path / "bot" / "bot.toml"
    shutil.copytree(BOT, file.parent)
    shutil.rmtree(file.parent / "policy")
    network_folder(file.parent / "policy", team_size=1)
    assert 'tags = ["1v1", "teamplay"]' in file.read_text(encoding="utf-8")
    found = check(file, tmp_path / "out.json", 1, "-q")
    assert failures(found) - BUSY == {"tags"}
    seen = found["tags"]["seen"]
    assert "in 2v2 its process ended with exit code 2" in seen and "was trained for 1v1" in seen


@pytest.mark.slow
def test_a_hivemind_that_drives_one_car_is_named(tmp_path: Path) -> None:
    found = check(make_bot(tmp_path / "bot", hivemind="true"), tmp_path / "out.json", 1, "-q")
    assert (
        failures(found) - BUSY == {"hivemind"} and "1 of its 2 cars stood still" in found["hivemind"]["seen"]
    )


@pytest.mark.slow
def test_a_bot_that_stays_after_its_match_is_warned_of(tmp_path: Path) -> None:
    found = check(make_bot(tmp_path / "bot", "stays"), tmp_path / "out.json", 0, "-q")
    assert (found["restart"]["result"], found["restart"]["seen"][:10]) == ("warning", "it had to ")


@pytest.mark.slow
@pytest.mark.parametrize("file", ["bot.toml", "chaser.bot.toml"])
def test_the_shipped_bots_pass_every_check(file: str, tmp_path: Path) -> None:
    found = check(BOT / file, tmp_path / "out.json", 0, "-q")
    assert not failures(found)
    assert not [name for name, one in found.items() if one["result"] == "not tried"]
