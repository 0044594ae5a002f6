"""One command line: every command has help, JSON and quiet mode, and tells errors and Ctrl-C alike."""

import os
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from rich.table import Table

from rlgym_bridge.cli import main, run_command
from rlgym_bridge.cli.commands import COMMANDS, GROUPS, REMOVED
from rlgym_bridge.cli.options import console_of
from rlgym_bridge.server import ConfigError, MatchCalledOff, ServerError
from rlgym_bridge.sim.simulator import DeadMatches
from rlgym_bridge.user_input.failures import Failure
from tests.support.processes import run_to_end

TRAINING = {"train": "training"} | {
    name: f"training.{name}"
    for name in ("evaluate", "ratings", "average", "imitate", "league", "stress")
}  # fmt: skip
"""Commands that `python -m` runs in a clone, too."""

MISSING = {
    "match": ["nowhere.toml"], "view": ["nowhere.mcap"], "play": ["nowhere"], "train": ["nowhere.toml"],
    "evaluate": ["nowhere", "chaser"], "ratings": ["nowhere"], "average": ["nowhere", "--out", "mean"],
    "imitate": ["nowhere.mcap"], "import": ["nowhere", "--env", "a:b", "--out", "c"],
    "inspect": ["nowhere.mcap"], "compare": ["nowhere.mcap"], "parity": ["--policy", "nowhere"],
    "package": ["nowhere", "--name", "a", "--author", "b"],
    "league": ["nowhere", "chaser"], "stress": ["nowhere"],
    "check": ["nowhere"],
}  # fmt: skip


@pytest.mark.parametrize("words", [["--help"], ["-h"]])
def test_help_lists_all_commands_by_what_people_want(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    said = capsys.readouterr().out
    for title, group in GROUPS.items():
        assert f"\n{title}:\n" in said
        for name, text in group.items():
            assert f"  {name} " in said and text in said


def test_no_command_shows_the_help_and_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: rlgym-bridge COMMAND" in capsys.readouterr().err


def test_a_mistyped_command_is_named_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mach"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        "error: there is no command 'mach', did you mean match? expected one of play, match, "
    )


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--latnecy=3", "--sedes", "4"], "--latnecy=3 --sedes, did you mean --latency, --seed?\n"),
        (["--zzz"], "--zzz\n"),
        (["one.toml", "two.toml"], "two.toml\n"),
    ],
)
def test_a_mistyped_option_is_named_with_the_nearest(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["match", *words])
    assert capsys.readouterr().err.endswith(f"error: unrecognized arguments: {hint}")


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_command_says_what_to_use(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert name not in COMMANDS and main([name, "runs/mine"]) == 2
    assert capsys.readouterr().err == f"error: the command {name} is gone: {REMOVED[name]}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_quiet_mode_and_an_exit_status(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: rlgym-bridge {name} ")
    assert "--json" in said and "--quiet" in said and "exit status: 0 " in said


@pytest.mark.parametrize("name", MISSING)
def test_what_is_not_there_is_an_error_in_one_line_and_status_2(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([name, *MISSING[name]]) == 2
    out, errors = capsys.readouterr()
    assert errors.startswith("error: ") and errors.count("\n") == 1
    assert "nowhere" in errors
    assert "Traceback" not in errors + out


@pytest.mark.parametrize(
    "name", [one if one == "train" else pytest.param(one, marks=pytest.mark.slow) for one in TRAINING]
)
def test_commands_that_train_are_modules_too(name: str) -> None:
    done = run_to_end([sys.executable, "-m", TRAINING[name], "--help"])
    assert done.returncode == 0 and done.stdout.startswith(f"usage: python -m {TRAINING[name]} ")


def test_ctrl_c_ends_any_command_with_a_word_and_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> int:
        error = KeyboardInterrupt()
        error.add_note("half of it is done")
        raise error

    monkeypatch.setattr("rlgym_bridge.cli.inspect.run", interrupted)
    assert run_command("inspect", ["match.mcap"]) == 1
    assert capsys.readouterr().err == "stopped: half of it is done\n"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Failure("it was killed"), 1), (MatchCalledOff("nobody came"), 1), (DeadMatches("two died", [1]), 1),
        (ConfigError("no such bot"), 2), (ServerError("no port"), 2), (RuntimeError("of a user"), 2),
        (KeyError("of a user"), 2), (OSError("no disk"), 2),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_the_class_of_an_error_decides_the_status(
    error: Exception, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> int:
        raise error

    monkeypatch.setattr("rlgym_bridge.cli.inspect.run", broken)
    assert run_command("inspect", ["match.mcap"]) == status
    said = capsys.readouterr().err
    assert said.startswith("error: ") and str(error) in said and said.count("\n") == 1


def test_the_help_needs_nothing_that_is_heavy() -> None:
    code = "import sys; from rlgym_bridge.cli import main; main(['--help']); print(sorted(sys.modules))"
    shown = run_to_end([sys.executable, "-c", code], check=True).stdout.splitlines()[-1]
    assert not {"numpy", "torch", "RocketSim", "rich"} & set(eval(shown))


def test_a_name_with_control_characters_changes_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.toml").write_text('"\\u001b[31mred\\u202e" = 1\n')
    assert main(["train", str(tmp_path / "a.toml"), "--settings"]) == 2
    assert r"\x1b[31mred\u202e" in capsys.readouterr().err


def test_what_is_printed_of_a_recording_changes_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console = console_of(Namespace(quiet=False))
    table = Table("bot")
    table.add_row("\x1b[2Jevil")
    console.print(table)
    console.print("\x1b[2Jevil", markup=False)
    assert capsys.readouterr().out.count(r"\x1b[2Jevil") == 2


@pytest.mark.parametrize("words", [["train", "nowhere.toml"], ["match", "--physics", "nowhere.toml"]])
def test_a_missing_file_is_told_in_words(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "nowhere.toml: No such file or directory, expected a file" in capsys.readouterr().err


def test_whatever_a_module_of_a_user_raises_takes_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    Path("raises_a_base.py").write_text("raise BaseException('odd')\n")
    assert main(["parity", "--env", "raises_a_base:f"]) == 2
    said = capsys.readouterr().err
    assert "odd" in said and "raises_a_base.py, line 1" in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["server", "--host", ""], "--host is '', expected an address"),
        (["parity", "--ticks", "99999999999"], "--ticks is 99999999999, expected 1 to 10368000"),
        (["evaluate", "chaser", "chaser", "--seconds", "1e300"], "expected 1 to 86400"),
        (["evaluate", "chaser", "chaser", "--seconds", "0.001"], "seconds is 0.001, expected 1 to 86400"),
        (["evaluate", "chaser", "chaser", "--action-delay", "9999"], "error: action_delay is [9999, 9999], "),
    ],
)
def test_a_number_out_of_range_is_refused_before_the_work(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["match", "server"])
def test_a_negative_seed_is_no_seed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--seed", "-1"])
    assert "-1 is no seed, expected a whole number, 0 or more" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("words", [["compare", "dir", "--against"], ["imitate"]])
def test_folders_and_pipes_in_place_of_matches_are_named(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dir").mkdir()
    os.mkfifo("pipe")
    assert main(["imitate", "-q", "pipe"]) == 2
    assert "pipe is a named pipe, expected a recording" in capsys.readouterr().err
    assert main([*words, "dir"]) == 2
    assert "dir is a folder, expected a recording in it" in capsys.readouterr().err
