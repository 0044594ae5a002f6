"""Replays that are made by hand: their players, balls, modes and mutators."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.timed_recording import near_others
from rlgym_bridge.game import CONTROL_NAMES, Phase
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.recording.replays import replay_recording
from rlgym_bridge.recording.replays.replay_recording import read_replay

MATCH = "Archetypes.GameEvent.GameEvent_Soccar"
BALL = "Archetypes.Ball.Ball_Default"
_CAR, _PLAYER = "Archetypes.Car.Car_Default", "TAGame.Default__PRI_TA"
_TEAMS = ("Archetypes.Teams.Team0", "Archetypes.Teams.Team1")


class MadeReplay:
    """A replay of 30 frames a second that is written frame by frame."""

    def __init__(self, *kinds: str, arena: str = "Stadium_P") -> None:
        self._arena = arena
        self._objects: list[str] = []
        self._frames: list[dict[str, Any]] = []
        self._new: dict[int, str] = {}
        self._gone: list[int] = []
        self._updates: list[tuple[int, str, dict[str, Any]]] = []
        self._used = 0
        self._teams = [self.actor(kind) for kind in _TEAMS]
        for kind in kinds or (MATCH, BALL):
            self.actor(kind)

    def actor(self, kind: str) -> int:
        """Begin an actor with the next frame, and return its number."""
        self._used += 1
        self._new[self._used] = kind
        return self._used

    def tell(self, actor: int, name: str, **attribute: Any) -> None:
        """Tell an attribute of an actor with the next frame."""
        self._updates.append((actor, name, attribute))

    def join(self, team: int, name: str, account: str = "") -> tuple[int, int]:
        """Have a player join with a car; return the numbers of both actors."""
        player, car = self.actor(_PLAYER), self.actor(_CAR)
        self.tell(player, "Engine.PlayerReplicationInfo:PlayerName", String=name)
        self.tell(player, "Engine.PlayerReplicationInfo:Team", ActiveActor={"actor": self._teams[team]})
        self.tell(car, "Engine.Pawn:PlayerReplicationInfo", ActiveActor={"actor": player})
        if account:
            unique = {"system_id": 1, "remote_id": {"Steam": account}, "local_id": 0}
            self.tell(player, "Engine.PlayerReplicationInfo:UniqueId", UniqueId=unique)
        return player, car

    def leave(self, *actors: int) -> None:
        """End actors with the next frame."""
        self._gone += actors

    def move(self, actor: int, x: float, speed: float = 300.0) -> None:
        """Show a body on the floor, which drives along x."""
        body = {
            "location": {"x": x, "y": 0.0, "z": 17.0},
            "rotation": {"w": 1.0, "x": 0.0, "y": 0.0, "z": 0.0},
            "linear_velocity": {"x": speed, "y": 0.0, "z": 0.0},
            "angular_velocity": {"x": 0.0, "y": 0.0, "z": 0.0},
        }
        self.tell(actor, "TAGame.RBActor_TA:ReplicatedRBState", RigidBody=body)

    def frame(self) -> None:
        """End the frame."""
        self._frames.append({
            "time": len(self._frames) / 30, "delta": 1 / 30, "deleted_actors": self._gone,
            "new_actors": [
                {"actor_id": actor, "object_id": self._object(kind)} for actor, kind in self._new.items()
            ],
            "updated_actors": [
                {"actor_id": actor, "object_id": self._object(name), "attribute": attribute}
                for actor, name, attribute in self._updates
            ],
        })  # fmt: skip
        self._new, self._gone, self._updates = {}, [], []

    def parsed(self) -> dict[str, Any]:
        """Return what the parser would make of the file."""
        return {
            "net_version": 10, "objects": self._objects, "names": ["Countdown", "Active"],
            "properties": {"MapName": self._arena}, "network_frames": {"frames": self._frames},
        }  # fmt: skip

    def _object(self, name: str) -> int:
        if name not in self._objects:
            self._objects.append(name)
        return self._objects.index(name)


def read_made(replay: MadeReplay | dict[str, Any]) -> Recording:
    """Return a made replay, or what it parses to, as `read_replay` reads it, without the parser of files."""

    class Parsed(dict):  # type: ignore[type-arg]
        name = "made.replay"

    with mock.patch.object(replay_recording, "_parse", lambda path: path):
        return read_replay(Parsed(replay if isinstance(replay, dict) else replay.parsed()))  # type: ignore[arg-type]


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


def test_a_ball_is_shown_only_in_frames_that_move_it() -> None:
    replay = MadeReplay()
    for number in range(6):
        if number % 3 == 1:
            replay.move(4, 10.0 * number)
        replay.frame()
    found = read_made(replay)
    assert found.ball_shown.tolist() == [False, True, False, False, True, False]
    assert found.state.ball_position[1:, 0].tolist() == [10, 10, 10, 40, 40]


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


_ACTIVE = "TAGame.CarComponent_TA:ReplicatedActive"


def orange_car() -> tuple[MadeReplay, int, int, int]:
    """Return a replay that begins with a car of orange, and the numbers of the car, its boost and dodge."""
    replay = MadeReplay()
    car = replay.join(1, "somebody")[1]
    parts = [replay.actor(f"Archetypes.CarComponents.CarComponent_{name}") for name in ("Boost", "Dodge")]
    for part in parts:
        replay.tell(part, "TAGame.CarComponent_TA:Vehicle", ActiveActor={"actor": car})
    return replay, car, *parts


def controls(found: Recording, name: str) -> list[float]:
    return found.state.car_controls[:, 0, CONTROL_NAMES.index(name)].tolist()


@pytest.mark.parametrize(("byte", "stick"), [(0, -1.0), (1, -1.0), (128, 0.0), (255, 1.0)])
def test_a_stick_is_a_byte_with_its_middle_at_128(byte: int, stick: float) -> None:
    replay, car, *_ = orange_car()
    replay.tell(car, "TAGame.Vehicle_TA:ReplicatedSteer", Byte=byte)
    replay.frame()
    found = read_made(replay)
    assert controls(found, "steer") == [stick] and found.state.agents == ("orange-0",)


def test_boost_burns_between_what_is_told_of_it() -> None:
    replay, _, boost, _ = orange_car()
    replay.tell(boost, "TAGame.CarComponent_Boost_TA:ReplicatedBoostAmount", Byte=51)
    replay.tell(boost, _ACTIVE, Byte=3)
    for number in range(41):
        if number == 40:
            replay.tell(boost, _ACTIVE, Byte=4)
        replay.frame()
    found = read_made(replay)
    assert found.state.car_boost_amount[[0, 9, 40], 0].tolist() == pytest.approx([20, 10, 0], abs=0.01)
    assert controls(found, "boost") == [1] * 40 + [0]


def test_a_dodge_is_one_press_of_jump() -> None:
    replay, _, _, dodge = orange_car()
    for byte in (1, None, 2):
        if byte is not None:
            replay.tell(dodge, _ACTIVE, Byte=byte)
        replay.frame()
    assert controls(read_made(replay), "jump") == [1, 0, 0]


def test_a_keyframe_begins_a_known_car_anew_without_a_cut() -> None:
    replay, car, *_ = orange_car()
    replay.tell(car, "TAGame.Vehicle_TA:ReplicatedThrottle", Byte=255)
    replay.frame()
    replay._new[car] = _CAR
    replay.frame()
    found = read_made(replay)
    assert controls(found, "throttle") == [1, 0] and len(set(found.segment)) == 1


def test_a_change_of_phase_cuts_and_a_repeated_one_does_not() -> None:
    replay, *_ = orange_car()
    for name in (0, 1, 1):
        replay.tell(3, "TAGame.GameEvent_TA:ReplicatedStateName", Int=name)
        replay.frame()
    found = read_made(replay)
    assert found.state.phase.tolist() == [Phase.COUNTDOWN, Phase.ACTIVE, Phase.ACTIVE]
    assert np.diff(found.segment).tolist() == [1, 0]


GODBALL = "gameinfo_godball.GameInfo.gameinfo_godball:Archetype"


def read(*kinds: str, arena: str = "Stadium_P", **told: Any) -> Recording:
    replay = MadeReplay(*kinds, arena=arena)
    replay.join(0, "somebody")
    for name, value in told.items():
        replay.tell(3, f"TAGame.Any_TA:{name}", Value=value)
    replay.frame()
    return read_made(replay)


@pytest.mark.parametrize(
    ("kinds", "mode"),
    [
        ((MATCH, BALL), "Soccar"),
        (("Archetypes.GameEvent.GameEvent_SoccarPrivate", BALL), "Soccar"),
        (("Archetypes.GameEvent.GameEvent_Season", BALL), "Soccar"),
        (("Archetypes.GameEvent.GameEvent_Basketball", "Archetypes.Ball.Ball_BasketBall"), "Hoops"),
        (("Archetypes.GameEvent.GameEvent_BasketballPrivate", "Archetypes.Ball.Ball_Basketball"), "Hoops"),
        (("Archetypes.GameEvent.GameEvent_Breakout", "Archetypes.Ball.Ball_Breakout"), "Dropshot"),
        (("Archetypes.GameEvent.GameEvent_HockeySplitscreen", "Archetypes.Ball.Ball_Puck"), "Snowday"),
        ((MATCH, "Archetypes.Ball.Ball_Puck"), "Snowday"),
        ((GODBALL, "Archetypes.Ball.Ball_God"), "Heatseeker"),
        (("Archetypes.GameEvent.GameEvent_Items", BALL), "Rumble"),
        ((MATCH, BALL, "Archetypes.SpecialPickups.SpecialPickup_Tornado"), "Rumble"),
        ((MATCH, BALL, "TAGame.Default__RumblePickups_TA"), "Soccar"),  # it is in every match of today
        (("GameInfo_FootBall.GameInfo.GameInfo_FootBall:Archetype", BALL), "Gridiron"),
        (("GameInfo_LTM_SuperCube.GameInfo.GameInfo_LTM_SuperCube:Archetype", BALL), "LTM_SuperCube"),
    ],
)  # fmt: skip
def test_a_replay_names_its_mode(kinds: tuple[str, ...], mode: str) -> None:
    found = read(*kinds)
    assert found.mode == mode and found.mutators == []
    assert (mode == "Soccar") == (f"the match is one of {mode}" not in found.notes)


def test_an_arena_names_its_mode_too() -> None:
    assert read(MATCH, BALL, arena="HoopsStadium_P").mode == "Hoops"
    assert read(MATCH, BALL, arena="ShatterShot_P").mode == "Dropshot"
    assert read(MATCH, BALL, arena="NeoTokyo_Standard_P").mutators == []
    assert read(MATCH, BALL, arena="Labs_Octagon_02_P").mutators == [
        "arena labs_octagon_02_p, whose shape is not the standard one"
    ]


@pytest.mark.parametrize(
    ("told", "mutators"),
    [
        ({"ReplicatedBallGravityScale": 0.5}, ["gravity of the ball 0.5 in place of 1"]),
        ({"ReplicatedWorldBounceScale": 0.25}, ["bounciness of the ball 0.25 in place of 1"]),
        ({"ReplicatedBallScale": 1.0, "ReplicatedWorldBounceScale": 1.0}, []),
        ({"BoostModifier": 2.0}, ["strength of boost 2 in place of 1"]),
        ({"TotalGameBalls": 2}, ["number of balls 2 in place of 1"]),
        ({"bUnlimitedJumps": True}, ["unlimited jumps"]),
        ({"bUnlimitedJumps": False, "bUnlimitedBoost": True}, []),
        (
            {"MatchSettings": {"mutators": ["20Minutes", "LowGravity,Max5", "UnlimitedBooster", "BotsNone"]}},
            ["mutator LowGravity"],
        ),
        ({"MatchSettings": {"mutators": [], "game_name": "LowGravity", "password": "HighGravity"}}, []),
    ],
)
def test_mutators_that_change_the_physics_are_named(told: dict[str, Any], mutators: list[str]) -> None:
    assert read(**told).mutators == mutators


def test_another_ball_is_named() -> None:
    assert read(MATCH, "Archetypes.Ball.CubeBall").mutators == ["ball cubeball"]


@pytest.mark.parametrize(
    ("kinds", "told", "message"),
    [
        (
            ("Archetypes.GameEvent.GameEvent_Basketball", BALL),
            {},
            r"made.replay is a match of Hoops, which RocketSim cannot play here: .*no collision meshes",
        ),
        (("Archetypes.GameEvent.GameEvent_Items", BALL), {}, r"a match of Rumble, .*none of its items"),
    ],
)
def test_what_rocketsim_does_not_play_is_not_compared(
    kinds: tuple[str, ...], told: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        compare_recordings(read(*kinds, **told))


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


def test_nothing_of_a_player_is_kept() -> None:
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
