"""The scoreboard: shots, saves, assists and points, as RocketSim and the game's rules credit them."""

import math
from collections.abc import Callable

import pytest
from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.server.game.referee import Course, Scoreboard
from rlgym_bridge.server.game.simulated_match import Match
from tests.support.stepped_match import ball_of, go_on, kicked_off, move_car, put_ball, put_car, to_phase

pytestmark = pytest.mark.usefixtures("played_in")

AHEAD = 0.5 * math.pi  # yaw towards orange's goal


def two_a_side() -> Match:
    """Return a match with all four cars at the side."""
    match = kicked_off(team_size=2)
    for slot in range(4):
        put_car(match, slot, (3500, -300 * slot, 17.03))
    return match


def go_on_until(match: Match, happened: Callable[[], object], most: int = 400) -> None:
    for _ in range(most):
        go_on(match)
        if happened():
            return
    raise AssertionError(f"it did not happen in {most} ticks")


def shoot(match: Match) -> None:
    """Let blue's first car shoot at the goal, up to shortly before it."""
    put_ball(match, (0, 2000, 93.15))
    put_car(match, 0, (0, 1700, 17.03), velocity=(0, 1800, 0), yaw=AHEAD)
    go_on_until(match, lambda: ball_of(match).position[1] > 4200.0)


def numbers(info: flat.ScoreInfo) -> tuple[int, ...]:
    return info.score, info.goals, info.own_goals, info.assists, info.saves, info.shots


def accolades_until(match: Match, phase: int, most: int = 6000) -> list[tuple[int, int, str]]:
    """Go on to a phase; return (packets from now, car, name) of each accolade that packets show."""
    found: list[tuple[int, int, str]] = []
    for waited in range(1, most):
        packet = go_on(match)
        found += [(waited, car, name) for car, one in enumerate(packet.players) for name in one.accolades]
        if match.referee.phase == phase:
            return found
    raise AssertionError(f"phase {phase} did not come in {most} ticks")


def named(found: list[tuple[int, int, str]]) -> list[tuple[int, str]]:
    return [(car, name) for _, car, name in found]


@pytest.mark.protocol("packet.accolades")
def test_a_packet_names_the_events_of_its_tick_alone() -> None:
    match = two_a_side()
    put_ball(match, (0, 2000, 93.15))
    put_car(match, 0, (0, 1700, 17.03), velocity=(0, 1800, 0), yaw=AHEAD)
    found = accolades_until(match, Phase.GOAL_SCORED)
    assert sorted(named(found)) == [(0, "BallHit"), (0, "FirstTouch"), (0, "Goal"), (0, "Shot")]
    assert found[-1][2] == "Goal"  # in the packet that shows it
    assert named(accolades_until(match, Phase.COUNTDOWN)) == []


@pytest.mark.protocol("packet.accolades")
def test_hat_tricks_wins_and_losses_are_named() -> None:
    match = kicked_off(course=Course(skip_replays=True, max_score=3))
    for goals in (1, 2, 3):
        put_car(match, 1, (3500, 2000, 17.03))
        put_ball(match, (0, 4600, 93.15))
        put_car(match, 0, (0, 4300, 17.03), velocity=(0, 1800, 0), yaw=AHEAD)
        names = named(accolades_until(match, Phase.GOAL_SCORED))
        assert ((0, "HatTrick") in names) is (goals == 3)
        after = named(accolades_until(match, Phase.ENDED if goals == 3 else Phase.KICKOFF))
        assert after == ([(0, "Win"), (1, "Loss")] if goals == 3 else [])
    assert named(accolades_until(match, Phase.ENDED)) == []


@pytest.mark.protocol("packet.accolades")
def test_saves_demolitions_and_own_goals_have_their_names() -> None:
    scores = Scoreboard([0, 0, 1])
    scores.touch(2, frame=10)
    scores.goal(0, frame=20, overtime=True)
    for _ in range(3):
        scores.credit(1, "Save")
    scores.credit(1, "Demolish")
    assert scores.accolades == [
        [],
        ["Save", "Save", "Save", "Savior", "Demolish"],
        ["BallHit", "FirstTouch", "OwnGoal"],
    ]
    scores.begin_tick()
    scores.touch(0, frame=30)
    scores.goal(0, frame=40, overtime=True)
    for _ in range(3):
        scores.credit(1, "Assist")
    assert scores.accolades == [
        ["BallHit", "Goal", "OvertimeGoal"],
        ["Assist", "Assist", "Assist", "Playmaker"],
        [],
    ]


@pytest.mark.protocol("packet.score")
def test_a_goal_is_a_shot_too_and_worth_110_points() -> None:
    match = two_a_side()
    shoot(match)
    assert numbers(match.packet().players[0].score_info) == (10, 0, 0, 0, 0, 1)
    players = to_phase(match, Phase.GOAL_SCORED).players
    assert [numbers(car.score_info) for car in players] == [(110, 1, 0, 0, 0, 1)] + [(0,) * 6] * 3


@pytest.mark.protocol("packet.score")
def test_a_shot_that_is_cleared_is_a_save_worth_50_points() -> None:
    match = two_a_side()
    shoot(match)
    x, y, z = ball_of(match).position.tolist()
    move_car(match, 2, (x, y + 330.0, z), velocity=(0, -1000, 0), yaw=-AHEAD)
    go_on_until(match, lambda: match.scores.touches[2])
    players = go_on(match, 60).players
    assert numbers(players[0].score_info) == (10, 0, 0, 0, 0, 1)
    assert numbers(players[2].score_info) == (50, 0, 0, 0, 1, 0)


@pytest.mark.protocol("packet.score")
def test_a_pass_that_is_scored_is_an_assist_worth_50_points() -> None:
    match = two_a_side()
    put_ball(match, (-600, 3000, 93.15))
    put_car(match, 0, (-900, 3000, 17.03), velocity=(900, 0, 0))
    go_on_until(match, lambda: match.scores.touches[0])
    go_on(match, 20)
    x, y, z = ball_of(match).position.tolist()
    place = (x + 0.08 * ball_of(match).linear_velocity[0], y - 320.0, z)
    move_car(match, 1, place, velocity=(0, 1800, 0), yaw=AHEAD)
    to_phase(match, Phase.GOAL_SCORED)
    players = go_on(match, 3).players
    assert numbers(players[0].score_info) == (50, 0, 0, 1, 0, 0)
    assert numbers(players[1].score_info) == (110, 1, 0, 0, 0, 1)
