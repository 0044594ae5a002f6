"""Follow the numbered actors of a replay, and recognise by them which game is played; names are not kept.

The names of kinds are boxcars' (subtr-actor-py 1.5.1) and RLBotServer's; only replays of soccar were at hand.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rlgym_bridge.game import BLUE, BOOST_PER_SECOND, HITBOX_OF_BODY, KICKOFF_BOOST, ORANGE, Phase

BODY: Final = "ReplicatedRBState"
_CAR: Final = re.compile(r"Archetypes\.Car\.Car_|[^:]+:CarArchetype$")
"""Kinds of cars. Season, Knockout and free play name theirs after their game events [boxcars]."""
_BALL: Final = "Archetypes.Ball."
_PHASES: Final = {
    "Countdown": Phase.COUNTDOWN,
    "Active": Phase.ACTIVE,
    "PostGoalScored": Phase.GOAL_SCORED,
    "ReplayPlayback": Phase.REPLAY,
    "Finished": Phase.ENDED,
}
_LINKS: Final = ("PlayerReplicationInfo", "Team", "Vehicle")
_PART: Final = re.compile(r"(?:Archetypes\.CarComponents\.CarComponent_|[^:]+:CarArchetype\.)(.+)")
_TOGETHER: Final = 10  # frames that show several balls; one that is replaced may overlap with the next
_FULL: Final = 255.0  # a full tank of boost


@dataclass
class ReplayCar:
    """A player's car with all that the frames so far say of it."""

    team: int
    hitbox: int  # of `game.HITBOXES`, as the loadout's body says
    body: Mapping[str, Any] | None = None  # the rigid body as last shown, or None
    shown: bool = False  # whether that was in this frame
    # whether the player has a car now: not before joining, after leaving, or while demolished
    there: bool = False
    throttle: float = 0.0
    steer: float = 0.0
    handbrake: bool = False
    boost: float = KICKOFF_BOOST  # 0..100, as last told, less what burning has taken since
    # parts of the car that act: `Boost`, `Jump`, `DoubleJump`, `Dodge`
    active: dict[str, bool] = field(default_factory=dict)
    pressed: bool = False  # whether a double jump or a dodge begins in this frame

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

    `cars` has one for each player and team, in the order of their first frame. `ball` is the rigid body as
    last shown, or None; of several balls it is the first, until that ends. `ball_shown` tells whether this
    frame has it. `cut` tells that this frame does not follow on the one before: the phase changes, a car is
    demolished, or comes or goes. `clock` has seconds.
    """

    def __init__(self, objects: Sequence[str], names: Sequence[str], arena: str = "") -> None:
        self._objects, self._names = objects, names
        self.game = GameKind(arena)
        self._kinds: dict[int, str] = {}
        self._links: dict[tuple[int, str], int] = {}
        self._player_names: dict[int, str] = {}
        self._player_ids: dict[int, str] = {}
        self._persons: dict[int, str] = {}  # of a player's actor: what tells the person from others
        self._car_of: dict[tuple[str, int], ReplayCar] = {}  # of a person and team
        self._bodies: dict[tuple[int, int], int] = {}  # of a player and team: what the loadout has
        self.cars: list[ReplayCar] = []
        self._ball_actor = -1
        self._ball_counts: Counter[int] = Counter()  # frames by how many balls they show
        self.ball: Mapping[str, Any] | None = None
        self.ball_shown = self.cut = False
        self.phase, self.clock = Phase.INACTIVE, 0

    def advance(self, frame: Mapping[str, Any]) -> None:
        """Take in a frame."""
        self.cut = self.ball_shown = False
        for car in self.cars:
            car.shown = car.pressed = car.there = False
            if car.active.get("Boost"):
                car.boost = max(0.0, car.boost - BOOST_PER_SECOND * float(frame["delta"]))
        for actor in frame["deleted_actors"]:
            self._end(actor)
        for new in frame["new_actors"]:
            self._begin(new["actor_id"], self._objects[new["object_id"]])
        updates = [
            (one["actor_id"], self._objects[one["object_id"]].rpartition(":")[2], one["attribute"])
            for one in frame["updated_actors"]
        ]
        for actor, name, attribute in updates:  # who is who first: what else is told needs it
            self._relate(actor, name, attribute)
        balls = set()
        for actor, name, attribute in updates:
            kind = self._kinds.get(actor, "")
            part, is_car = _PART.match(kind), _CAR.match(kind)
            if kind.startswith(_BALL) and name == BODY:
                balls.add(actor)
                if self._ball_actor not in self._kinds:
                    self._ball_actor = actor
                if actor == self._ball_actor:
                    self.ball, self.ball_shown = attribute["RigidBody"], True
            elif part or is_car:
                owner = self._find_car(actor if is_car else self._links.get((actor, "Vehicle"), -1))
                if owner is not None:
                    owner.update(part[1] if part else kind, name, attribute)
            self._update_match(name, attribute)
        self._ball_counts[len(balls)] += 1
        if len(balls) > 1 and self._ball_counts[len(balls)] >= _TOGETHER:
            self.game.hear("TotalGameBalls", {"Int": len(balls)})
        for actor, kind in self._kinds.items():
            if _CAR.match(kind) and (owner := self._find_car(actor)) is not None:
                owner.there = True

    def _end(self, actor: int) -> None:
        """End an actor. A player who comes back has another one."""
        if _CAR.match(self._kinds.get(actor, "")):
            self.cut = True
            if (owner := self._find_car(actor)) is not None:
                owner.active.clear()
        self._kinds.pop(actor, None)
        self._forget(actor)

    def _forget(self, actor: int) -> None:
        for link in _LINKS:
            self._links.pop((actor, link), None)
        for told in (self._player_names, self._player_ids, self._persons):
            told.pop(actor, None)

    def _begin(self, actor: int, kind: str) -> None:
        """Begin an actor. A keyframe begins all anew, and tells what is not as it is at first."""
        if _CAR.match(kind):
            car = self._find_car(actor)
            self.cut |= self._kinds.get(actor) != kind
            if car is not None:
                car.throttle = car.steer = 0.0
                car.handbrake = False
        if self._kinds.get(actor) != kind:
            self._forget(actor)
            self.game.meet(kind)
        self._kinds[actor] = kind

    def _relate(self, actor: int, name: str, attribute: Mapping[str, Any]) -> None:
        if name in _LINKS:
            self._links[actor, name] = attribute["ActiveActor"]["actor"]
        elif name == "PlayerName":
            if self._player_names.get(actor, attribute["String"]) != attribute["String"]:
                self._persons.pop(actor, None)
            self._player_names[actor] = attribute["String"]
        elif name == "UniqueId":
            self._know(actor, attribute["UniqueId"])
        elif name == "ClientLoadouts" and "TeamLoadout" in attribute:
            for team, colour in enumerate(("blue", "orange")):
                self._bodies[actor, team] = attribute["TeamLoadout"][colour]["body"]

    def _know(self, actor: int, unique: Mapping[str, Any]) -> None:
        """Take in the id of a player's account; one without an account, such as a bot, has none."""
        person = f"id {unique}"
        if not unique.get("system_id") or self._player_ids.get(actor) == person:
            return
        self._player_ids[actor] = person
        before = self._persons.pop(actor, None)
        for team in (BLUE, ORANGE):  # the car of who was known by name so far
            if before is not None and (person, team) not in self._car_of and (before, team) in self._car_of:
                self._car_of[person, team] = self._car_of.pop((before, team))

    def _person(self, player: int) -> str:
        """Return what tells a player from others: the account, or the name where there is none."""
        if player in self._player_ids:
            return self._player_ids[player]
        if player not in self._persons:
            person = f"name {self._player_names[player]}"
            while person in self._persons.values():
                person += " again"
            self._persons[player] = person
        return self._persons[player]

    def _find_car(self, actor: int) -> ReplayCar | None:
        """Return the player's car that an actor is; None while frames have not told whose it is."""
        player = self._links.get((actor, "PlayerReplicationInfo"), -1)
        team_kind = self._kinds.get(self._links.get((player, "Team"), -1), "")
        if team_kind[-1:] not in ("0", "1") and self.game.mode == "Knockout":
            team_kind = "0"  # everybody is against everybody
        if player not in self._player_names or team_kind[-1:] not in ("0", "1"):
            return None
        team = int(team_kind[-1])
        key = self._person(player), team
        if key not in self._car_of:
            car = ReplayCar(team, HITBOX_OF_BODY.get(self._bodies.get((player, team), -1), 0))
            self._car_of[key] = car
            self.cars.append(car)
        return self._car_of[key]

    def _update_match(self, name: str, attribute: Mapping[str, Any]) -> None:
        if name == "ReplicatedStateName":
            phase = _PHASES.get(self._names[attribute["Int"]], Phase.INACTIVE)
            self.cut |= phase != self.phase
            self.phase = phase
        elif name == "SecondsRemaining":
            self.clock = attribute["Int"]
        elif "Demolish" in name:
            self.cut = True
        else:
            self.game.hear(name, attribute)


