"""Translate a match configuration into rules and physics, and refuse what cannot be played here.

Effects of the mutators [RLBot wiki, "mutators"; RocketSim's `MutatorConfig`]. What RocketSim
cannot do is refused rather than left out silently: a bot would be tried under other rules than
the ones in the file.
"""

import logging
import math
from collections.abc import Collection, Mapping
from typing import Final

import RocketSim as rsim
from rlbot import flat
from rlbot.utils.maps import GAME_MAP_TO_UPK, STANDARD_MAPS

from rlgym_bridge.game import GRAVITY
from rlgym_bridge.physics import Spread
from rlgym_bridge.server.game.match_physics import Physics
from rlgym_bridge.server.game.modes import MODES, WHY_NOT
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.server_errors import ConfigError
from rlgym_bridge.sim.game_rules import parse_rules

_log = logging.getLogger(__name__)

LONGEST_SECONDS: Final = 86_400.0
"""Playing time of the longest match, a day; frame numbers have room for 207 of them."""

_REGULATION: Final = {
    "FiveMinutes": 300.0, "TenMinutes": 600.0, "TwentyMinutes": 1200.0, "Unlimited": None,
}  # fmt: skip
_MAX_SCORE: Final = {
    "Unlimited": 0, "OneGoal": 1, "ThreeGoals": 3, "FiveGoals": 5, "SevenGoals": 7,
    "TenGoals": 10, "TwentyGoals": 20, "ThirtyGoals": 30, "FortyGoals": 40, "FiftyGoals": 50,
    "SixtyGoals": 60, "SeventyGoals": 70, "EightyGoals": 80, "NinetyGoals": 90,
    "HundredGoals": 100, "OneHundredFiftyOneGoals": 151,
}  # fmt: skip
_GRAVITY: Final = {
    "Default": -GRAVITY, "Low": -0.5 * GRAVITY, "High": -1.75 * GRAVITY,
    "SuperHigh": -5.0 * GRAVITY, "Reverse": GRAVITY,
}  # fmt: skip
_BALL_SPEED: Final = {"Default": 6000.0, "Slow": 1500.0, "Fast": 9000.0, "SuperFast": 15000.0}
_BOOST_STRENGTH: Final = {"One": 1.0, "OneAndAHalf": 1.5, "Two": 2.0, "Five": 5.0, "Ten": 10.0}
_RESPAWN: Final = {"ThreeSeconds": 3.0, "TwoSeconds": 2.0, "OneSecond": 1.0}
_DEMOLISH: Final = {
    "Default": (rsim.DemoMode.NORMAL, False), "Disabled": (rsim.DemoMode.DISABLED, False),
    "FriendlyFire": (rsim.DemoMode.NORMAL, True), "OnContact": (rsim.DemoMode.ON_CONTACT, False),
    "OnContactFf": (rsim.DemoMode.ON_CONTACT, True),
}  # fmt: skip
_STANDARD_FIELDS: Final = frozenset(GAME_MAP_TO_UPK[name].lower() for name in STANDARD_MAPS)
_BOOST_AMOUNT: Final = ("NormalBoost", "UnlimitedBoost")

_SUPPORTED: Final[dict[str, Collection[str]]] = {
    "match_length": _REGULATION, "max_score": _MAX_SCORE, "gravity": _GRAVITY,
    "ball_max_speed": _BALL_SPEED, "boost_strength": _BOOST_STRENGTH,
    "respawn_time": _RESPAWN, "demolish": _DEMOLISH, "boost_amount": _BOOST_AMOUNT,
}  # fmt: skip


def name_of(value: object) -> str:
    """Return the name of a flatbuffer enum's value, such as "FiveMinutes"."""
    return str(value).rsplit(".", 1)[-1]


