"""One command line: every command has help, JSON and quiet mode, and tells errors and Ctrl-C alike."""

import logging
import os
import re
import sys
from argparse import Namespace
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import pytest
from rich.table import Table

from rlgym_bridge.cli import main, run_command
from rlgym_bridge.cli.commands import COMMANDS, GROUPS, REMOVED
from rlgym_bridge.cli.options import console_of
from rlgym_bridge.protocol_variant import POINTS
from rlgym_bridge.server import ConfigError, MatchCalledOff, ServerError
from rlgym_bridge.sim.simulator import DeadMatches
from rlgym_bridge.user_input.failures import Failure
from tests.support.policy_folders import save
from tests.support.processes import run_to_end

ROOT = Path(__file__).parents[2]
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


def test_no_command_shows_the_help_and_is_bad_usage(refused) -> None:
    assert "usage: rlgym-bridge COMMAND" in refused()


@pytest.mark.parametrize("words", [["--help"], ["-h"]])
def test_help_lists_all_commands_by_what_people_want(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    said = capsys.readouterr().out
    for title, group in GROUPS.items():
        assert f"\n{title}:\n" in said
        assert all(f"  {name} " in said and text in said for name, text in group.items())


def test_a_mistyped_command_is_named_with_the_nearest(refused) -> None:
    said = refused("mach")
    assert "there is no command 'mach', did you mean match? expected one of play, match, " in said


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--latnecy=3", "--sedes", "4"], "--latnecy=3 --sedes, did you mean --latency, --seed?\n"),
        (["--zzz"], "--zzz\n"),
        (["one.toml", "two.toml"], "two.toml\n"),
    ],
)
def test_a_mistyped_option_is_named_with_the_nearest(words: list[str], hint: str, refused) -> None:
    assert refused("match", *words).endswith(f"error: unrecognized arguments: {hint}")


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_command_says_what_to_use(name: str, refused) -> None:
    assert name not in COMMANDS
    assert refused(name, "runs/mine") == f"error: the command {name} is gone: {REMOVED[name]}\n"


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
    points = [f"{one}={'|'.join(point.values)}" for one, point in POINTS.items()]
    assert name not in ("match", "server") or all(point in said for point in points)


@pytest.mark.parametrize("name", MISSING)
def test_what_is_not_there_is_an_error_in_one_line_and_status_2(
    name: str, empty_folder: Path, refused
) -> None:
    said = refused(name, *MISSING[name])
    assert "nowhere" in said
    if name in ("train", "match"):
        assert re.search(r"nowhere.toml: [Nn]o such file", said)


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


def test_a_name_with_control_characters_changes_no_terminal(tmp_path: Path, refused) -> None:
    (tmp_path / "a.toml").write_text('"\\u001b[31mred\\u202e" = 1\n')
    assert r"\x1b[31mred\u202e" in refused("train", tmp_path / "a.toml", "--settings")


def test_a_name_in_the_log_controls_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    file = tmp_path / "a\x1b[2J\u202eb.toml"
    file.write_text("[match]\nskip_replay = true\n")
    assert main(["match", str(file)]) == 2
    said = capsys.readouterr().err
    assert "skip_replay is unknown" in said and "a\\x1b[2J\\u202eb.toml" in said
    assert "\x1b" not in said and "\u202e" not in said


def test_each_command_logs_once_to_the_stderr_of_its_own_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    (tmp_path / "a.toml").write_text("[match]\nskip_replay = true\n")
    before = logging.getLogger("rlgym_bridge").level
    for _ in range(2):
        with StringIO() as stderr, redirect_stderr(stderr):
            assert main(["match", str(tmp_path / "a.toml"), "-q"]) == 2
            assert stderr.getvalue().count("skip_replay is unknown") == 1
    assert not logging.root.handlers and logging.getLogger("rlgym_bridge").level == before


def test_what_is_printed_of_a_recording_changes_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console = console_of(Namespace(quiet=False))
    table = Table("bot")
    table.add_row("\x1b[2Jevil")
    console.print(table)
    console.print("\x1b[2Jevil", markup=False)
    assert capsys.readouterr().out.count(r"\x1b[2Jevil") == 2


