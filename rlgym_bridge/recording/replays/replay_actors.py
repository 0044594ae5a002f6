"""Follow the numbered actors of a replay: bodies, players and parts of cars.

Players' names serve to tell players apart while a replay is read, and are not kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rlgym_bridge.game import (
    BOOST_PER_SECOND,
    HITBOX_OF_BODY,
    KICKOFF_BOOST,
    Phase,
)

BODY: Final = "ReplicatedRBState"
_CAR: Final = "Archetypes.Car.Car_"
_BALL: Final = "Archetypes.Ball.Ball_"
_PHASES: Final = {
    "Countdown": Phase.COUNTDOWN,
    "Active": Phase.ACTIVE,
    "PostGoalScored": Phase.GOAL_SCORED,
    "ReplayPlayback": Phase.REPLAY,
    "Finished": Phase.ENDED,
}
_LINKS: Final = ("PlayerReplicationInfo", "Team", "Vehicle")
_PART: Final = "Archetypes.CarComponents.CarComponent_"
_FULL: Final = 255.0  # a full tank of boost


@dataclass
class ReplayCar:
    """A player's car with all that the frames so far say of it.

    Attributes:
        team: 0 blue, 1 orange.
        hitbox: Of `game.HITBOXES`, as the loadout's body says.
        body: The rigid body as last shown, or None.
        shown: Whether that was in this frame.
        throttle, steer, handbrake: As last told.
        boost: 0..100, as last told, less what burning has taken since.
        active: Which parts of the car act: `Boost`, `Jump`, `DoubleJump`, `Dodge`.
        pressed: Whether a double jump or a dodge begins in this frame.
    """

    team: int
    hitbox: int
    body: Mapping[str, Any] | None = None
    shown: bool = False
    throttle: float = 0.0
    steer: float = 0.0
    handbrake: bool = False
    boost: float = KICKOFF_BOOST
    active: dict[str, bool] = field(default_factory=dict)
    pressed: bool = False

    def controls(self) -> tuple[float, ...]:
        """Return the controls in the order of `CONTROL_NAMES`; pitch, yaw and roll are not told."""
        jump = self.pressed or self.active.get("Jump", False)
        return self.throttle, self.steer, 0, 0, 0, jump, self.active.get("Boost", False), self.handbrake

    def update(self, part: str, name: str, attribute: Mapping[str, Any]) -> None:
        """Take in what a frame tells of the car, or of a part of it."""
        if name == BODY:
            self.body, self.shown = attribute["RigidBody"], True
        elif name == "ReplicatedThrottle":
            self.throttle = _stick(attribute["Byte"])
        elif name == "ReplicatedSteer":
            self.steer = _stick(attribute["Byte"])
        elif name == "bReplicatedHandbrake":
            self.handbrake = attribute["Boolean"]
        elif name == "ReplicatedActive":
            active = bool(attribute["Byte"] % 2)
            self.pressed |= part in ("DoubleJump", "Dodge") and active and not self.active.get(part, False)
            self.active[part] = active
        elif name == "ReplicatedBoostAmount":
            self.boost = attribute["Byte"] / _FULL * 100
        elif name == "ReplicatedBoost":
            self.boost = attribute["ReplicatedBoost"]["boost_amount"] / _FULL * 100


class Actors:
    """The actors of a replay, brought forward frame by frame.

    Attributes:
        seats: Players with cars, by what tells them apart, in the order of their first frame.
        ball: The ball's rigid body as last shown, or None.
        ball_shown: Whether that was in this frame.
        cut: Whether this frame does not follow on the one before: the match's phase changes, a car is
            demolished, or comes or goes.
        phase: Of `game.Phase`.
        clock: Seconds on the clock.
    """

    def __init__(self, objects: Sequence[str], names: Sequence[str]) -> None:
        self._objects, self._names = objects, names
        self._kinds: dict[int, str] = {}
        self._links: dict[tuple[int, str], int] = {}
        self._player_names: dict[int, str] = {}
        self._bodies: dict[tuple[int, int], int] = {}  # of a player and team: what the loadout has
        self.seats: dict[tuple[str, int], ReplayCar] = {}
        self.ball: Mapping[str, Any] | None = None
        self.ball_shown = self.cut = False
        self.phase, self.clock = Phase.INACTIVE, 0

    def advance(self, frame: Mapping[str, Any]) -> None:
        """Take in a frame."""
        self.cut = self.ball_shown = False
        for seat in self.seats.values():
            seat.shown = seat.pressed = False
            if seat.active.get("Boost"):
                seat.boost = max(0.0, seat.boost - BOOST_PER_SECOND * float(frame["delta"]))
        for actor in frame["deleted_actors"]:
            self.cut |= self._kinds.pop(actor, "").startswith(_CAR)
        for new in frame["new_actors"]:
            self._begin(new["actor_id"], self._objects[new["object_id"]])
        updates = [
            (one["actor_id"], self._objects[one["object_id"]].rpartition(":")[2], one["attribute"])
            for one in frame["updated_actors"]
        ]
        for actor, name, attribute in updates:  # who is who first: what else is told needs it
            self._relate(actor, name, attribute)
        for actor, name, attribute in updates:
            kind = self._kinds.get(actor, "")
            if kind.startswith(_BALL) and name == BODY:
                self.ball, self.ball_shown = attribute["RigidBody"], True
            elif kind.startswith((_PART, _CAR)):
                car = actor if kind.startswith(_CAR) else self._links.get((actor, "Vehicle"), -1)
                owner = self._seat(car)
                if owner is not None:
                    owner.update(kind.removeprefix(_PART), name, attribute)
            self._update_match(name, attribute)

    def _begin(self, actor: int, kind: str) -> None:
        """Begin an actor. A keyframe begins all anew, and tells what is not as it is at first."""
        if kind.startswith(_CAR):
            seat = self._seat(actor)
            self.cut |= self._kinds.get(actor) != kind
            if seat is not None:
                seat.throttle = seat.steer = 0.0
                seat.handbrake = False
        if self._kinds.get(actor) != kind:
            for link in _LINKS:
                self._links.pop((actor, link), None)
        self._kinds[actor] = kind

    def _relate(self, actor: int, name: str, attribute: Mapping[str, Any]) -> None:
        if name in _LINKS:
            self._links[actor, name] = attribute["ActiveActor"]["actor"]
        elif name == "PlayerName":
            self._player_names[actor] = attribute["String"]
        elif name == "ClientLoadouts" and "TeamLoadout" in attribute:
            for team, colour in enumerate(("blue", "orange")):
                self._bodies[actor, team] = attribute["TeamLoadout"][colour]["body"]

    def _seat(self, car: int) -> ReplayCar | None:
        """Return the seat of a car; None while frames have not told whose it is."""
        player = self._links.get((car, "PlayerReplicationInfo"), -1)
        team_kind = self._kinds.get(self._links.get((player, "Team"), -1), "")
        if player not in self._player_names or team_kind[-1:] not in ("0", "1"):
            return None
        team = int(team_kind[-1])
        key = self._player_names[player], team
        if key not in self.seats:
            self.seats[key] = ReplayCar(team, HITBOX_OF_BODY.get(self._bodies.get((player, team), -1), 0))
        return self.seats[key]

    def _update_match(self, name: str, attribute: Mapping[str, Any]) -> None:
        if name == "ReplicatedStateName":
            phase = _PHASES.get(self._names[attribute["Int"]], Phase.INACTIVE)
            self.cut |= phase != self.phase
            self.phase = phase
        elif name == "SecondsRemaining":
            self.clock = attribute["Int"]
        elif "Demolish" in name:
            self.cut = True


def _stick(byte: int) -> float:
    """Return -1..1 of a byte: 0 is -1, 128 is 0, 255 is 1."""
    return max(-1.0, (byte - 128) / 127)
