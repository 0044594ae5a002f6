"""A first bot, and one with modules of its own, go through all commands, as the pages say."""

import shutil
import sys
from pathlib import Path

import pytest

from rlgym_bridge.policy.files import policy_path
from tests.support.documentation_folders import FEW, run_command
from tools.clean_folder import CleanFolder
from tools.first_bot import follow_page

pytestmark = pytest.mark.slow  # a run is trained first

MATCH = "match --orange chaser --pace lockstep --max-overtime 0"
SHORT = "--seconds 5 --matches 2 --processes 1"


@pytest.mark.parametrize(
    "words",
    [
        f"evaluate runs/mine chaser {SHORT}",
        f"evaluate chaser runs/mine/checkpoints/latest {SHORT}",
        f"ratings runs/mine --most 2 {SHORT}",
        "average runs/mine --out average",
        "parity --policy runs/mine --ticks 2000",
    ],
    ids=lambda words: " ".join(words.split()[:2]),
)
def test_commands_take_a_run_with_modules_of_its_own(words: str, own: Path) -> None:
    run_command(own, words)


def test_a_first_bot_is_made_as_its_page_says(tmp_path: Path) -> None:
    clean = CleanFolder(tmp_path)
    follow_page(
        clean, Path(sys.executable).with_name("rlgym-bridge"), FEW,
        evaluate=SHORT, match="--seconds 2 --max-overtime 0",
    )  # fmt: skip
    steps = ["init", "train", "evaluate", "match", "package"]
    assert [name.removesuffix(" s") for name in clean.figures if name.removesuffix(" s") in steps] == steps
    assert 0 <= clean.figures["matches won, share"] <= 1
    assert (tmp_path / "mybot" / "dist" / "mybot" / "bot.toml").is_file()


def test_imitate_takes_a_run_with_modules_of_its_own(own: Path) -> None:
    run_command(own, "imitate match.mcap --run runs/mine --epochs 1 --layers 8 --out runs/clone")


def test_episodes_are_made_of_what_a_run_has_played(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlgym_bridge.policy.run_modules import run_modules
    from rlgym_bridge.rllib import episodes_from_recording

    monkeypatch.syspath_prepend(own)
    monkeypatch.chdir(own)  # only modules that the settings of the current folder name are trusted
    assert episodes_from_recording(own / "match.mcap", allow_modules=run_modules(own / "runs" / "mine"))
    with pytest.raises(ValueError, match="importing it would run code of my_parts"):
        episodes_from_recording(own / "match.mcap")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (f"evaluate bare chaser {SHORT}", 2),
        (f"{MATCH} --blue bare --seconds 2", 1),
        ("parity --policy bare", 2),
        ("imitate match.mcap --out clone", 2),
    ],
    ids=lambda words: str(words).partition(" ")[0],
)
def test_a_policy_folder_by_itself_needs_its_modules_named(words: str, code: int, own: Path) -> None:
    run = own / "runs" / "mine"
    shutil.copytree(policy_path(str(run)), own / "bare", dirs_exist_ok=True)
    shutil.copy(run / "run.toml", own / "bare")  # a policy folder is no run, whatever lies in it
    assert "--allow-modules my_parts" in run_command(own, words, code)


def test_training_begins_at_recorded_states(reader: Path, tmp_path: Path) -> None:
    for name in ("recorded_bot.py", "match.mcap"):
        shutil.copy(reader / name, tmp_path)
    settings = (reader / "recorded.toml").read_text(encoding="utf-8")
    (tmp_path / "recorded.toml").write_text(FEW.replace("300", "200") + settings, encoding="utf-8")
    run_command(tmp_path, "train recorded.toml --out run -q")
