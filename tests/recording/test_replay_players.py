"""Players of replays who come, go, and share names; their replays are made by hand, as none was at hand."""

from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.compare.timed_recording import near_others
from tests.support.made_replays import MadeReplay, read_made


def test_more_than_four_players_of_a_team_are_read() -> None:
    replay = MadeReplay()
    cars = [replay.join(0, f"somebody {number}")[1] for number in range(6)]
    replay.join(1, "another")
    for step in range(3):
        for number, car in enumerate(cars):
            replay.move(car, 500.0 * number + 10 * step)
        replay.frame()
    found = read_made(replay)
    assert (found.state.layout.blue, found.state.layout.orange) == (6, 1)
    np.testing.assert_allclose(found.state.car_position[2, :6, 0], 500 * np.arange(6) + 20)
    assert found.car_shown[:, :6].all() and found.state.copy().layout.blue == 6


@pytest.mark.parametrize("account", ["", "0815"])
def test_a_player_who_comes_back_has_the_same_car(account: str) -> None:
    replay = MadeReplay()
    _, other = replay.join(1, "another")
    first = replay.join(0, "somebody", account)
    for step in range(2):
        replay.move(first[1], 10.0 * step)
        replay.move(other, 2000.0 + 10 * step)
        replay.frame()
    replay.leave(*first)
    for step in range(2, 5):
        replay.move(other, 2000.0 + 10 * step)
        replay.frame()
    _, again = replay.join(0, "somebody", account)
    for step in range(5, 7):
        replay.move(again, 3000.0)
        replay.move(other, 2000.0 + 10 * step)
        replay.frame()
    found = read_made(replay)
    assert found.state.agents == ("blue-0", "orange-0")
    assert found.car_present[:, 0].tolist() == [True] * 2 + [False] * 3 + [True] * 2
    assert found.car_shown[:, 0].tolist() == found.car_present[:, 0].tolist()
    assert found.car_shown[:, 1].all() and found.car_present[:, 1].all()
    assert found.segment.tolist() == [1, 1, 2, 2, 2, 3, 3]


def test_two_players_with_one_name_are_two() -> None:
    replay = MadeReplay()
    (_, one), (_, other) = replay.join(0, "bot"), replay.join(0, "bot")
    replay.move(one, 100.0)
    replay.move(other, 900.0)
    replay.frame()
    found = read_made(replay)
    assert found.state.layout.blue == 2
    assert found.state.car_position[0, :, 0].tolist() == [100, 900]


def test_an_account_that_is_told_late_keeps_the_car() -> None:
    replay = MadeReplay()
    player, car = replay.join(0, "somebody")
    replay.move(car, 0.0)
    replay.frame()
    unique = {"system_id": 1, "remote_id": {"Steam": "0815"}, "local_id": 0}
    replay.tell(player, "Engine.PlayerReplicationInfo:UniqueId", UniqueId=unique)
    replay.move(car, 10.0)
    replay.frame()
    replay.leave(player, car)
    replay.frame()
    _, again = replay.join(0, "another name", "0815")
    replay.move(again, 20.0)
    replay.frame()
    found = read_made(replay)
    assert found.state.layout.cars == 1 and found.car_shown[:, 0].tolist() == [True, True, False, True]


def test_who_has_left_is_near_nobody() -> None:
    replay = MadeReplay()
    _, stays = replay.join(1, "another")
    leaves = replay.join(0, "somebody")
    for step in range(40):
        if step == 4:
            replay.leave(*leaves)
        if step < 4:
            replay.move(leaves[1], 60.0 + 10 * step)
        replay.move(stays, 10.0 * step)
        replay.frame()
    near = near_others(read_made(replay))
    assert near[:4, 1].all() and not near[4:, 1].any()


def test_nothing_of_a_player_is_kept(tmp_path: Path) -> None:
    replay = MadeReplay()
    _, car = replay.join(0, "somebody", "0815")
    replay.move(car, 0.0)
    replay.frame()
    found = read_made(replay)
    kept = repr(vars(found)) + repr(vars(found.state))
    assert "somebody" not in kept and "0815" not in kept


@pytest.mark.parametrize(
    "part", ["location", "rotation", "linear_velocity", "angular_velocity", "time", "delta"]
)
def test_a_number_that_is_not_finite_is_refused(part: str) -> None:
    replay = MadeReplay()
    _, car = replay.join(0, "somebody")
    for x in range(3):
        replay.move(car, 10.0 * x)
        replay.frame()
    made = replay.parsed()
    frame = made["network_frames"]["frames"][2]
    if part in frame:
        frame[part] = None
    else:
        frame["updated_actors"][0]["attribute"]["RigidBody"][part]["x"] = None
    with pytest.raises(ValueError, match=r"has a number that is not finite in frame 2: is the file whole"):
        read_made(made)
