"""Heatseeker and Snowday: their ball, their kickoffs, and whole plays."""

import math
from functools import cache
from itertools import pairwise

import pytest
import RocketSim as rsim
from rlbot import flat

from rlgym_bridge.game import BALL_REST_Z, Phase
from rlgym_bridge.rotations import rotation_of
from rlgym_bridge.server import ConfigError
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.game.rules import (
    HEATSEEKER,
    HEATSEEKER_SPAWNS,
    MODES,
    PUCK_REST_Z,
    SNOWDAY,
    SOCCAR,
    Mode,
    Physics,
    check_rules,
    physics_of,
)
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.sim.arena import is_pinned, make_arena
from rlgym_bridge.sim.rocketsim2 import RocketSim2
from rlgym_bridge.sim.simulator import mode_number
from tests.support.stepped_match import (
    as_received,
    ball_of,
    chase,
    controls,
    go_on,
    kicked_off,
    match_of,
    place_of,
    player,
    put_ball,
    put_car,
    seats,
    to_phase,
)

ALL = (SOCCAR, HEATSEEKER, SNOWDAY)
TICKS = 3600  # of play, enough for goals in Heatseeker


@cache
def played(name: str) -> tuple[Match, list[flat.GamePacket]]:
    """Play for `TICKS`, once."""
    return play(name, TICKS)


def play(name: str, ticks: int) -> tuple[Match, list[flat.GamePacket]]:
    """Play 2v2 from GO on, all cars after the ball; return the match and its packets."""
    match = Match(seats(2), Course(skip_replays=True), Physics.of(MODES[name]), seed=10)
    to_phase(match, Phase.KICKOFF)
    packets = []
    for tick in range(ticks):
        if tick % 4 == 0:
            high = ball_of(match).position[2] > 200.0 and tick % 80 < 8
            for slot in range(4):
                match.hold(slot, chase(match, slot, jump=high))
        packets.append(go_on(match))
    return match, packets


def speed(ball: flat.BallInfo) -> float:
    return math.hypot(*place_of(ball.physics.velocity))


def test_the_numbers_are_those_of_rocketsim() -> None:
    puck, seeker = rsim.RLConst.Snowday, rsim.RLConst.Heatseeker
    shape = as_received(kicked_off(physics=Physics.of(SNOWDAY)).packet()).balls[0].shape
    assert isinstance(shape, flat.CylinderShape)
    assert (shape.diameter, shape.height) == (2.0 * puck.PUCK_RADIUS, puck.PUCK_HEIGHT)
    assert HEATSEEKER.ball_place == pytest.approx(seeker.BALL_START_POS.as_tuple())
    expected = [
        (x, y, pytest.approx(yaw / math.pi)) for x, y, yaw in rsim.RLConst.CAR_SPAWN_LOCATIONS_HEATSEEKER
    ]
    assert list(HEATSEEKER_SPAWNS) == expected


@pytest.mark.parametrize("mode", [SOCCAR, HEATSEEKER])
def test_the_ball_is_a_sphere_in_soccar_and_heatseeker(mode: Mode) -> None:
    shape = as_received(kicked_off(physics=Physics.of(mode)).packet()).balls[0].shape
    assert isinstance(shape, flat.SphereShape) and shape.diameter == 182.5


def test_only_heatseekers_ball_shows_a_target_speed() -> None:
    for name in ("Soccar", "Snowday"):
        assert {packet.balls[0].target_speed for packet in played(name)[1]} == {0.0}
    shown = [packet.balls[0].target_speed for packet in played("Heatseeker")[1]]
    assert min(shown) == 2900.0  # [RocketSim, Heatseeker.INITIAL_TARGET_SPEED]
    steps = {round(after - before) for before, after in pairwise(shown) if after > before}
    assert steps == {85}  # [RocketSim, Heatseeker.TARGET_SPEED_INCREMENT]


def test_in_heatseeker_boost_is_full_and_never_used() -> None:
    _, packets = played("Heatseeker")
    assert {car.boost for packet in packets for car in packet.players} == {100.0}


@pytest.mark.parametrize("mode", ALL, ids=lambda mode: mode.name)
def test_until_go_the_ball_waits_where_the_mode_has_it(mode: Mode) -> None:
    match = Match(seats(), physics=Physics.of(mode))
    x, y, z = mode.ball_place
    for _ in range(480):
        ball = as_received(match.packet()).balls[0].physics
        assert place_of(ball.location) == pytest.approx((x, math.copysign(y, ball.location.y), z))
        assert place_of(ball.velocity) == (0.0, 0.0, 0.0)
        match.advance()
    assert match.referee.phase == Phase.KICKOFF


