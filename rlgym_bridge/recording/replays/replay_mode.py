"""Recognise which game a replay shows: mode, ball, arena, mutators.

The names are boxcars' (subtr-actor-py 1.5.1) and RLBotServer's; only replays of soccar were at hand.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_EVENT: Final = re.compile(r"Archetypes\.(?:GameEvent|KnockOut)\.GameEvent_([A-Za-z]+)", re.IGNORECASE)
_GAME: Final = re.compile(r"GameInfo_(\w+)\.\w+\.GameInfo_\w+:", re.IGNORECASE)
_BALL: Final = re.compile(r"Archetypes\.Ball\.(?!BallComponent|BallSpawner|\w*Spawner)(\w+)$")
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

_FLAGS: Final = {
    "bUnlimitedJumps": "unlimited jumps",
    "bUnlimitedTimeForDodge": "unlimited time for a dodge",
}
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
        elif ball := _BALL.match(kind):
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
