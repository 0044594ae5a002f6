"""Modes and mutators that replays name; only soccar was at hand, the others are made by hand from names."""

from typing import Any

import pytest

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.recording.replays.replay_recording import read_replay
from tests.support.made_replays import BALL, MATCH, MadeReplay, read_made
from tests.support.real_data import real

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
        ((MATCH, BALL), {"BoostModifier": 2.0}, r"played with strength of boost 2 .*compare a match without"),
    ],
)
def test_what_rocketsim_does_not_play_is_not_compared(
    kinds: tuple[str, ...], told: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        compare_recordings(read(*kinds, **told))


@pytest.mark.parametrize("name", ["1_AERIAL", "3_DRIBBLE_2_FLICKS"])
def test_real_replays_are_soccar_without_mutators(name: str) -> None:
    pytest.importorskip("subtr_actor")
    found = read_replay(real(f"replays/{name}.replay"))
    assert (found.mode, found.mutators) == ("Soccar", [])
    assert found.car_present[found.car_shown].all()