def _stick(byte: int) -> float:
    """Return -1..1 of a byte: 0 is -1, 128 is 0, 255 is 1."""
    return max(-1.0, (byte - 128) / 127)


_EVENT: Final = re.compile(r"Archetypes\.(?:GameEvent|KnockOut)\.GameEvent_([A-Za-z]+)", re.IGNORECASE)
_GAME: Final = re.compile(r"GameInfo_(\w+)\.\w+\.GameInfo_\w+:", re.IGNORECASE)
_BALL_KIND: Final = re.compile(r"Archetypes\.Ball\.(?!BallComponent|BallSpawner|\w*Spawner)(\w+)$")
_WITHOUT: Final = re.compile(r"(private|splitscreen|lan)$")
_MODES: Final = {
    "soccar": "Soccar", "season": "Soccar", "fte": "Soccar", "tutorial": "Soccar",
    "basketball": "Hoops", "breakout": "Dropshot", "hockey": "Snowday", "items": "Rumble",
    "godball": "Heatseeker", "football": "Gridiron", "knockout": "Knockout",
}  # fmt: skip
"""Modes by what the names of their game events and game infos have in the middle, in lower case."""

_BALLS: Final = {
    "ball_default": "Soccar", "ball_training": "Soccar", "ball_puck": "Snowday", "ball_god": "Heatseeker",
    "ball_basketball": "Hoops", "ball_breakout": "Dropshot", "ball_football": "Gridiron",
}  # fmt: skip
_ARENAS: Final = {"hoops": "Hoops", "shattershot": "Dropshot"}
"""Modes by how the names of their arenas begin, in lower case."""