def test_whatever_a_module_of_a_user_raises_takes_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    Path("raises_a_base.py").write_text("raise BaseException('odd')\n")
    said = refused("parity", "--env", "raises_a_base:f")
    assert "odd" in said and "raises_a_base.py, line 1" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["server", "--host", ""], "--host is '', expected an address"),
        (["parity", "--ticks", "99999999999"], "--ticks is 99999999999, expected 1 to 10368000"),
        (["evaluate", "chaser", "chaser", "--seconds", "1e300"], "expected 1 to 86400"),
        (["evaluate", "chaser", "chaser", "--seconds", "0.001"], "seconds is 0.001, expected 1 to 86400"),
        (["evaluate", "chaser", "chaser", "--action-delay", "9999"], "error: action_delay is [9999, 9999], "),
        (["match", "--seed", "-1"], "-1 is no seed, expected a whole number, 0 or more"),
        (["imitate", "a.mcap", "--seed", "-1"], "-1 is no seed, expected a whole number, 0 or more"),
        (["match", "--physics", "nowhere.toml"], "nowhere.toml: No such file or directory, expected a file"),
        (["match", "nothing.cfg"], "nothing.cfg: no such file"),
        (["match", "README.md"], "expected a match file"),
        (["match", "--blue", "human", "--orange", "chaser"], "BOT 'human' needs the real game"),
        (["match", "--blue", "bot", "--orange", "chaser"], "BOT 'bot' is a folder without policy.json"),
        (["match", "--blue", "nonsense", "--orange", "chaser"], "BOT 'nonsense' is no file or folder"),
        (["match", "--seconds", "-1"], "expected seconds from 0 to 86400 (a day)"),
        (["match", "--max-overtime", "inf"], "expected seconds from 0 to 86400 (a day)"),
        (["match", "--pace", "fast"], "invalid choice"),
        (["match", "--dialect", "clock=half"], "dialect point clock is 'half', expected one of fraction, "),
        (["match", "--dialect", "clock"], "not of the form NAME=VALUE"),
        (["match", "--dialect", "clock=whole", "--dialect", "clock=whole"], "clock is given twice"),
        (["match", "--server", "rlbot", "--dialect", "clock=whole"], "only the embedded server takes --dial"),
        (["match", "--window"], "expected --watch, too"),
        (["match", "--watch", "--server", "rlbot"], "expected none of it with --server rlbot"),
        (["match", "--web", "--fps", "60", "--server", "rlbot"], "only the embedded server takes --fps, --w"),
        (["server", "0", "--dialect", "clocks=whole"], "dialect has no point 'clocks'; there are pad_timer"),
        (["probe", "--server", "rlbot", "--latency", "2"], "expected none of it with --server rlbot"),
        (["probe", "--latency", "-1"], "latency is -1, expected whole ticks"),
        (["probe", "--out", "no/such/folder.toml"], "No such file"),
        (["match", "--server", "rlbot", "--pace", "lockstep"], "only the embedded server takes --pace"),
        (
            ["timing", "--server", "rlbot", "--latency", "3", "--fps", "60"],
            "only the embedded server takes --latency, --fps",
        ),
        (["timing", "--seconds", "0"], "--seconds is 0, expected more"),
        (["parity", "--obs", "nowhere:Obs"], "nowhere (for nowhere:Obs) cannot be imported"),
        (["parity", "--obs", "json:dumps"], "expected a subclass of rlgym.api.ObsBuilder"),
        (["parity", "--policy", "nothing"], "nothing is no folder; expected a policy folder"),
        (["parity", "--ticks", "1"], "nothing was compared"),
        (["parity", "--tick-skip", "0"], "--tick-skip is 0, expected 1 to 6000"),
        (["parity", "--env", "json:dumps", "--parser", "a:B"], "--parser goes with --obs"),
        (["view", "nothing.mcap"], "No such file"),
        (["view", "README.md"], "a table needs --columns"),
        (["view", "README.md", "--save", "/nowhere/x.rrd"], "/nowhere/x.rrd: No such file or directory"),
        (["view", "README.md", "--save", "m.png"], "expected a file whose name ends with .rrd"),
        (["view", "x.mcap", "--web", "--window"], "not allowed with"),
        (["average", "run", "--out", ""], "'' names no folder, expected a name"),
        (["train", "--profile", "my.toml"], "files of settings go before --profile"),
        (["train", "--profile", "0"], "expected a number of iterations, 1 to 10000"),
        (["train", "--profile", "--settings"], "--profile and --settings are given, expected one of them"),
        (["train", "--profile", "--engine", "rllib"], "--profile and --engine rllib are given"),
        (["train", "--ray", "auto", "--engine", "rllib"], "--ray is auto and --engine rllib, expected one"),
        (["evaluate", "standing", "--scenes", "shot", "--trials", "0"], "trials is 0, expected 1 to 1,000,0"),
        (["evaluate", "standing", "chaser", "--scenes", "shot"], "B is chaser with --scenes, expected A alo"),
        (["evaluate", "standing", "--scenes", "shot", "--team-size", "5"], "team sizes are 5 and 5"),
        (["evaluate", "standing", "--scenes", "shot", "--team-size", "0"], "team_size is 0, expected 1 or m"),
        (["field-test", "--server", "rlbot", "--latency", "2"], "expected none of it with --server rlbot"),
        (["field-test", "--out", "pack.mcap"], "a file whose name ends with .zip"),
        (["field-test", "--html", "page.html"], "--html goes with --read FILE"),
        (["field-test", "--parts", "timin"], "--parts has 'timin', did you mean timing?"),
        (["field-test", "--scenes", "half fli"], "--scenes has 'half fli', did you mean half flip?"),
        (["field-test", "--parts", "timing", "--scenes", "hit"], "--scenes goes with the part scenes"),
        (["field-test", "--seconds", "0"], "--seconds is 0, expected more"),
        (["field-test", "--dialect", "clock=half"], "dialect point clock is 'half'"),
        (["field-test", "--read", "nowhere.zip"], "nowhere.zip: No such file"),
        (["league", "chaser"], "there is 1 ENTRY, expected two or more"),
        (["league", "chaser", "chaser:sample"], "'chaser:sample' is no policy, expected 'chaser'"),
        (["league", "chaser", "human"], "'human' plays in the real game alone"),
        (["league", "chaser", "random", "--matches=3"], "--matches: 3, expected an even number from 2 to 10"),
        (["league", "chaser", "random", "--matches=10002"], "--matches: 10002, expected an even number from"),
    ],
)
def test_bad_input_is_refused_before_the_work(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, refused
) -> None:
    monkeypatch.chdir(ROOT)
    if words[0] == "view":
        pytest.importorskip("rerun")
    assert message in refused(*words)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("words", [["compare", "dir", "--against"], ["imitate"]])
