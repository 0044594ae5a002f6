"""The ball's prediction: the ball to come, in every mode, until somebody touches it."""

import random

import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.server.game.rules import MODES, Physics
from rlgym_bridge.server.game.simulated_match import SLICES, BallPrediction, Match
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3
from tests.support.simulators import both, needs_native
from tests.support.stepped_match import (
    Seen,
    car_of,
    go_on,
    kicked_off,
    match_of,
    place_of,
    player,
    put_ball,
    put_car,
    random_controls,
    result_of,
)


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


PLAYED = [
    *((ROCKETSIM2, mode) for mode in MODES),
    pytest.param(ROCKETSIM3, "Soccar", marks=needs_native),
]


@pytest.mark.parametrize(("name", "mode"), PLAYED)
@pytest.mark.protocol("prediction.slices", "prediction.no-rotation")
def test_slices_are_the_ball_to_come(name, mode):
    match = kicked_off(physics=Physics.of(MODES[mode]), simulator=name)
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
@both
def test_gravity_that_a_client_sets_is_predicted(name):
    match = kicked_off(simulator=name)
    send_up(match)
    match.prediction()
    match.set_state(flat.DesiredGameState(match_info=flat.DesiredMatchInfo(world_gravity_z=-200.0)))
    go_on(match)
    slices = slices_of(match.prediction())
    assert_same(slices[99].physics, go_on(match, 100).balls[0].physics)


@pytest.mark.protocol("prediction.alone")
@both
def test_after_touches_a_prediction_equals_a_new_one(name):
    match = kicked_off(team_size=2, simulator=name)
    touched, generator = 0, random.Random(2)
    for frame in range(200):
        for car in range(4):
            match.hold(car, random_controls(generator))
        if frame % 40 == 0:
            put_ball(match, *ball_on(car_of(match, frame // 40 % 4)))
        go_on(match)
        touched += bool(match.simulation.events.touches)
        message = match.prediction()
        if frame % 25 == 24:
            expected = slices_of(BallPrediction(match.simulation).message(match.frame))
            for mine, theirs in list(zip(slices_of(message), expected, strict=True))[:120]:
                assert mine.game_seconds == theirs.game_seconds
                assert_same(mine.physics, theirs.physics)
    assert touched > 3


def lonely_ball(name: str) -> tuple[Match, BallPrediction]:
    """Return a match whose ball no car reaches, with its prediction."""
    match = kicked_off(simulator=name)
    put_car(match, 0, (3000.0, -4000.0, 17.03))
    put_car(match, 1, (3000.0, 4000.0, 17.03))
    put_ball(match, (-300.0, -1000.0, 900.0), (0.0, 500.0, 400.0))
    return match, BallPrediction(match.simulation)


def forecasts_of(prediction: BallPrediction, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that grows by one with each forecast."""
    made: list[None] = []
    compute = prediction._compute
    monkeypatch.setattr(prediction, "_compute", lambda: made.append(compute()))
    return made


@both
@pytest.mark.parametrize("shown_every", [1, 4])
def test_a_ball_that_nobody_touches_is_forecast_once_a_second(name, shown_every, monkeypatch):
    match, prediction = lonely_ball(name)
    prediction.message(match.frame)
    made = forecasts_of(prediction, monkeypatch)
    for _ in range(600 // shown_every):
        go_on(match, shown_every)
        message = prediction.message(match.frame)
    assert 1 <= len(made) <= 5
    (following, *_, last) = slices_of(message)
    assert following.game_seconds == pytest.approx((match.frame + 1) / 120)
    assert last.game_seconds == pytest.approx((match.frame + SLICES) / 120)
    assert_same(following.physics, go_on(match).balls[0].physics)


@both
def test_a_touched_ball_is_forecast_anew_in_that_very_packet(name, monkeypatch):
    match, prediction = lonely_ball(name)
    prediction.message(match.frame)
    made = forecasts_of(prediction, monkeypatch)
    put_ball(match, (3000.0, -3800.0, 93.15))
    put_car(match, 0, (3000.0, -4000.0, 17.03), velocity=(0.0, 1000.0, 0.0), yaw=np.pi / 2)
    for _ in range(30):
        before = len(made)
        go_on(match)
        message = prediction.message(match.frame)
        if match.simulation.events.touches:
            break
    assert len(made) == before + 1
    assert_same(slices_of(message)[0].physics, go_on(match).balls[0].physics, within=5.0)


@both
def test_a_ball_that_stands_still_has_new_times_alone(name):
    _, prediction = lonely_ball(name)
    before, after = (slices_of(prediction.message(frame)) for frame in (10, 250))
    for earlier, later in zip(before, after, strict=True):
        assert_same(earlier.physics, later.physics, within=0.0)
    assert after[0].game_seconds - before[0].game_seconds == pytest.approx(2.0)


@pytest.mark.protocol("steady.prediction-first")
@pytest.mark.usefixtures("short_countdowns")
def test_bots_that_want_it_have_it_before_every_packet(tmp_path):
    match = match_of(player(0, "reader"), player(1))
    result = result_of(match, seconds=2.0, max_overtime=0.1, log_dir=tmp_path)
    assert [bot.replies for bot in result.bots] == [result.ticks] * 2
    assert "prediction" not in "".join(path.read_text() for path in tmp_path.iterdir())


def ball_on(car: Seen) -> tuple[tuple[float, ...], tuple[float, ...]]:
    x, y, z = car.position.tolist()
    return (x, y, z + 160.0), (0.0, 0.0, -500.0)