_ODD_ARENAS: Final = ("labs_", "arc_p", "wasteland_p", "wasteland_night_p", "neotokyo_p", "throwback")
"""Beginnings of the names of arenas for soccar whose shape is not the standard one."""

_NEUTRAL: Final = {
    "ReplicatedBallScale": ("size of the ball", 1.0),
    "ReplicatedBallGravityScale": ("gravity of the ball", 1.0),
    "ReplicatedBallMaxLinearSpeedScale": ("top speed of the ball", 1.0),
    "ReplicatedWorldBounceScale": ("bounciness of the ball", 1.0),
    "ReplicatedAddedCarBounceScale": ("bounciness of cars against the ball", 1.0),
    "AddedBallForceMultiplier": ("force of hits", 1.0),
    "AddedCarForceMultiplier": ("force of bumps", 1.0),
    "ReplicatedCarScale": ("size of cars", 1.0),
    "ReplicatedCarMaxLinearSpeedScale": ("top speed of cars", 1.0),
    "BoostModifier": ("strength of boost", 1.0),
    "TotalGameBalls": ("number of balls", 1),
}
"""Attributes that say a mutator, for people, and the value at which it changes nothing."""

_OWN: Final = {("Snowday", "ReplicatedWorldBounceScale"): 0.25}
"""Values that change nothing in a mode: the puck's [two public replays of Snowday, in every keyframe]."""

_LEAST, _MOST_SCALE = 1e-3, 100.0  # beyond these a number was misread: some have a top speed of 1.9e27

_FLAGS: Final = {"bUnlimitedJumps": "unlimited jumps", "bUnlimitedTimeForDodge": "unlimited time for a dodge"}
_HARMLESS: Final = re.compile(
    r"(\d+Minutes|UnlimitedTime|MaxTime\w*|Max\d*|Overtime\w*|\d+Games|Bots\w*|\w*Respawn|DisableGoalDelay"
    r"|NoDemolish|DemolishAll|AlwaysDemolish\w*|\w*Booster|\w*Recharge|\w*Score\d+|Possession\w*"
    r"|ThirtySeconds|HauntedAudio|None|Default)",
    re.IGNORECASE,
)
"""Names of mutators that change neither what moves bodies nor the shape of anything."""

