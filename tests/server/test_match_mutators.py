"""Mutators and simulators of a match: those played show in packets and results, others are refused."""

import math

import pytest
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.game import BALL_REST_Z, Phase
from rlgym_bridge.server import ConfigError, MatchCalledOff, MatchServer
from rlgym_bridge.server.game.referee import Referee
from rlgym_bridge.server.game.rules import check_rules, course_of, physics_of, warn_of_rules
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.net.hosted_match import HostedMatch
from rlgym_bridge.sim import simulator
from rlgym_bridge.sim.rocketsim2 import RocketSim2
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3
from tests.support.simulators import needs_native
from tests.support.stepped_match import (
    chase,
    go_on,
    match_of,
    place_of,
    player,
    put_ball,
    seats,
    to_phase,
)

GOAL_ROLL = ((0.0, 5000.0, 150.0), (0.0, 2000.0, 0.0))


def configured(mode: str = "Soccar", instant: bool = False, **mutators: object) -> flat.MatchConfiguration:
    settings = flat.MutatorSettings()
    for name, value in mutators.items():
        setattr(settings, name, getattr(type(getattr(settings, name)), str(value)))
    return match_of(
        player(0), player(1), mutators=settings, game_mode=getattr(flat.GameMode, mode), instant_start=instant
    )


def played(configuration: flat.MatchConfiguration, seed: int = 1, **limits: float) -> Match:
    check_rules(configuration)
    return Match(seats(), course_of(configuration, **limits), physics_of(configuration), seed)


def score(match: Match, team: int) -> None:
    """Let a team score, up to the packet that shows it."""
    (x, y, z), (vx, vy, vz) = GOAL_ROLL
    side = 1.0 if team == 0 else -1.0
    to_phase(match, Phase.KICKOFF)
    put_ball(match, (x, side * y, z), (vx, side * vy, vz))
    to_phase(match, Phase.GOAL_SCORED)


def drive(match: Match, ticks: int) -> flat.GamePacket:
    """Let all cars go for the ball."""
    for tick in range(ticks):
        for slot in (0, 1):
            match.hold(slot, chase(match, slot, jump=tick % 60 < 5))
        packet = go_on(match)
    return packet


@pytest.mark.protocol("packet.no-boost")
@pytest.mark.odd_packets("no pads and no boost at kickoffs")
def test_without_boost_there_is_none_on_cars_and_pads() -> None:
    match = played(configured(boost_amount="NoBoost"))
    to_phase(match, Phase.KICKOFF)
    packet = drive(match, 600)
    assert {car.boost for car in packet.players} == {0.0}
    assert {(pad.is_active, pad.timer) for pad in packet.boost_pads} == {(False, 0.0)}


@pytest.mark.odd_packets("a ball of another size")
def test_a_small_ball_shows_its_size_and_lies_lower() -> None:
    match = played(configured(ball_size="Small"))
    ball = to_phase(match, Phase.KICKOFF).balls[0]
    assert isinstance(ball.shape, flat.SphereShape) and ball.shape.diameter == 0.75 * 182.5
    assert ball.physics.location.z == pytest.approx(0.75 * BALL_REST_Z, abs=0.05)
    put_ball(match, (0.0, 2000.0, 300.0), (0.0, 0.0, -1.0))
    assert go_on(match, 900).balls[0].physics.location.z == pytest.approx(0.75 * BALL_REST_Z, abs=0.05)
    prediction = flat.CorePacket.unpack(match.prediction()[2:]).message
    assert prediction.slices[-1].physics.location.z == pytest.approx(0.75 * BALL_REST_Z, abs=0.05)


def test_the_higher_the_bounciness_the_higher_a_ball_bounces() -> None:
    tops = []
    for value in ("Low", "Lowish", "Default", "High", "SuperHigh"):
        match = played(configured(ball_bounciness=value))
        to_phase(match, Phase.KICKOFF)
        put_ball(match, (0.0, 2000.0, 600.0), (0.0, 0.0, -1.0))
        go_on(match, 180)
        tops.append(max(go_on(match).balls[0].physics.location.z for _ in range(120)))
    assert tops == sorted(tops) and tops[0] < 150.0 < 550.0 < tops[-1] + 100.0


