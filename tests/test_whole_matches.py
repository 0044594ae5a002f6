"""Whole matches of Chaser against Chaser: the server's referee and the bots' own code, without sockets."""

import pytest

from rlgym_bridge.game import TICKS_PER_SECOND, Phase
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.sim.simulator import ROCKETSIM2
from tests.support.late_match import LateMatch


def whole_match(seed: int, seconds: float) -> Match:
    """Play one match to its end."""
    played = LateMatch([load_player("chaser")] * 2, 0, seed=seed, seconds=seconds, simulator=ROCKETSIM2)
    played.match.referee.course = Course(seconds, skip_replays=True, max_overtime=300.0, max_kickoff=300.0)
    while played.match.referee.phase != Phase.ENDED:
        played.tick()
    assert not played.faults.counts
    return played.match


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
