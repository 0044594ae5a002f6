"""Replays of Snowday, Knockout and several balls are read as they are; all are made by hand."""

from collections.abc import Callable

import numpy as np
import pytest

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.recording.recording import Recording
from tests.support.made_replays import BALL, MadeReplay, read_made

HOCKEY = ("Archetypes.GameEvent.GameEvent_Hockey", "Archetypes.Ball.Ball_Puck")
KNOCKOUT = "Archetypes.KnockOut.GameEvent_Knockout"
_FRAMES = 90


def rolling(replay: MadeReplay, *balls: int, told: Callable[[int], None] = lambda number: None) -> Recording:
    """Return a replay of three seconds in which balls roll, each 1,000 uu beside the one before."""
    for number in range(_FRAMES):
        for place, ball in enumerate(balls):
            replay.move(ball, 1000.0 * place + 10 * number)
        told(number)
        replay.frame()
    return read_made(replay)


def puck(bounciness: float, every: int = 30) -> Recording:
    """Return a replay of Snowday that tells how a puck bounces, in every keyframe."""
    replay = MadeReplay(*HOCKEY)

    def tell(number: int) -> None:
        if number % every == 0:
            replay.tell(4, "TAGame.Ball_TA:ReplicatedWorldBounceScale", Float=bounciness)

    return rolling(replay, 4, told=tell)


def test_a_puck_bounces_by_its_own_quarter() -> None:
    found = puck(0.25)
    assert (found.mode, found.mutators) == ("Snowday", [])
    assert not any("bounciness" in note for note in found.notes)
    assert compare_recordings(found, windows=2).fits[0].windows > 0


def test_a_puck_that_bounces_otherwise_is_refused() -> None:
    found = puck(0.5)
    assert found.mutators == ["bounciness of the ball 0.5 in place of 0.25"]
    with pytest.raises(ValueError, match=r"bounciness of the ball 0\.5 in place of 0\.25"):
        compare_recordings(found)


def test_a_soccar_ball_that_bounces_by_a_quarter_is_refused() -> None:
    replay = MadeReplay()
    replay.tell(4, "TAGame.Ball_TA:ReplicatedWorldBounceScale", Float=0.25)
    assert rolling(replay, 4).mutators == ["bounciness of the ball 0.25 in place of 1"]


def test_of_two_balls_the_first_is_followed() -> None:
    replay = MadeReplay()
    found = rolling(replay, 4, replay.actor(BALL))
    np.testing.assert_allclose(found.state.ball_position[:, 0], 10.0 * np.arange(_FRAMES))
    assert len(np.unique(found.segment)) == 1
    assert found.mutators == ["number of balls 2 in place of 1"]
    with pytest.raises(ValueError, match="number of balls 2 in place of 1"):
        compare_recordings(found)


def test_a_ball_that_takes_the_place_of_another_is_one_ball() -> None:
    replay = MadeReplay()
    second = replay.actor(BALL)

    def tell(number: int) -> None:
        if number == 5:  # a goal: both are shown for a few frames
            replay.leave(4)

    for number in range(5):
        replay.move(4, 10.0 * number)
        replay.move(second, 1000.0)
        replay.frame()
    found = rolling(replay, second, told=tell)
    assert found.mutators == []
    np.testing.assert_allclose(found.state.ball_position[:5, 0], 10.0 * np.arange(5))
    np.testing.assert_allclose(found.state.ball_position[-1, 0], 10.0 * (_FRAMES - 1))


@pytest.mark.parametrize("value", [1.9e27, -3.0, 1e-30])
def test_a_number_that_no_game_has_is_no_mutator_and_is_said(value: float) -> None:
    replay = MadeReplay()
    replay.tell(4, "TAGame.Ball_TA:ReplicatedBallMaxLinearSpeedScale", Float=value)
    found = rolling(replay, 4)
    assert found.mutators == []
    assert "it names a top speed of the ball that no game has: that is left out" in found.notes
    assert compare_recordings(found, windows=2).fits[0].windows > 0


def test_cars_of_knockout_drive_jump_and_boost() -> None:
    replay = MadeReplay(KNOCKOUT)
    cars = []
    for name in ("somebody", "another"):
        player, car = (
            replay.actor("TAGame.Default__PRI_KnockOut_TA"),
            replay.actor(f"{KNOCKOUT}:CarArchetype"),
        )
        replay.tell(player, "Engine.PlayerReplicationInfo:PlayerName", String=name)
        replay.tell(car, "Engine.Pawn:PlayerReplicationInfo", ActiveActor={"actor": player})
        cars.append(car)
    boost = replay.actor(f"{KNOCKOUT}:CarArchetype.Boost")
    replay.tell(boost, "TAGame.CarComponent_TA:Vehicle", ActiveActor={"actor": cars[1]})
    replay.tell(boost, "TAGame.CarComponent_TA:ReplicatedActive", Byte=1)
    replay.tell(cars[0], "TAGame.Vehicle_TA:ReplicatedThrottle", Byte=255)
    found = rolling(replay, *cars)
    assert found.mode == "Knockout" and found.state.layout.cars == 2
    assert found.car_shown.all() and found.car_present.all()
    np.testing.assert_allclose(found.state.car_position[:, 1, 0], 1000 + 10.0 * np.arange(_FRAMES))
    assert (found.state.car_controls[:, :, 0] == [1, 0]).all()
    assert (found.state.car_controls[:, :, 6] == [0, 1]).all()
    with pytest.raises(ValueError, match="a match of Knockout, which RocketSim cannot play"):
        compare_recordings(found)
