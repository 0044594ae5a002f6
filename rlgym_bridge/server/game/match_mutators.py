"""Translate the mutators of a match into rules and physics, and refuse those that cannot be played."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from rlbot import flat

from rlgym_bridge.game import GRAVITY
from rlgym_bridge.server.game.match_physics import (
    DEMOLITIONS_ON_CONTACT,
    NO_DEMOLITIONS,
    NORMAL_DEMOLITIONS,
)
from rlgym_bridge.server.server_errors import ConfigError

REGULATION: Final = {
    "FiveMinutes": 300.0, "TenMinutes": 600.0, "TwentyMinutes": 1200.0, "Unlimited": None,
}  # fmt: skip
MAX_SCORE: Final = {
    "Unlimited": 0, "OneGoal": 1, "ThreeGoals": 3, "FiveGoals": 5, "SevenGoals": 7,
    "TenGoals": 10, "TwentyGoals": 20, "ThirtyGoals": 30, "FortyGoals": 40, "FiftyGoals": 50,
    "SixtyGoals": 60, "SeventyGoals": 70, "EightyGoals": 80, "NinetyGoals": 90,
    "HundredGoals": 100, "OneHundredFiftyOneGoals": 151,
}  # fmt: skip
OVERTIME: Final = {"Unlimited": None, "FiveMaxFirstScore": "first", "FiveMaxRandomTeam": "random"}
_MINUTES: Final = (
    "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve",
    "Thirteen", "Fourteen", "Fifteen",
)  # fmt: skip
MAX_TIME: Final[dict[str, float | None]] = {
    "Unlimited": None, "OneMinute": 60.0,
    **{f"{name}Minutes": 60.0 * number for number, name in enumerate(_MINUTES, 1) if number > 1},
}  # fmt: skip
GRAVITIES: Final = {
    "Default": -GRAVITY, "Low": -0.5 * GRAVITY, "High": -1.75 * GRAVITY,
    "SuperHigh": -5.0 * GRAVITY, "Reverse": GRAVITY,
}  # fmt: skip
BALL_SPEED: Final = {"Default": 6000.0, "Slow": 1500.0, "Fast": 9000.0, "SuperFast": 15000.0}
BOOST_STRENGTH: Final = {"One": 1.0, "OneAndAHalf": 1.5, "Two": 2.0, "Five": 5.0, "Ten": 10.0}
RESPAWN: Final = {"ThreeSeconds": 3.0, "TwoSeconds": 2.0, "OneSecond": 1.0}
DEMOLISH: Final = {
    "Default": (NORMAL_DEMOLITIONS, False), "Disabled": (NO_DEMOLITIONS, False),
    "FriendlyFire": (NORMAL_DEMOLITIONS, True), "OnContact": (DEMOLITIONS_ON_CONTACT, False),
    "OnContactFf": (DEMOLITIONS_ON_CONTACT, True),
}  # fmt: skip
_BOOST_AMOUNT: Final = ("NormalBoost", "UnlimitedBoost", "NoBoost")
_JUMP: Final = ("Default", "Unlimited")

GAME_SPEED: Final = {"Default": 1.0, "SloMo": 0.5}
"""Seconds of the game in a second; SloMo's is assumed."""
BALL_FACTORS: Final[Mapping[str, tuple[str, dict[str, float]]]] = {
    "ball_size": ("ball_radius", {"Default": 1.0, "Small": 0.75}),
    "ball_weight": ("ball_mass", {"Default": 1.0, "SuperLight": 0.25, "Light": 0.5, "Heavy": 2.0}),
    "ball_bounciness": (
        "ball_world_restitution",
        {"Default": 1.0, "Low": 0.5, "Lowish": 0.75, "High": 4.0 / 3.0, "SuperHigh": 19.0 / 12.0},
    ),
}
"""Names in RocketSim's `MutatorConfig`, and multiples of the mode's own values: all but the defaults are
assumed. RocketSim leaves 0.6 of a ball's speed, so the last two leave 0.8 and 0.95."""

_SUPPORTED: Final[Mapping[str, Collection[str]]] = {
    "match_length": REGULATION, "max_score": MAX_SCORE, "overtime": OVERTIME, "max_time": MAX_TIME,
    "gravity": GRAVITIES, "ball_max_speed": BALL_SPEED, "boost_strength": BOOST_STRENGTH,
    "respawn_time": RESPAWN, "demolish": DEMOLISH, "boost_amount": _BOOST_AMOUNT, "game_speed": GAME_SPEED,
    "jump": _JUMP, **{name: values for name, (_, values) in BALL_FACTORS.items()},
}  # fmt: skip
_WHY_NOT: Final = {
    "ball_size": "RocketSim 2.2.1 ends the program for balls of more than 102 uu in radius",
    "ball_weight": "the others curve, which RocketSim does not know",
    "boost_amount": "RocketSim has no boost that comes back by itself",
    "game_speed": "how TimeWarp follows the ball is not documented",
}
_IGNORED: Final = ("audio",)  # nobody here hears it


def name_of(value: object) -> str:
    """Return the name of a flatbuffer enum's value, such as "FiveMinutes"."""
    return str(value).rsplit(".", 1)[-1]


def check_mutators(mutators: flat.MutatorSettings, mode: str) -> None:
    """Raise a ConfigError for mutators that would have no effect here, or another one than in the game."""
    standard = flat.MutatorSettings()
    for name in mutators.__match_args__:
        value, supported = getattr(mutators, name), _SUPPORTED.get(name)
        if name in _IGNORED or value == getattr(standard, name):
            continue
        if supported is None:
            raise ConfigError(
                f"mutator {name} is {name_of(value)}, which has no effect in RocketSim; expected "
                f"{name_of(getattr(standard, name))}, the default: take it out of the match"
            )
        if name_of(value) not in supported:
            why = _WHY_NOT.get(name, "the others have no effect in RocketSim")
            raise ConfigError(
                f"mutator {name} is {name_of(value)}, expected one of {', '.join(supported)}: {why}"
            )
        if name == "ball_size" and mode == "Snowday":
            raise ConfigError("mutator ball_size is Small, expected Default: RocketSim has pucks of one size")


def ball_factors(mutators: flat.MutatorSettings) -> dict[str, float]:
    """Return multiples of RocketSim's constants for the ball, those that are not 1."""
    factors = {}
    for name, (constant, values) in BALL_FACTORS.items():
        factor = values[name_of(getattr(mutators, name))]
        if factor != 1.0:
            factors[constant] = factor
    return factors


def describe_assumptions(mutators: flat.MutatorSettings) -> Iterator[str]:
    """Describe the mutators whose values are assumed, each with the value."""
    for name, (constant, values) in BALL_FACTORS.items():
        value = name_of(getattr(mutators, name))
        if values[value] != 1.0:
            yield f"mutator {name} = {value} is played with {values[value]:.3g} times the usual {constant}"
    speed = name_of(mutators.game_speed)
    if GAME_SPEED[speed] != 1.0:
        yield f"mutator game_speed = {speed} is played at {GAME_SPEED[speed]:g} times the usual speed"