def check_rules(configuration: flat.MatchConfiguration) -> None:
    """Refuse what this server does not play.

    Args:
        configuration: A match, from a file or from a client.

    Raises:
        ConfigError: A mode that cannot be played, or a mutator without effect here.
    """
    mode = name_of(configuration.game_mode)
    if mode not in MODES:
        why = WHY_NOT.get(mode, "RocketSim does not have it")
        raise ConfigError(
            f"game_mode is {mode}, expected one of {', '.join(MODES)}: {why}; it needs the real game and "
            f"RLBotServer"
        )
    mutators = configuration.mutators or flat.MutatorSettings()
    standard = flat.MutatorSettings()
    for name in mutators.__match_args__:
        value = getattr(mutators, name)
        supported = _SUPPORTED.get(name)
        if supported is not None and name_of(value) not in supported:
            raise ConfigError(
                f"mutator {name} is {name_of(value)}, expected one of {', '.join(supported)}: "
                f"the others have no effect in RocketSim"
            )
        if supported is None and value != getattr(standard, name):
            raise ConfigError(
                f"mutator {name} is {name_of(value)}, which has no effect in RocketSim; expected "
                f"{name_of(getattr(standard, name))}, the default: take it out of the match"
            )
    _warn_of_field(configuration.game_map_upk)
    behaviour = configuration.existing_match_behavior
    if behaviour != flat.ExistingMatchBehavior.Restart:
        _log.warning(
            "existing_match_behavior %s is played as Restart: a match begins anew", name_of(behaviour)
        )
    if configuration.instant_start:
        _log.warning("start_without_countdown has no effect here: every kickoff has its countdown")
    if configuration.freeplay:
        _log.warning("freeplay has no effect here: a match is played")
    if configuration.auto_save_replay:
        _log.warning("auto_save_replay has no effect here: there is no game to save a replay")


def _warn_of_field(field: str) -> None:
    """Log a field that may have another shape than the standard one, which is played on here."""
    if field and field.lower() not in _STANDARD_FIELDS:
        _log.warning(
            "game_map_upk %s is not known to have the standard field's shape: the match is played on the "
            "standard field", field,
        )  # fmt: skip


def course_of(
    configuration: flat.MatchConfiguration,
    seconds: float | None = None,
    max_overtime: float = math.inf,
    max_kickoff: float = math.inf,
    max_hang: float = math.inf,
) -> Course:
    """Return how long a match goes on.

    Args:
        configuration: A match that `check_rules` accepts.
        seconds: Regulation in place of the one in `configuration`, None to keep that.
        max_overtime: Seconds of overtime after which it is a draw.
        max_kickoff: Seconds an untouched kickoff may last; a match without end has no such limit.
        max_hang: Seconds that the ball may stay off the floor after the end of time.
    """
    mutators = configuration.mutators or flat.MutatorSettings()
    regulation = _REGULATION[name_of(mutators.match_length)] if seconds is None else seconds
    if regulation is None:
        max_kickoff = math.inf
    return Course(
        regulation, _MAX_SCORE[name_of(mutators.max_score)], configuration.skip_replays,
        max_overtime, max_kickoff, max_hang,
    )  # fmt: skip


def physics_of(
    configuration: flat.MatchConfiguration,
    constants: Mapping[str, Spread] | None = None,
    rules: str = "default",
) -> Physics:
    """Return mode and mutators of a match in RocketSim's units.

    Args:
        configuration: A match that `check_rules` accepts.
        constants: Of the physics besides; their values are played with.
        rules: The game's rules, see `game_rules.parse_rules`.
    """
    mutators = configuration.mutators or flat.MutatorSettings()
    demo_mode, team_demos = _DEMOLISH[name_of(mutators.demolish)]
    standard = Physics.of(MODES[name_of(configuration.game_mode)])
    unlimited = mutators.boost_amount == flat.BoostAmountMutator.UnlimitedBoost
    return Physics(
        standard.mode,
        gravity_z=_GRAVITY[name_of(mutators.gravity)],
        boost_per_second=0.0 if unlimited else standard.boost_per_second,
        boost_strength=_BOOST_STRENGTH[name_of(mutators.boost_strength)],
        spawn_boost=100.0 if unlimited else standard.spawn_boost,
        ball_max_speed=_BALL_SPEED[name_of(mutators.ball_max_speed)],
        respawn_seconds=_RESPAWN[name_of(mutators.respawn_time)],
        demo_mode=demo_mode,
        team_demos=team_demos,
        factors={name: one.value for name, one in (constants or {}).items()},
        rules=parse_rules(rules),
    )
