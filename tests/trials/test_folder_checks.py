"""Compare a bot's files with the needs of RLBot, its window and other computers."""

import os
import sys
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.trials.bot_folder import BotVerdict, check_folder, find_bot_file, read_bot_file
from tests.support.broken_bots import make_bot

BOT = Path(__file__).parents[2] / "bot"


def verdicts(folder: Path) -> dict[str, BotVerdict]:
    return {one.name: one for one in check_folder(read_bot_file(find_bot_file(folder)))}


def not_passed(folder: Path) -> dict[str, tuple[str, str]]:
    return {name: (one.result, one.seen) for name, one in verdicts(folder).items() if one.result != "pass"}


@pytest.mark.parametrize("file", ["bot.toml", "chaser.bot.toml"])
def test_the_shipped_bots_files_are_in_order(file: str) -> None:
    assert not not_passed(BOT / file)


@pytest.mark.parametrize(
    ("changes", "name", "result", "seen"),
    [
        (
            {"run_command": "'C:\\Python\\python.exe bot.py'"},
            "run commands",
            "warning",
            r"C:\Python\python.exe",
        ),
        (
            {"run_command_linux": "'/home/me/venv/bin/python bot.py'"},
            "run commands",
            "warning",
            "/home/me/venv",
        ),
        ({"root_dir": "'/home/me'"}, "run commands", "warning", "root_dir has /home/me"),
        ({"run_command_linux": ""}, "run commands", "warning", "no run_command_linux"),
        ({"loadout_file": "'gone.toml'"}, "loadout", "failure", "gone.toml: no such file"),
        ({"loadout_file": "''"}, "loadout", "warning", "loadout_file is ''"),
        ({"loadout_file": ""}, "loadout", "warning", "no loadout_file"),
        ({"logo_file": "'gone.png'"}, "logo", "failure", "gone.png is not there"),
        ({"developer": "''", "tags": "[]"}, "details", "warning", "empty: developer, tags"),
        ({"agent_id": "'mine'"}, "settings", "warning", "agent_id is 'mine'"),
        ({"name": ""}, "settings", "warning", "it has no name"),
        ({"run_comand": "'x'"}, "settings", "warning", "run_comand is no key (did you mean run_command?)"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_what_is_wrong_with_a_folder_is_named(
    changes: dict[str, str], name: str, result: str, seen: str, tmp_path: Path
) -> None:
    made = make_bot(tmp_path / "bot", **({"run_command_linux": "'python3 bot.py'"} | changes))
    found = not_passed(made)
    assert list(found) == [name] and found[name][0] == result and seen in found[name][1]


@pytest.mark.parametrize("command", ["/usr/bin/env python3 bot.py", "sh -c './bot > /dev/null'", "./bin/bot"])
def test_paths_that_are_the_same_everywhere_are_fine(command: str, tmp_path: Path) -> None:
    assert not not_passed(make_bot(tmp_path / "bot", run_command_linux=f'"{command}"'))


def test_a_large_folder_is_named_with_its_largest_file(tmp_path: Path) -> None:
    made = make_bot(tmp_path / "bot", run_command_linux="'python3 bot.py'")
    (made / "sub").mkdir()
    with (made / "sub" / "weights.bin").open("wb") as file:
        file.truncate(300_000_000)
    result, seen = not_passed(made)["size"]
    assert result == "warning" and f"the largest {Path('sub', 'weights.bin')} with 300.0 MB" in seen


def test_of_several_files_that_called_bot_toml_is_taken(tmp_path: Path) -> None:
    made = make_bot(tmp_path / "bot")
    (made / "bot.toml").rename(made / "one.bot.toml")
    assert find_bot_file(made).name == "one.bot.toml"
    (made / "two.bot.toml").write_text("")
    assert main(["check", str(made), "-q"]) == 2
    assert find_bot_file(make_bot(made)).name == "bot.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file"),
        ("[settings\n", "no valid TOML"),
        ("[details]\n", "no [settings], expected a v5 bot.toml"),
        ("[settings]\nagent_id = 'a/b'\n", "run_command is missing, expected the command that starts the bo"),
        ("[settings]\nname = 'a'\nrun_command = 'x'\n", "agent_id is missing"),
        ("details = 3\n[settings]\nagent_id = 'a/b'\nrun_command = 'x'\n", "details is 3, expected a table"),
        (
            "[settings]\nagent_id = 'a/b'\nrun_command = 'x'\n[details]\ntags = 'x'\n",
            "tags is 'x', expected a list",
        ),
    ],
)
def test_a_file_that_describes_no_bot_is_refused(
    text: str | None, message: str, tmp_path: Path, refused
) -> None:
    if text is not None:
        (tmp_path / "bot.toml").write_text(text)
    assert message in refused("check", tmp_path / "bot.toml")


def test_folders_without_a_bot_say_where_one_is(tmp_path: Path, refused) -> None:
    assert "has no bot.toml, expected one, or NAME.bot.toml\n" in refused("check", tmp_path)
    made = make_bot(tmp_path / "src")
    assert f"name {made / 'bot.toml'}\n" in refused("check", tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_a_bot_is_not_waited_for(tmp_path: Path, refused) -> None:
    os.mkfifo(tmp_path / "bot.toml")
    for given in (tmp_path, tmp_path / "bot.toml"):
        assert "is a named pipe, expected a file" in refused("check", given)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs a user with few rights")
def test_a_folder_without_rights_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = make_bot(tmp_path / "bot")
    made.chmod(0)
    try:
        assert main(["check", str(made)]) == 2
    finally:
        made.chmod(0o700)
    assert "Permission denied, expected" in capsys.readouterr().err