def test_a_heavy_ball_leaves_slower_and_brakes_its_car_more() -> None:
    speeds = []
    for value in ("SuperLight", "Light", "Default", "Heavy"):
        match = played(configured(ball_weight=value))
        to_phase(match, Phase.KICKOFF)
        packet = drive(match, 1)
        while packet.match_info.match_phase == flat.MatchPhase.Kickoff:
            packet = drive(match, 1)
        speeds.append(math.hypot(*place_of(packet.players[0].physics.velocity)))
    assert speeds == sorted(speeds, reverse=True) and speeds[0] > speeds[-1] + 20.0


@pytest.mark.odd_packets("more jumps than two")
def test_unlimited_jumps_go_on_in_the_air() -> None:
    match = played(configured(jump="Unlimited"))
    to_phase(match, Phase.KICKOFF)
    heights = []
    for tick in range(360):
        jump = tick % 20 < 2
        match.hold(0, flat.ControllerState(jump=jump))
        heights.append(go_on(match).players[0].physics.location.z)
    assert max(heights) > 1500.0


@pytest.mark.protocol("match.instant-start")
@pytest.mark.odd_packets("kickoffs without countdown")
def test_a_match_without_countdown_begins_with_the_kickoff() -> None:
    match, height = played(configured(instant=True)), (17.0, 17.03)  # RocketSim 3's and RocketSim 2.2.1's
    first = match.packet()
    assert first.match_info.match_phase == flat.MatchPhase.Kickoff
    assert all(height[0] - 0.01 < car.physics.location.z < height[1] + 0.01 for car in first.players)
    assert {place_of(car.physics.velocity) for car in first.players} == {(0.0, 0.0, 0.0)}
    score(match, 0)
    after = to_phase(match, Phase.KICKOFF)
    assert place_of(after.balls[0].physics.location) == (0.0, 0.0, pytest.approx(BALL_REST_Z, abs=0.01))
    assert after.teams[0].score == 1 and after.match_info.match_phase == flat.MatchPhase.Kickoff


@pytest.mark.protocol("phases.overtime-limit")
@pytest.mark.parametrize(("rule", "winner"), [("FiveMaxFirstScore", "orange"), ("Unlimited", "draw")])
def test_a_tie_after_five_minutes_of_overtime_is_broken(rule: str, winner: str) -> None:
    referee = Referee(course_of(configured(instant=True, overtime=rule), seconds=1.0, max_overtime=302.0))
    for team in (1, 0, None):
        while referee.phase != Phase.KICKOFF:
            referee.advance(touched=False, goal_for=None, on_floor=False)
        referee.advance(touched=True, goal_for=team, on_floor=False)
    while referee.phase != Phase.ENDED:
        referee.advance(touched=True, goal_for=None, on_floor=True)
    assert referee.score == [1, 1] and referee.winner == winner
    assert referee.clock == (36_000 if rule == "FiveMaxFirstScore" else 302 * 120)


def test_a_drawn_team_is_another_one_with_another_seed() -> None:
    lots = {played(configured(overtime="FiveMaxRandomTeam"), seed=seed).referee.lot for seed in range(9)}
    assert lots == {0, 1}


@pytest.mark.protocol("phases.max-time")
@pytest.mark.parametrize(("shooter", "winner"), [(0, "blue"), (1, "orange"), (None, "draw")])
def test_after_max_time_shots_decide_a_draw(shooter: int | None, winner: str) -> None:
    match = played(configured(max_time="OneMinute"))
    if shooter is not None:
        match.scores.credit(shooter, "Shot")
    to_phase(match, Phase.ENDED, limit=7201)
    assert (match.tick, match.referee.ended_by, match.referee.winner) == (7200, "max time", winner)