@pytest.mark.parametrize(("mode", "height"), [(SOCCAR, BALL_REST_Z), (SNOWDAY, PUCK_REST_Z)])
def test_after_go_ball_and_puck_lie_still(mode: Mode, height: float) -> None:
    match = kicked_off(physics=Physics.of(mode))
    ball = go_on(match, 300).balls[0].physics
    assert place_of(ball.location) == pytest.approx((0.0, 0.0, height))
    put_car(match, 0, (0.0, -300.0, 17.03), velocity=(0.0, 1500.0, 0.0), yaw=math.pi / 2)
    packet = to_phase(match, Phase.ACTIVE)
    assert go_on(match, 5).balls[0].physics.velocity.y > 500.0
    assert packet.players[0].latest_touch is not None


def test_a_puck_that_falls_comes_to_lie_at_its_rest_height() -> None:
    match = kicked_off(physics=Physics.of(SNOWDAY))
    put_ball(match, (0.0, 0.0, 300.0), (0.0, 0.0, -1.0))
    packet = go_on(match, 400)
    assert packet.balls[0].physics.location.z == pytest.approx(PUCK_REST_Z, abs=0.05)


def test_heatseekers_ball_is_served_as_rocketsim_does() -> None:
    served = []
    match = Match(seats(), physics=Physics.of(HEATSEEKER), seed=1)
    arena, _ = make_arena([0, 1], mode=rsim.GameMode.HEATSEEKER)
    theirs = set()
    for seed in range(20):
        arena.reset_kickoff(seed)
        ball = arena.ball.get_state()
        theirs.add(tuple(round(one, 3) for one in (*ball.pos.as_tuple(), *ball.vel.as_tuple())))
    for _ in range(40):
        match.simulation.line_up()
        waits = ball_of(match).position.tolist()
        match.simulation.go([False, False])
        ball = ball_of(match)
        assert ball.position.tolist() == waits
        served.append(tuple(round(one, 3) for one in (*waits, *ball.linear_velocity.tolist())))
    assert set(served) == theirs and len(theirs) == 2
    assert 10 <= served.count(served[0]) <= 30


@pytest.mark.parametrize("mode", ALL, ids=lambda mode: mode.name)
@pytest.mark.parametrize("team_size", [1, 2, 3, 4])
def test_cars_stand_on_the_modes_spots_turned_for_orange(mode: Mode, team_size: int) -> None:
    players = Match(seats(team_size), physics=Physics.of(mode), seed=5).packet().players
    spots = [(round(car.physics.location.x, 1), round(car.physics.location.y, 1)) for car in players]
    assert all(spot in [spawn[:2] for spawn in mode.spawns] for spot in spots[:team_size])
    assert spots[team_size:] == [(-x, -y) for x, y in spots[:team_size]]
    assert len(set(spots)) == 2 * team_size


@pytest.mark.parametrize("mode", ALL, ids=lambda mode: mode.name)
@pytest.mark.parametrize("teams", [[0, 1], [0, 0, 1, 1], [0] * 4 + [1] * 4], ids=str)
def test_cars_lie_in_the_pinned_order_in_every_mode(mode: Mode, teams: list[int]) -> None:
    arena, cars = make_arena(teams, mode=mode_number(mode.name))
    assert arena.game_mode == mode_number(mode.name)
    assert is_pinned(arena, cars)


@pytest.mark.parametrize(("mode", "line"), [(SOCCAR, 5215.5), (HEATSEEKER, 5215.5), (SNOWDAY, 5238.5)])
@pytest.mark.parametrize("team", [0, 1])
def test_a_ball_that_is_wholly_in_the_goal_scores(mode: Mode, line: float, team: int) -> None:
    """The line is 5124.25 uu [RocketSim] and a radius from the middle."""
    match = kicked_off(physics=Physics.of(mode))
    side = 1.0 if team == 0 else -1.0
    put_ball(match, (0.0, side * 5000.0, 120.0), (0.0, side * 600.0, 0.0))
    packet = go_on(match)
    while packet.match_info.match_phase != flat.MatchPhase.GoalScored:
        assert abs(packet.balls[0].physics.location.y) < line + 10.0
        packet = go_on(match)
    assert abs(packet.balls[0].physics.location.y) > line
    assert [one.score for one in packet.teams] == [1 - team, team]


@pytest.mark.parametrize("roll", [0.0, 0.2, 0.4, 1.0, 0.5 * math.pi, 2.5, math.pi])
def test_a_puck_meets_the_floor_with_whatever_side_is_lowest(roll: float) -> None:
    match = kicked_off(physics=Physics.of(SNOWDAY))
    put_ball(match, (0.0, 0.0, 700.0), (0.0, 0.0, -1.0), rotation=rotation_of(0.0, 0.0, roll))
    falls, noticed, slowed = -1.0, -1, -1
    for tick in range(300):
        match.advance()
        if noticed < 0 and match.simulation.ball_on_floor():
            noticed = tick
        rises = ball_of(match).linear_velocity[2]
        if slowed < 0 and rises > falls:
            slowed = tick
        falls = rises
    assert slowed > 100
    assert abs(noticed - slowed) <= 2


