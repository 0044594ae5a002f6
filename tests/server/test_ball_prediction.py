"""The ball's prediction: the ball to come, in every mode, until somebody touches it."""

import random
from dataclasses import replace

import numpy as np
import pytest
import RocketSim as rsim
from rlbot import flat

from rlgym_bridge.server.game.ball_prediction import SLICES, BallPrediction
from rlgym_bridge.server.game.match_physics import Physics
from rlgym_bridge.server.game.modes import MODES
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.match_server import MatchServer
from rlgym_bridge.sim.arena import make_arena
from rlgym_bridge.sim.game_rules import parse_rules
from tests.support.stepped_match import (
    go_on,
    kicked_off,
    match_of,
    place_of,
    player,
    put_ball,
    random_controls,
)

FAR = 2000  # frames, more than a buffer of slices holds


def slices_of(message: bytes) -> list[flat.PredictionSlice]:
    assert int.from_bytes(message[:2], "big") == len(message) - 2
    prediction = flat.CorePacket.unpack(message[2:]).message
    assert isinstance(prediction, flat.BallPrediction)
    return list(prediction.slices)


def motion(physics: flat.Physics) -> np.ndarray:
    vectors = (physics.location, physics.velocity, physics.angular_velocity)
    return np.array([place_of(vector) for vector in vectors])


def assert_same(first: flat.Physics, second: flat.Physics, within: float = 0.01) -> None:
    assert np.abs(motion(first) - motion(second)).max() <= within


def send_up(match: Match) -> None:
    """Send the ball where no car reaches it for some seconds."""
    put_ball(match, (300.0, -1000.0, 900.0), (900.0, 1500.0, 400.0))
    go_on(match)


@pytest.mark.parametrize("rules", ["default", "game"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.protocol("prediction.slices", "prediction.no-rotation")
def test_slices_are_the_ball_to_come(mode, rules):
    match = kicked_off(physics=replace(Physics.of(MODES[mode]), rules=parse_rules(rules)))
    send_up(match)
    slices = slices_of(match.prediction())
    assert len(slices) == SLICES == 720
    turns = {
        (one.physics.rotation.pitch, one.physics.rotation.yaw, one.physics.rotation.roll) for one in slices
    }
    assert turns == {(0.0, 0.0, 0.0)}
    for number in range(150):
        packet = go_on(match)
        assert slices[number].game_seconds == packet.match_info.seconds_elapsed
        assert_same(slices[number].physics, packet.balls[0].physics)


@pytest.mark.protocol("prediction.gravity")
def test_gravity_that_a_client_sets_is_predicted():
    match = kicked_off()
    send_up(match)
    match.prediction()
    match.set_state(flat.DesiredGameState(match_info=flat.DesiredMatchInfo(world_gravity_z=-200.0)))
    go_on(match)
    slices = slices_of(match.prediction())
    assert_same(slices[99].physics, go_on(match, 100).balls[0].physics)


@pytest.mark.protocol("prediction.alone")
def test_after_touches_a_prediction_equals_a_new_one():
    match = kicked_off(team_size=2)
    touched, generator = 0, random.Random(2)
    for frame in range(200):
        for car in range(4):
            match.hold(car, random_controls(generator))
        if frame % 40 == 0:
            put_ball(match, *ball_on(match.simulation.states[frame // 40 % 4]))
        go_on(match)
        touched += bool(match.simulation.events.touches)
        message = match.prediction()
        if frame % 25 == 24:
            simulation = match.simulation
            new = BallPrediction(simulation.physics, simulation.arena)
            expected = slices_of(new.message(simulation.ball, match.frame))
            for mine, theirs in list(zip(slices_of(message), expected, strict=True))[:120]:
                assert mine.game_seconds == theirs.game_seconds
                assert_same(mine.physics, theirs.physics)
    assert touched > 3


def test_it_goes_on_for_longer_than_its_buffer():
    arena, prediction = lonely_ball()
    first = slices_of(prediction.message(arena.ball.get_state(), 0))
    for frame in range(1, FAR):
        arena.step(1)
        message = prediction.message(arena.ball.get_state(), frame)
    arena.step(1)
    (next_one, *_, last) = slices_of(message)
    assert next_one.game_seconds == pytest.approx(FAR / 120)
    assert last.game_seconds == pytest.approx((FAR + SLICES - 1) / 120)
    assert place_of(next_one.physics.location) == pytest.approx(
        arena.ball.get_state().pos.as_tuple(), abs=0.01
    )
    assert place_of(first[0].physics.location) != place_of(next_one.physics.location)


def test_frames_that_are_not_shown_cost_no_new_prediction(monkeypatch):
    arena, prediction = lonely_ball()
    prediction.message(arena.ball.get_state(), 0)
    monkeypatch.setattr(prediction, "_compute", None)  # it would raise
    for frame in range(4, 3 * SLICES, 4):
        arena.step(4)
        message = prediction.message(arena.ball.get_state(), frame)
    arena.step(1)
    ball = arena.ball.get_state()
    assert place_of(slices_of(message)[0].physics.location) == pytest.approx(ball.pos.as_tuple(), abs=0.01)


def test_a_ball_that_stands_still_has_new_times_alone():
    arena, prediction = lonely_ball()
    ball = arena.ball.get_state()
    before, after = (slices_of(prediction.message(ball, frame)) for frame in (10, 250))
    for earlier, later in zip(before, after, strict=True):
        assert_same(earlier.physics, later.physics, within=0.0)
    assert after[0].game_seconds - before[0].game_seconds == pytest.approx(2.0)


@pytest.mark.protocol("steady.prediction-first")
def test_bots_that_want_it_have_it_before_every_packet(tmp_path):
    with MatchServer(pace="lockstep", seconds=2.0, max_overtime=0.1, log_dir=tmp_path) as server:
        result = server.play(match_of(player(0, "reader"), player(1)))
    assert [bot.replies for bot in result.bots] == [result.ticks] * 2
    assert "prediction" not in "".join(path.read_text() for path in tmp_path.iterdir())


def lonely_ball() -> tuple[rsim.Arena, BallPrediction]:
    arena, _ = make_arena([])
    ball = arena.ball.get_state()
    ball.pos, ball.vel = rsim.Vec(300.0, -1000.0, 900.0), rsim.Vec(900.0, 1500.0, 400.0)
    arena.ball.set_state(ball)
    return arena, BallPrediction(Physics(), arena)


def ball_on(car: rsim.CarState) -> tuple[tuple[float, ...], tuple[float, ...]]:
    x, y, z = car.pos.as_tuple()
    return (x, y, z + 160.0), (0.0, 0.0, -500.0)