def test_assumed_values_are_logged_once_for_each_mutator(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_rules(configured(gravity="Low", match_length="TenMinutes"))
    assert caplog.text == ""
    warn_of_rules(configured(ball_size="Small", game_speed="SloMo"))
    assert "ball_size = Small is played with 0.75 times the usual ball_radius" in caplog.text
    assert "game_speed = SloMo is played at 0.5 times the usual speed" in caplog.text
    assert caplog.text.count("the game's own value is not documented") == 2


@pytest.mark.parametrize(
    ("mode", "name", "value", "why"),
    [
        ("Soccar", "ball_size", "Large", "ends the program for balls of more than 102 uu"),
        ("Snowday", "ball_size", "Small", "pucks of one size"),
        ("Soccar", "ball_weight", "CurveBall", "curve"),
        ("Soccar", "boost_amount", "SlowRecharge", "no boost that comes back by itself"),
        ("Soccar", "game_speed", "TimeWarp", "not documented"),
        ("Soccar", "ball_type", "Cube", "no effect in RocketSim"),
        ("Soccar", "multi_ball", "Two", "no effect in RocketSim"),
    ],
)
def test_a_mutator_that_is_refused_says_why(mode: str, name: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"mutator {name} is {value}.*{why}"):
        check_rules(configured(mode, **{name: value}))


@pytest.mark.parametrize(
    "command",
    [["match", "--blue", "chaser"], ["match", "--server", "rlbot"], ["server"], ["field-test"],
     ["league", "chaser", "random"], ["evaluate", "chaser", "random"], ["ratings", "runs/x"],
     ["compare", "match.mcap"], ["view", "match.mcap"]],
    ids=lambda command: " ".join(command[:2]),
)  # fmt: skip
def test_rules_get_one_sentence(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*command, "--rules", "game"])
    assert "--rules: rules of the game are no setting any more: leave them out" in capsys.readouterr().err


def test_the_real_game_takes_no_simulator(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "--server", "rlbot", "--simulator", "rocketsim2"]) == 2
    assert "only the embedded server takes --simulator" in capsys.readouterr().err


def started(server: MatchServer, mode: str) -> HostedMatch:
    """Return a match of a server before its bots are launched."""
    configuration = match_of(player(0), player(1), game_mode=getattr(flat.GameMode, mode))
    return HostedMatch(server._lobby, server, configuration, (server.host, server.port))


@needs_native
def test_a_match_plays_in_the_simulator_that_the_server_names() -> None:
    from rlgym_bridge.sim.rocketsim3 import RocketSim3

    for name, kind in ((ROCKETSIM2, RocketSim2), (ROCKETSIM3, RocketSim3)):
        with MatchServer(simulator=name) as server:
            assert isinstance(started(server, "Soccar")._match.simulation.simulator, kind)


@pytest.mark.parametrize(("mode", "line"), [
    ("Soccar", "rocketsim_batch of RocketSim 3 is not installed; install it: "),
    ("Heatseeker", "Heatseeker is played in RocketSim 2.2.1: RocketSim 3 plays"),
])  # fmt: skip
def test_a_line_at_the_start_says_why_it_is_not_the_default(
    mode: str, line: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with MatchServer() as server:
        monkeypatch.setattr(simulator, "is_installed", lambda name: name == ROCKETSIM2)
        hosted = started(server, mode)
    assert isinstance(hosted._match.simulation.simulator, RocketSim2)
    assert [record.message.count(line) for record in caplog.records] == [1]


@needs_native
def test_a_match_that_fails_inside_its_simulator_is_called_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocketsim_batch.crash_folder", None)
    with MatchServer(simulator=ROCKETSIM3) as server:
        hosted = started(server, "Soccar")
        hosted._match.simulation.simulator._matches.panic_next(0)  # type: ignore[attr-defined]
        with pytest.raises(
            MatchCalledOff, match=r"failed inside the simulator and cannot go on: .*match 0: panicked"
        ):
            hosted._advance()