_WORD: Final = re.compile(r"\w{1,40}")


class GameKind:
    """The game that a replay shows, as far as its frames have told; its arena may be empty.

    Attributes:
        nonsense: Settings, for people, of which a value was told that no game has; it does not count.
    """

    def __init__(self, arena: str = "") -> None:
        self._arena = arena.lower()
        self.nonsense: dict[str, None] = {}
        self._events: dict[str, None] = {}  # in the order of appearance
        self._balls: dict[str, None] = {}
        self._mutators: dict[str, None] = {}
        self._scales: dict[tuple[str, float], None] = {}  # attributes of `_NEUTRAL`, as told
        for begins, mode in _ARENAS.items():
            if self._arena.startswith(begins):
                self._events[mode] = None
        if self._arena.startswith(_ODD_ARENAS):
            self._mutators[f"arena {self._arena}, whose shape is not the standard one"] = None

    @property
    def mode(self) -> str:
        """Name of the mode: RLBot's names, several joined by "and", or what the replay calls it."""
        told = [one for one in self._events if one != "Soccar"]
        if not told:
            told = [_BALLS[one] for one in self._balls if _BALLS.get(one, "Soccar") != "Soccar"]
        return " and ".join(dict.fromkeys(told)) or "Soccar"

    @property
    def mutators(self) -> list[str]:
        """Differences from the rules of the mode, for people; empty where there are none."""
        own = {"Soccar", self.mode}
        odd = [f"ball {one.removeprefix('ball_')}" for one in self._balls if _BALLS.get(one) not in own]
        return [*odd, *self._mutators, *(one for pair in self._scales if (one := self._scaled(*pair)))]

    @property
    def notes(self) -> list[str]:
        """Sentences on what was played, if not soccar without mutators, and on misread numbers."""
        notes = [] if self.mode == "Soccar" else [f"the match is one of {self.mode}"]
        notes += [f"it was played with {', '.join(self.mutators)}"] if self.mutators else []
        return notes + [f"it names a {what} that no game has: that is left out" for what in self.nonsense]

    def _scaled(self, name: str, value: float) -> str:
        """Return a mutator in words; "" for a value that changes nothing in the mode."""
        what, neutral = _NEUTRAL[name]
        neutral = _OWN.get((self.mode, name), neutral)
        return f"{what} {value:g} in place of {neutral:g}" if abs(value - neutral) > _LEAST else ""

    def meet(self, kind: str) -> None:
        """Take in an actor's kind."""
        if event := _EVENT.match(kind) or _GAME.match(kind):
            name = _WITHOUT.sub("", event[1].lower())
            self._events[_MODES.get(name, event[1])] = None
        elif ball := _BALL_KIND.match(kind):
            self._balls[ball[1].lower()] = None  # cases differ: Ball_BasketBall, Ball_Basketball
        elif "SpecialPickup" in kind:
            self._events["Rumble"] = None

    def hear(self, name: str, attribute: Mapping[str, Any]) -> None:
        """Take in an attribute of any actor, by the end of its name."""
        if name in _NEUTRAL:
            value = next(iter(attribute.values()))
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if number and (value == 0 or _LEAST <= value <= _MOST_SCALE):
                self._scales[name, value] = None
            elif number:
                self.nonsense[_NEUTRAL[name][0]] = None
        elif name in _FLAGS and any(value is True for value in attribute.values()):
            self._mutators[_FLAGS[name]] = None
        elif name == "MatchSettings":
            self._hear_settings(next(iter(attribute.values())))

    def _hear_settings(self, settings: Any) -> None:
        """Take in the settings of a private match; its name and password are not looked at."""
        names = settings.get("mutators") if isinstance(settings, Mapping) else None
        for name in _words(names if isinstance(names, Sequence) else ()):
            if not _HARMLESS.fullmatch(name):
                self._mutators[f"mutator {name}"] = None


def _words(names: Sequence[Any]) -> list[str]:
    """Return the words in names of mutators, which may be lists joined by commas."""
    joined = ",".join(one for one in ([names] if isinstance(names, str) else names) if isinstance(one, str))
    return [word for word in re.split(r"[,\s]+", joined) if _WORD.fullmatch(word)]
