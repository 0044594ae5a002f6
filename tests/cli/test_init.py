"""A new project trains, evaluates and plays without options, whatever it is called."""

import ast
import re
import runpy
import shlex
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rlbot.config import load_match_config

from rlgym_bridge import RelativeObs
from rlgym_bridge.cli import main
from rlgym_bridge.policy.run_modules import write_run_modules
from rlgym_bridge.project.new_project import TEMPLATE
from rlgym_bridge.server import read_match_file
from tests.support.documentation_folders import FEW, run_command
from tests.support.policy_folders import save
from tests.support.simulators import needs_native
from tests.support.states import random_state

SHORT = "--pace lockstep --seconds 0.5 --max-overtime 0"
FILES = {
    ".gitignore", "README.md", "bot.py", "bot.toml", "chaser.bot.toml", "match.toml", "my_parts.py",
    "train.toml", "goals.toml",
}  # fmt: skip


@pytest.mark.parametrize("command", ["stress", "ratings", "parity", "evaluate", "league"])
def test_commands_take_the_run_of_this_folder(command: str, empty_folder: Path, refused, capsys) -> None:
    Path("train.toml").write_text('out = "runs/not-yet"\n')
    assert "not-yet" in refused(command)
    if command == "league":
        assert main(["league"]) == 2
        assert "entries: runs/not-yet, of train.toml in this folder, and chaser" in capsys.readouterr().out
    Path("train.toml").write_text("steps = 100\n")  # the run of settings without out is not guessed
    assert 'expected the folder of the run, such as out = "runs/mine"' in refused(command)
    Path("train.toml").unlink()
    assert command == "parity" or "is missing, expected" in refused(command)


@pytest.mark.parametrize("name", ["mybot", "Ace Bot", """it's "quoted" \\ bot""", "Çelik №1"])
def test_every_name_makes_files_that_can_be_read(name: str, empty_folder: Path) -> None:
    assert main(["init", name, "--author", """O'Neill "Jo" \\"""]) == 0
    folder = empty_folder / name
    assert {file.name for file in folder.iterdir()} == FILES
    bot = tomllib.loads((folder / "bot.toml").read_text("utf-8"))
    assert (bot["settings"]["name"], bot["details"]["developer"]) == (name, """O'Neill "Jo" \\""")
    assert re.fullmatch(r"o-neill-jo/[a-z0-9-]+", bot["settings"]["agent_id"])
    assert shlex.split(bot["settings"]["run_command_linux"]) == [sys.executable, "bot.py"]
    for file in folder.glob("*.py"):
        ast.parse(file.read_text("utf-8"))
    assert f'agent_id="{bot["settings"]["agent_id"]}"' in (folder / "bot.py").read_text("utf-8")
    for match in (read_match_file(folder / "match.toml"), load_match_config(folder / "match.toml")):
        assert [player.variety.name for player in match.player_configurations] == [name, "Chaser"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mine", "mine is there already, expected a new or empty folder"),
        ("file", "file is there already, expected a new or empty folder"),
        ("new/..", "the bot's name, which is the folder's, is '..'"),
        ("my/bot", "my is not there, expected a folder"),
        ("link", "link links to nowhere, which is not there; expected a folder"),
        ("/proc/mybot", "/proc/mybot"),
        *(
            (name, "expected 1 to 32 characters that can be shown")
            for name in ("new\nline", "\x1b[31mred", "x" * 33, "/")
        ),
    ],
)
def test_a_project_that_cannot_be_made_changes_nothing(
    name: str, said: str, empty_folder: Path, refused
) -> None:
    (empty_folder / "mine").mkdir()
    for file in ("file", "mine/thesis.txt"):
        (empty_folder / file).write_text("years of work")
    (empty_folder / "link").symlink_to("nowhere")
    told = refused("init", name)
    assert said in told and "\x1b" not in told
    assert {file.name for file in empty_folder.rglob("*")} == {"file", "mine", "link", "thesis.txt"}
    assert Path("mine/thesis.txt").read_text() == "years of work"


def test_touches_towards_the_goal_are_rewarded() -> None:
    parts = runpy.run_path(str(TEMPLATE / "my_parts.py"))
    before, after = random_state(1, 1, 0), random_state(1, 1, 0)
    for state, speed in ((before, 0), (after, 3000)):
        state.ball_position[:], state.ball_linear_velocity[:] = (0, 0, 92), (0, speed, 0)
    nothing = np.zeros(1, bool)
    for touching, worth in (([0, 0], [0, 0]), ([1, 0], [0.5, 0]), ([0, 1], [0, -0.5]), ([2, 1], [0.5, -0.5])):
        after.car_ball_touches[:] = touching
        aimed = parts["AimReward"]().reward_batch(before, after, nothing, nothing)
        np.testing.assert_allclose(aimed, [worth], atol=0.01)  # the goal's middle lies above the ball


@needs_native
def test_a_projects_bot_sees_the_ball_to_come_if_set() -> None:
    obs = runpy.run_path(str(TEMPLATE / "my_parts.py"))["obs"]
    unset, ahead = (obs(SimpleNamespace(ball_ahead=one)).args for one in ((), (0.5, 1.0)))
    seen, more = (RelativeObs(**args).build_batch(random_state(1, 1, 0)).shape[2] for args in (unset, ahead))
    assert more == seen + 12


