"""A match that is started while another one is played: it begins anew, or the other one goes on."""

import logging

import pytest
from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.game.simulated_match import Match, kept_cars
from tests.support.serving import serve, start, wait_for
from tests.support.short_waits import shorten_farewell
from tests.support.stepped_match import (
    as_received,
    chase,
    go_on,
    kicked_off,
    match_of,
    place_of,
    player,
    put_ball,
    to_phase,
)

pytestmark = pytest.mark.usefixtures("played_in")

CONTINUE = flat.ExistingMatchBehavior.ContinueAndSpawn
IF_DIFFERENT = flat.ExistingMatchBehavior.RestartIfDifferent


def following(*players: flat.PlayerConfiguration, **fields: object) -> flat.MatchConfiguration:
    fields.setdefault("existing_match_behavior", CONTINUE)
    return match_of(*players, **fields)


def driven(match: Match, ticks: int) -> flat.GamePacket:
    for _ in range(ticks):
        for slot in range(2):
            match.hold(slot, chase(match, slot))
        packet = go_on(match)
    return packet


@pytest.mark.protocol("match.continue")
def test_cars_stay_whose_place_team_and_agent_are_the_same() -> None:
    match, before = kicked_off(), match_of(player(0), player(1))
    assert kept_cars(match, before, match_of(player(0), player(1))) is None
    assert kept_cars(match, before, following(player(0), player(1, "ram"))) == {0: 0}
    assert kept_cars(match, before, following(player(1), player(0), player(1))) == {}
    assert kept_cars(match, before, following(player(0), player(1), player(0))) == {0: 0, 1: 1}


@pytest.mark.protocol("match.restart-if-different")
def test_an_equal_match_goes_on_where_asked_others_do_not() -> None:
    match, before = kicked_off(), match_of(player(0), player(1))
    same = following(player(0), player(1), existing_match_behavior=IF_DIFFERENT, enable_state_setting=True)
    assert kept_cars(match, before, same) == {0: 0, 1: 1}
    same.mutators = flat.MutatorSettings(gravity=flat.GravityMutator.Low)
    assert kept_cars(match, before, same) is None
    other = following(player(0), player(1, "ram"), existing_match_behavior=IF_DIFFERENT)
    assert kept_cars(match, before, other) is None


def test_no_match_goes_on_that_has_ended(caplog: pytest.LogCaptureFixture) -> None:
    match = kicked_off()
    match.referee.end("stopped")
    assert kept_cars(match, match_of(player(0)), following(player(0))) is None
    assert "no match is played that could go on (ContinueAndSpawn)" in caplog.text


@pytest.mark.protocol("match.continue")
def test_the_match_that_goes_on_has_ball_pads_clock_and_counts() -> None:
    earlier = kicked_off(seed=3)
    put_ball(earlier, (0.0, 5000.0, 150.0), (0.0, 2000.0, 0.0))
    to_phase(earlier, Phase.GOAL_SCORED)
    to_phase(earlier, Phase.KICKOFF)
    before = driven(earlier, 400)
    assert before.teams[0].score == 1 and not all(pad.is_active for pad in before.boost_pads)
    roster = seat_players(following(player(0), player(1, "ram"), player(1)))
    match = Match(roster.cars, earlier.referee.course, earlier.simulation.physics, seed=3)
    match.take_over(earlier, {0: 0})
    after = as_received(match.packet())
    assert after.match_info.frame_num == before.match_info.frame_num
    assert after.match_info.game_time_remaining == before.match_info.game_time_remaining
    assert after.match_info.match_phase == before.match_info.match_phase == flat.MatchPhase.Active
    assert [team.score for team in after.teams] == [1, 0]
    assert place_of(after.balls[0].physics.location) == place_of(before.balls[0].physics.location)
    assert place_of(after.players[0].physics.velocity) == place_of(before.players[0].physics.velocity)
    assert [pad.is_active for pad in after.boost_pads] == [pad.is_active for pad in before.boost_pads]
    assert after.players[0].boost == before.players[0].boost
    for car in after.players[1:]:  # they came where demolished cars do
        assert abs(car.physics.location.x) in (2304.0, 2688.0) and car.physics.location.y == 4608.0
    assert match.scores.touches[:1] == earlier.scores.touches[:1]
    assert go_on(match, 60).match_info.frame_num == before.match_info.frame_num + 60


@pytest.mark.protocol("match.continue")
def test_a_manager_continues_a_match_with_another_car(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    shorten_farewell(monkeypatch)
    with serve(seconds=60.0, max_kickoff=60.0) as manager:
        start(manager, match_of(player(0), player(1)), "Bot", "Bot (2)")
        wait_for(lambda: manager.packet.match_info.frame_num > 600)
        place = place_of(manager.packet.players[0].physics.location)
        start(manager, following(player(0), player(1), player(1)), "Bot", "Bot (2)", "Bot (3)")
        first = manager.packet.match_info
        assert first.frame_num > 600 and first.match_phase != flat.MatchPhase.Countdown
        wait_for(lambda: place_of(manager.packet.players[0].physics.location) != place)
