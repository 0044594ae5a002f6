"""The opponent named `random` presses buttons at random, in the simulator and in matches of the server."""

import numpy as np
import pytest

from rlgym_bridge import LookupTableAction
from rlgym_bridge.cli import run_command
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.server.lineup import empty_match, with_line_up
from rlgym_bridge.training.evaluate import play_matches
from tests.support.states import random_state


def test_every_action_is_as_likely_as_every_other() -> None:
    state = random_state(1, 1, 0, matches=200)
    policy, (_, actions) = load_player("random").policy(), LookupTableAction().get_action_space("")
    policy.reset([0, 1], 3)
    chosen = np.stack([policy.act(None, state) for _ in range(45)])
    assert chosen.shape == (45, 200, 2)
    counts = np.bincount(chosen.ravel(), minlength=actions)
    assert len(counts) == actions and counts.min() > 130 and counts.max() < 270  # 200 in the mean


def test_equal_seeds_alone_press_the_same() -> None:
    once, again, other = (play_matches("random", "random", 2, seconds=3, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(once.courses, again.courses)
    assert (once.courses != other.courses).all()
    assert once.courses[0] != once.courses[1]


def test_both_teams_may_be_random(capsys: pytest.CaptureFixture[str]) -> None:
    words = "random random --team-size 2 --matches 2 --seconds 1 --processes 1"
    assert run_command("evaluate", words.split()) == 0
    assert "random against random, 2 matches 2v2 of 1 s" in capsys.readouterr().out


def test_a_match_starts_it_as_a_bot() -> None:
    match = with_line_up(empty_match(), ["random"], ["chaser"])
    blue, orange = (player.variety for player in match.player_configurations)
    assert (blue.name, orange.name) == ("Random", "Chaser")
    assert blue.run_command.endswith("rlgym_bridge.live random")
