"""Write ball and cars as JSON ten times a second, so that Foxglove can draw a recording."""

import json
from typing import Any, Final

from rlbot import flat

from rlgym_bridge.recording.mcap.channels import PACKETS, STATE

_EVERY: Final = 12  # frames


def state_message(topic: str, frame: int, content: bytes) -> list[tuple[str, bytes]]:
    """Return the message to write beside a packet: none for most; see `Recorder`'s `prepare`."""
    if not topic.endswith(PACKETS) or frame % _EVERY:
        return []
    packet = flat.CorePacket.unpack(content).message
    if not isinstance(packet, flat.GamePacket):
        return []
    info = packet.match_info
    made = {
        "frame": info.frame_num,
        "phase": str(info.match_phase).rpartition(".")[2],
        "clock": round(info.game_time_remaining, 3),
        "score": [team.score for team in packet.teams],
        "ball": _body(packet.balls[0].physics) if packet.balls else None,
        "cars": [
            {
                "player_id": player.player_id,
                "team": player.team,
                "boost": round(player.boost, 1),
                **_body(player.physics),
            }
            for player in packet.players
        ],
    }
    return [(STATE, json.dumps(made).encode())]


def _body(physics: flat.Physics) -> dict[str, Any]:
    place, speed, turn = physics.location, physics.velocity, physics.rotation
    return {
        "position": [round(one, 1) for one in (place.x, place.y, place.z)],
        "velocity": [round(one, 1) for one in (speed.x, speed.y, speed.z)],
        "rotation": [round(one, 4) for one in (turn.pitch, turn.yaw, turn.roll)],
    }
