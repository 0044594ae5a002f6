"""Whole matches of Chaser against Chaser: the server's referee and the bots' own code, without sockets."""

import logging

import pytest
from rlbot import flat

from rlgym_bridge.game import TICKS_PER_SECOND, Phase
from rlgym_bridge.live.player import Faults, LivePlayer
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.game.simulated_match import Match
from tests.parity.world import make_match, through_bytes


def whole_match(seed: int, seconds: float) -> Match:
    """Play one match to its end."""
    match = make_match(1, seed, seconds)
    match.referee.course = Course(seconds, skip_replays=True, max_overtime=300.0, max_kickoff=300.0)
    config = flat.MatchConfiguration(mutators=flat.MutatorSettings())
    live_players = [
        LivePlayer(
            load_player("chaser"),
            field_info(),
            config,
            [player.player_id],
            Faults(logging.getLogger()),
            seed=seed,
        )
        for player in match.packet().players
    ]
    while match.referee.phase != Phase.ENDED:
        packet = through_bytes(match.packet())
        for live_player in live_players:
            live_player.see(packet)
            for slot, row in live_player.inputs():
                sticks, buttons = row[:5].tolist(), [value > 0 for value in row[5:]]
                match.hold(slot, flat.ControllerState(*sticks, *buttons, False))
        match.advance()
    for live_player in live_players:
        assert not live_player.faults.counts
    return match


def test_a_match_of_chasers_ends_and_both_touch_the_ball() -> None:
    match = whole_match(seed=4, seconds=10.0)
    assert match.referee.ended_by is not None
    assert min(match.scores.touches) >= 1


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_thirty_matches_of_chasers_have_touches_and_goals() -> None:
    with_goal = 0
    for seed in range(30):
        match = whole_match(seed, seconds=300.0)
        minutes = match.frame / TICKS_PER_SECOND / 60
        print(seed, match.referee.score, match.referee.ended_by, match.scores.touches, f"{minutes:.1f} min")
        assert match.referee.ended_by in ("time", "overtime goal", "max overtime: draw")
        assert min(match.scores.touches) >= minutes, "each car touches the ball at least once a minute"
        with_goal += sum(match.referee.score) > 0
    assert with_goal >= 20
