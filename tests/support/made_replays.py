"""Replays made by hand, in the form in which the parser gives them: players join, move and leave."""

from typing import Any
from unittest import mock

from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.recording.replays import replay_recording

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
            "net_version": 10, "objects": self._objects, "names": [], "properties": {"MapName": self._arena},
            "network_frames": {"frames": self._frames},
        }  # fmt: skip

    def _object(self, name: str) -> int:
        if name not in self._objects:
            self._objects.append(name)
        return self._objects.index(name)


def read_made(replay: "MadeReplay | dict[str, Any]") -> Recording:
    """Return a made replay, or what it parses to, as `read_replay` reads it, without the parser of files."""

    class Parsed(dict):  # type: ignore[type-arg]
        name = "made.replay"

    with mock.patch.object(replay_recording, "_parse", lambda path: path):
        return replay_recording.read_replay(Parsed(replay if isinstance(replay, dict) else replay.parsed()))  # type: ignore[arg-type]