def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Begin a project that trains for seconds, and stand in its folder."""
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mybot"]) == 0
    monkeypatch.chdir(tmp_path / "mybot")
    settings = Path("train.toml").read_text("utf-8").replace("steps = 3_000_000", "# steps")
    Path("train.toml").write_text(FEW + settings, "utf-8")
    goals = Path("goals.toml").read_text("utf-8").replace("steps = 20_000_000", "steps = 600")
    Path("goals.toml").write_text(goals, "utf-8")
    return tmp_path / "mybot"


def test_from_there_commands_run_without_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def said_by(words: str) -> str:
        """Run a command in this process, which has imported what it needs."""
        assert main(words.split()) == 0
        return "".join(capfd.readouterr())

    folder = begun(tmp_path, monkeypatch)
    said = "".join(capfd.readouterr())
    assert "rlgym-bridge train" in said and "no author: --author A names you" in said
    said = said_by("train")
    assert "settings: train.toml" in said and "next: rlgym-bridge evaluate runs/mine" in said
    assert "1v1 of my_parts: 114 numbers" in said
    assert "touch 2.0 -> 0.1" in said_by("train train.toml goals.toml --resume")
    said = said_by("evaluate --matches 2 --seconds 1 --processes 1")
    assert "runs/mine" in said and "against chaser, 2 matches" in said
    said = said_by(f"match {SHORT}")
    assert "mybot" in said and "Chaser" in said and "match: match.toml of this folder" in said
    said = said_by("parity --policy runs/mine --ticks 300")
    assert re.search(r"^\d+ decisions compared, [\d,]+ numbers of .* controls: all equal", said, re.M)
    said = said_by("package")
    assert "your modules: my_parts" in said and 'LICENSE, if not yours, names "the author of mybot"' in said
    packaged = folder / "dist" / "mybot"
    assert "rlgym_bridge is not at PyPI yet" in said
    assert "rlgym_bridge is not at PyPI yet" in (packaged / "README.md").read_text("utf-8")
    said = run_command(tmp_path, f"match --blue {packaged / 'bot.toml'} --orange chaser {SHORT}")
    assert "mybot" in said and "Chaser" in said


def test_a_project_or_run_named_from_outside_says_what_to_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused
) -> None:
    begun(tmp_path, monkeypatch)
    for words in ("evaluate", "parity --policy runs/mine", "match --blue runs/mine --orange chaser"):
        assert "train makes" in refused(*words.split())
    monkeypatch.chdir(tmp_path)
    said = refused("evaluate", "mybot")
    assert "mybot is a bot's project: name its run, which train makes first" in said
    save(tmp_path / "mybot" / "runs" / "mine" / "checkpoints" / "8")
    write_run_modules(tmp_path / "mybot" / "runs" / "mine", ["my_parts"])
    said = refused("match", "--blue", "mybot", "--orange", "chaser")
    assert "name its run, mybot/runs/mine, or its mybot/bot.toml" in said
    said = run_command(tmp_path, "evaluate mybot/runs/mine", code=2)  # its own process has no my_parts
    assert f"names my_parts, which lies in {tmp_path / 'mybot'}: run this there (cd " in said


def test_defaults_are_named_where_nothing_is_said(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--resume", "--out", "runs/none"]) == 2
    assert "no train.toml here: the default settings, into runs/none" in capsys.readouterr().out
    (empty_folder / "bot.toml").touch()
    assert main(["match", *SHORT.split()]) == 0
    said = capsys.readouterr().out
    assert "no match.toml here: the shipped bot against Chaser; --blue bot.toml --orange chaser plays" in said


@pytest.mark.parametrize(
    ("words", "terminal", "answer", "asked"),
    [
        ([], True, "", True),
        ([], True, "n", True),
        ([], True, None, True),  # Ctrl-D
        (["--steps", "8"], True, "n", False),
        ([], False, "n", False),
    ],
)
def test_train_without_settings_asks_before_it_trains_for_hours(
    words: list[str], terminal: bool, answer: str | None, asked: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    questions: list[str] = []

    def reply(question: str) -> str:
        questions.append(question)
        if answer is None:
            raise EOFError
        return answer

    def train(*_: object) -> None:
        raise RuntimeError("it trains")

    (tmp_path / "mybot").mkdir()
    (tmp_path / "mybot" / "train.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: terminal))
    monkeypatch.setattr("builtins.input", reply)
    monkeypatch.setattr("rlgym_bridge.cli.train._engine", lambda _: train)
    assert main(["train", *words]) == (2 if asked else 1)
    told = capsys.readouterr().err
    assert bool(questions) is asked and ("it trains" in told) is not asked
    if asked:
        assert questions[0].startswith("train 100,000,000 steps") and "cd mybot" in questions[0]
        assert "nothing is trained" in told


@pytest.mark.parametrize(
    ("files", "out", "begins", "advice"),
    [
        (["other.toml"], "runs/mine", "none", "train.toml other.toml trains those"),
        (["other.toml"], "runs/there", "none", "train.toml other.toml --out runs/there-3 trains those"),
        (["other.toml"], "none", "none", "train.toml other.toml --out none-2 trains those"),
        (["train.toml", "other.toml"], "runs/mine", "none", None),
        (["own.toml"], "runs/mine", "none", None),
    ],
    ids=["free", "another run", "this run", "with them", "with its own"],
)
def test_settings_without_the_projects_components_say_so(
    files: list[str], out: str, begins: str, advice: str | None, empty_folder: Path, capsys
) -> None:
    for folder in ("runs/there", "runs/there-2"):
        save(Path(folder) / "checkpoints" / "8")
    Path("train.toml").write_text(f'components = "my_parts"\nout = "{out}"\n')
    Path("other.toml").write_text("steps = 100\n")
    Path("own.toml").write_text('components = "my_parts"\n')
    assert main(["train", *files, "--resume", "--out", begins]) == 2  # there is no such run
    said = capsys.readouterr().out
    assert ("standard components, not my_parts of train.toml: rlgym-bridge train" in said) is bool(advice)
    assert advice is None or advice in said
