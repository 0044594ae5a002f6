"""Examples that need a game around them do what their pages say."""

import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rlgym_bridge
from rlgym_bridge.game import Phase
from rlgym_bridge.live.faults import Faults
from rlgym_bridge.live.player import LivePlayer
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.server.packer import field_info
from tests.support.documentation_folders import run_program
from tests.support.documentation import ROOT, blocks
from tests.live.test_agent import CONFIG, Always, at, brain, sent
from tests.live.test_decoder import player
from tests.support.recorded_matches import record
from tests.support.stepped_match import go_on, kicked_off, place_of


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


def test_the_override_drives_the_kickoffs_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    played: dict[str, Any] = {}
    monkeypatch.setattr(rlgym_bridge, "play", lambda policy, **more: played.update(more))
    exec(example("def kickoff"), {})
    for x, forward in ((0.0, [1.0, 0, 0, 0, 0, 0, 1, 0]), (256.0, [0.0] * 8)):
        car = player()
        car.physics.location.x = x
        faults = Faults(logging.getLogger("tests"))
        driver = LivePlayer(brain(Always()), field_info(), CONFIG, [7], faults, played["override"])
        assert sent(driver, at(1, Phase.KICKOFF, car))[0][1] == forward
        assert not faults.counts


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
    episodes = [line.split() for line in lines if re.fullmatch(r"match.mcap-\d+ \d+ -?[\d.]+ (True|False)", line)]
    assert episodes and any(float(words[2]) for words in episodes)


def test_the_tests_that_the_table_of_set_actions_names_are_there() -> None:
    page = (ROOT / "docs" / "train" / "rllib.md").read_text(encoding="utf-8")
    written = (ROOT / "tests" / "rllib" / "test_set_actions.py").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page)) - {"test_applied_logp"}
    assert len(named) > 20 and not [name for name in named if f"def {name}(" not in written]