def test_folders_and_pipes_in_place_of_matches_are_named(
    words: list[str], empty_folder: Path, refused
) -> None:
    Path("dir").mkdir()
    os.mkfifo("pipe")
    assert "pipe is a named pipe, expected a recording" in refused("imitate", "-q", "pipe")
    assert "dir is a folder, expected a recording in it" in refused(*words, "dir")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["league", "chaser", "mine", "--team-size", "2"], "trained for 1v1, this match is 2v2"),
        (["stress"], "POLICY is missing, expected a policy folder, a training run or a checkpoint: there"),
        (["stress", "mine", "--causes", "los"], "--causes has 'los', did you mean loss?"),
        (["evaluate", "mine", "--scenes", "savess"], "--scenes has 'savess', did you mean"),
        (["evaluate", "mine", "--scenes", "--seconds", "60"], "--seconds given with --scenes, expected --tr"),
        (["evaluate", "mine", "--trials", "100"], "--trials is given without --scenes, expected --matches"),
        (["league"], "ENTRY is missing, expected two or more policy folders, training runs or bots: there"),
        (["ratings"], "RUN is missing, expected the folder of a training run: there is no train.toml here"),
        (["stress", "chaser"], "POLICY is 'chaser', expected a policy folder"),
        (["stress", "mine", "--out", "mine"], "--out mine is read and would be replaced"),
        (["stress", "mine", "--against", "nowhere"], "BOT 'nowhere' is no file or folder"),
    ],
)
def test_unplayable_matches_are_refused_before_the_first(
    words: list[str], message: str, empty_folder: Path, refused
) -> None:
    save(Path("mine"))
    assert message in refused(*words)
    assert [path.name for path in empty_folder.iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["stress/dialects", "stress/logs", "league/logs"])
def test_a_file_in_place_of_a_results_folder_is_refused(name: str, empty_folder: Path, refused) -> None:
    save(Path("mine"))
    command, file = name.split("/")
    Path(command).mkdir()
    Path(name).write_text("mine")
    words = {"stress": ["mine", "--causes", "loss"], "league": ["chaser", "random"]}[command]
    assert f"{name} is a file, expected a folder: move it away" in refused(command, *words, "--seconds", "1")
    assert [path.name for path in Path(command).iterdir()] == [file]
