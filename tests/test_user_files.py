"""Files that users name, with everything in them that a reader may stumble over."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.physics import read_physics
from rlgym_bridge.policy.files import newest_checkpoint, shorten_policy
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.protocol_variant import VariantFile
from rlgym_bridge.recording.tables.column_map import read_columns
from rlgym_bridge.server import read_match_file
from rlgym_bridge.server.bot_files import read_bot, read_script
from rlgym_bridge.training.settings import load_settings
from rlgym_bridge.user_input.text_files import MOST_CHARACTERS, parse_json, read_text, read_toml
from tests.support.policy_folders import save

SPOILT = {
    "nested tables": ("a=" + "{a=" * 3000, "nested more than 100 levels deep"),
    "nested lists": ("a=" + "[" * 3000, "nested more than 100 levels deep"),
    "nested names": ("a" + ".a" * 500 + "=1", "nested more than 100 levels deep"),
    "names that take long": ("a" + " . 'b'" * 9_000 + "=1", "nested more than 100 levels deep"),
    "a long number": ("a=0x1" + "0" * 9000, "a whole number of 36001 bits, expected 64"),
    "a longer number": ("a=" + "9" * 5000, "limit"),
    "no TOML": ("a b", "line 1"),
    "too long": ("a=1 #" + " " * MOST_CHARACTERS, "more than 4,194,304 characters"),
}


def _bot(path: Path) -> object:
    return read_bot(path, 0, "", None)


def _loadout(path: Path) -> object:
    bot = path.with_name("bot.toml")
    bot.write_text(
        '[settings]\nagent_id = "a/b"\nname = "B"\nrun_command = "x"\nloadout_file = "given.toml"\n'
    )
    return read_bot(bot, 0, "", None)


READERS: dict[str, Callable[[Path], object]] = {
    "match": read_match_file, "bot": _bot, "loadout": _loadout, "script": read_script,
    "dialect": VariantFile.read, "physics": read_physics, "columns": read_columns,
    "settings": load_settings,
}  # fmt: skip


@pytest.mark.parametrize("spoilt", SPOILT)
@pytest.mark.parametrize("reader", READERS)
def test_a_wrong_toml_file_is_named_with_what_is_wrong(reader: str, spoilt: str, tmp_path: Path) -> None:
    text, problem = SPOILT[spoilt]
    (tmp_path / "given.toml").write_text(text)
    with pytest.raises(ValueError, match=rf"given\.toml.*{problem}"):
        READERS[reader](tmp_path / "given.toml")


@pytest.mark.parametrize("reader", READERS)
def test_a_folder_and_a_file_in_another_encoding_are_named(reader: str, tmp_path: Path) -> None:
    given = tmp_path / "given.toml"
    given.mkdir()
    with pytest.raises(ValueError, match=r"given\.toml cannot be read: it is a folder, expected a file"):
        READERS[reader](given)
    given.rmdir()
    given.write_bytes("[a]\nb = 'é'\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"given\.toml cannot be read: it is no UTF-8 text"):
        READERS[reader](given)


def test_impossible_and_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot be read: embedded null"):
        read_text(Path("a\0.toml"))
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        read_toml(tmp_path / "none.toml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(ValueError, match=r"pipe\.toml cannot be read: it is a named pipe"):
        read_text(tmp_path / "pipe.toml")
    (tmp_path / "checkpoints" / "100").mkdir(parents=True)
    os.mkfifo(tmp_path / "checkpoints" / "latest")
    assert newest_checkpoint(tmp_path) == tmp_path / "checkpoints" / "100"


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 500 + "]" * 500, '{"a": ' * 100_000])
def test_json_that_is_nested_too_deeply_is_a_value_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nested more than 100 levels deep"):
        parse_json(text)
    save(tmp_path)
    (tmp_path / "policy.json").write_text(text)
    with pytest.raises(ValueError, match=r"policy\.json is not readable as JSON: it is nested more than 100"):
        load_policy(tmp_path)


def test_json_that_is_too_long_is_not_parsed() -> None:
    with pytest.raises(ValueError, match=r"it has more than 4,194,304 characters"):
        parse_json(f"[{' ' * MOST_CHARACTERS}]")


@pytest.mark.parametrize(
    ("text", "server", "problem"),
    [
        ("a=" + "{a=" * 3000, "sim", "no valid TOML: it is nested more than 100 levels deep"),
        ("a=" + "{a=" * 3000, "rlbot", "no valid TOML: it is nested more than 100 levels deep"),
        ("[match]\ngame_mode = 3", "rlbot", "rlbot cannot read it: AttributeError: "),
    ],
)
def test_a_wrong_match_file_takes_one_line_to_say(
    text: str, server: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "given.toml").write_text(text)
    assert main(["match", str(tmp_path / "given.toml"), "--server", server]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and f"given.toml: {problem}" in line


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("chaser", "chaser"),
        ("../bots/other", "../bots/other"),
        ("HERE/runs/mine/checkpoints/80", "runs/mine/checkpoints/80"),
        ("/a/long/way/runs/mine/checkpoints/80", "mine/checkpoints/80"),
        ("/a/long/way/bot/policy", "bot/policy"),
        ("/bots/mine", "/bots/mine"),
    ],
)
def test_a_policy_is_shown_by_the_last_parts_of_its_path(
    path: str, shown: str, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shorten_policy(path.replace("HERE", str(tmp_path))) == shown
