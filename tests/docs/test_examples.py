"""Examples that need a game around them do what their pages say."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rlgym_bridge import load_policy, open_recording
from rlgym_bridge.game import Phase
from tests.support.documentation import ROOT, blocks
from tests.support.documentation_folders import run_command, run_program
from tests.support.recorded_matches import record
from tests.support.stepped_match import go_on, kicked_off, place_of

BEHIND_THE_BALL = 1
BESIDE_THE_BALL = 0
"""Seeds of matches that begin so for blue."""


def example(word: str) -> str:
    """Return the one Python example that has a word in it."""
    (text,) = (block.text for block in blocks("python") if word in block.text)
    return text


def test_the_state_setting_message_sets_ball_and_car() -> None:
    messages: list[Any] = []
    manager = SimpleNamespace(rlbot_interface=SimpleNamespace(send_msg=messages.append))
    exec(example("DesiredGameState"), {"manager": manager})
    match = kicked_off()
    assert match.set_state(messages.pop()) and not messages
    packet = go_on(match)
    assert place_of(packet.balls[0].physics.location) == (0, 0, 1000)
    assert place_of(packet.players[0].physics.location) == pytest.approx((0, -2000, 17), abs=0.01)
    assert packet.players[0].boost == 100
    assert go_on(match, 30).balls[0].physics.location.z < 990


@pytest.mark.parametrize(
    ("seed", "from_behind"),
    [(BEHIND_THE_BALL, True), pytest.param(BESIDE_THE_BALL, False, marks=pytest.mark.slow)],
)
def test_the_override_drives_the_kickoffs_it_names(seed: int, from_behind: bool, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "bot", tmp_path / "bot")
    (tmp_path / "bot" / "bot.py").write_text(example("def kickoff"), encoding="utf-8")
    play = f"match --blue bot/bot.toml --orange chaser --pace lockstep --max-overtime 0 --seed {seed}"
    run_command(tmp_path, f"{play} --seconds 1 --record match.mcap")
    match = open_recording(tmp_path / "match.mcap")
    rows = np.flatnonzero(match.state.phase == Phase.KICKOFF)[10:40]  # the first answers are under way
    assert (np.abs(match.state.car_position[rows[0], 0, 0]) < 1) == from_behind
    driven = (match.state.car_controls[rows, 0] == [1, 0, 0, 0, 0, 0, 1, 0]).all(axis=-1)
    assert driven.all() == from_behind


@pytest.mark.slow
def test_our_env_runner_trains_in_a_config_of_yours(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(example("env_runner_cls=MatchRunner"))
    said = run_program(tmp_path, "example.py")
    assert load_policy(tmp_path / "runs" / "own").manifest.obs_size == 92
    assert "'blue-0': " in said


@pytest.mark.slow
def test_recorded_episodes_are_read(tmp_path: Path) -> None:
    record(tmp_path / "match.mcap", seconds=5)
    (tmp_path / "example.py").write_text(example("in episodes_from_recording"))
    lines = run_program(tmp_path, "example.py").splitlines()
    episodes = [
        line.split() for line in lines if re.fullmatch(r"match.mcap-\d+ \d+ -?[\d.]+ (True|False)", line)
    ]
    assert episodes and any(float(words[2]) for words in episodes)