@pytest.mark.parametrize("name", MODES)
def test_a_play_has_touches_and_counts_its_goals(name: str) -> None:
    match, packets = played(name)
    shown = [packet.balls[0] for packet in packets]
    assert sum(match.scores.touches) >= 3
    assert [team.score for team in packets[-1].teams] == match.referee.score
    assert sum(match.scores.goals) + sum(match.scores.own_goals) == sum(match.referee.score)
    assert all(math.isfinite(sum(place_of(ball.physics.location))) for ball in shown)
    if name == "Heatseeker":
        assert sum(match.referee.score) >= 2
        assert 2300.0 < max(speed(ball) for ball in shown) <= 4600.0  # [RocketSim, Heatseeker.MAX_SPEED]
    if name == "Snowday":
        lying = [ball for ball in shown if abs(ball.physics.location.z - PUCK_REST_Z) < 1.0]
        assert len(lying) > 500


def test_in_heatseeker_a_hit_ball_turns_to_the_other_goal() -> None:
    match = kicked_off(physics=Physics.of(HEATSEEKER))
    put_car(match, 0, (1000.0, -600.0, 17.03), velocity=(0.0, 1400.0, 0.0), yaw=math.pi / 2)
    put_ball(match, (1000.0, 0.0, 110.0), (0.0, 0.0, 0.1))
    match.hold(0, controls(throttle=1.0, boost=True))
    to_phase(match, Phase.ACTIVE)
    to_phase(match, Phase.GOAL_SCORED, limit=600)
    assert match.referee.score == [1, 0]
    assert match.scores.goals == [1, 0]


@pytest.mark.parametrize("name", MODES)
def test_the_same_seed_and_inputs_give_the_same_packets(name: str) -> None:
    first, again = played(name)[1], play(name, TICKS // 3)[1]
    assert [packet.pack() for packet in first[: len(again)]] == [packet.pack() for packet in again]


def test_in_heatseeker_a_ball_that_is_set_keeps_its_aim() -> None:
    match = kicked_off(physics=Physics.of(HEATSEEKER))
    put_car(match, 0, (1000.0, -600.0, 17.03), velocity=(0.0, 1400.0, 0.0), yaw=math.pi / 2)
    put_ball(match, (1000.0, 0.0, 110.0), (0.0, 0.0, 0.1))
    to_phase(match, Phase.ACTIVE)
    aims_at = match.simulation.target_speed
    assert aims_at > 0
    ball = flat.DesiredBallState(flat.DesiredPhysics(flat.Vector3Partial(z=500.0)))
    assert match.set_state(flat.DesiredGameState([ball], [flat.DesiredCarState(None, 50.0)]))
    packet = go_on(match)
    assert packet.balls[0].target_speed == aims_at
    assert packet.balls[0].physics.location.z == pytest.approx(500.0)
    assert packet.players[0].boost == 50.0


def test_mutators_apply_on_top_of_the_mode() -> None:
    mutators = flat.MutatorSettings(
        gravity=flat.GravityMutator.Low, ball_max_speed=flat.BallMaxSpeedMutator.Fast
    )
    for name, mode in (("Snowday", SNOWDAY), ("Heatseeker", HEATSEEKER)):
        match = match_of(player(0), game_mode=getattr(flat.GameMode, name), mutators=mutators)
        check_rules(match)
        physics = physics_of(match)
        assert (physics.mode, physics.gravity_z, physics.ball_max_speed) == (mode, -325.0, 9000.0)
        arena, _ = make_arena([0, 1], mode=mode_number(mode.name))
        own = arena.get_mutator_config()
        simulator = kicked_off(physics=physics).simulation.simulator
        assert isinstance(simulator, RocketSim2)
        config = simulator._matches[0].arena.get_mutator_config()
        assert (config.gravity.z, config.ball_max_speed) == (-325.0, 9000.0)
        for field in ("ball_mass", "ball_radius", "ball_world_friction", "ball_world_restitution",
                      "boost_used_per_second", "car_spawn_boost_amount"):  # fmt: skip
            assert getattr(config, field) == getattr(own, field)


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("Hoops", "no collision meshes"),
        ("Dropshot", "makes no arena"),
        ("Rumble", "does not have it"),
        ("Gridiron", "does not have it"),
        ("Knockout", "does not have it"),
    ],
)
def test_other_modes_are_refused_by_name(mode: str, why: str) -> None:
    with pytest.raises(
        ConfigError, match=f"game_mode is {mode}, expected one of Soccar, Heatseeker, Snowday.*{why}"
    ):
        check_rules(match_of(player(0), game_mode=getattr(flat.GameMode, mode)))


@pytest.mark.parametrize(
    ("mode", "message"), [("HOOPS", "No arena meshes"), ("DROPSHOT", "Invalid game mode")]
)
def test_rocketsim_cannot_make_the_modes_that_are_refused(mode: str, message: str) -> None:
    """Fail as soon as RocketSim has learned the mode: it can be played then."""
    with pytest.raises(RuntimeError, match=message):
        rsim.Arena(getattr(rsim.GameMode, mode))
