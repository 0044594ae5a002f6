"""Game packets made field by field."""

from typing import Any

from rlbot import flat

from rlgym_bridge.game import HITBOXES, Phase


def player(**values: Any) -> flat.PlayerInfo:
    """A car on the ground, at rest, with a few fields changed."""
    box = HITBOXES[0]
    fields: dict[str, Any] = {
        "physics": flat.Physics(flat.Vector3(0, 0, 17), flat.Rotator(), flat.Vector3(), flat.Vector3()),
        "hitbox": flat.BoxShape(box.length, box.width, box.height),
        "air_state": flat.AirState.OnGround,
        "dodge_timeout": -1.0,
        "demolished_timeout": -1.0,
        "boost": 33.0,
        "player_id": 7,
        **values,
    }
    return flat.PlayerInfo(**fields)


def packet(frame: int, *players: flat.PlayerInfo, **values: Any) -> flat.GamePacket:
    pads = values.pop("boost_pads", [flat.BoostPadState(True, 0.0)] * 34)
    info = flat.MatchInfo(
        frame_num=frame, match_phase=flat.MatchPhase.Active, world_gravity_z=-650.0, game_speed=1.0
    )
    return flat.GamePacket(
        players=list(players) or [player()],
        boost_pads=pads,
        match_info=info,
        teams=[flat.TeamInfo(0, 1), flat.TeamInfo(1, 2)],
        **values,
    )


def at(frame: int, phase: int = Phase.ACTIVE, *players: flat.PlayerInfo) -> flat.GamePacket:
    made = packet(frame, *players)
    info = flat.MatchInfo(
        frame_num=frame, match_phase=flat.MatchPhase(phase), world_gravity_z=-650.0, game_speed=1.0
    )
    return flat.GamePacket(made.players, made.boost_pads, made.balls, info, made.teams, [])
