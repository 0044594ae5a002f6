"""Translate a match configuration into rules and physics, and refuse what RocketSim cannot do."""

import math
from collections.abc import Mapping
from typing import Final

from rlbot import flat
from rlbot.utils.maps import GAME_MAP_TO_UPK, STANDARD_MAPS

from rlgym_bridge.physics import Spread
from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.game.match_mutators import (
    BALL_SPEED,
    BOOST_STRENGTH,
    DEMOLISH,
    GAME_SPEED,
    GRAVITIES,
    MAX_SCORE,
    MAX_TIME,
    OVERTIME,
    REGULATION,
    RESPAWN,
    ball_factors,
    check_mutators,
    describe_assumptions,
    name_of,
)
from rlgym_bridge.server.game.match_physics import Physics
from rlgym_bridge.server.game.modes import MODES, WHY_NOT
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.server_errors import ConfigError

_log = client_log(__name__)

LONGEST_SECONDS: Final = 86_400.0
"""Playing time of the longest match, a day; frame numbers have room for 207 of them."""

_STANDARD_FIELDS: Final = frozenset(GAME_MAP_TO_UPK[name].lower() for name in STANDARD_MAPS)


def check_rules(configuration: flat.MatchConfiguration) -> None:
    """Raise a ConfigError for a mode that cannot be played, or a mutator without effect here."""
    mode = name_of(configuration.game_mode)
    if mode not in MODES:
        why = WHY_NOT.get(mode, "RocketSim does not have it")
        raise ConfigError(
            f"game_mode is {mode}, expected one of {', '.join(MODES)}: {why}; it needs the real game and "
            f"RLBotServer"
        )
    check_mutators(configuration.mutators or flat.MutatorSettings(), mode)


def warn_of_rules(configuration: flat.MatchConfiguration) -> None:
    """Log what is played here, but not as in the game."""
    _warn_of_field(configuration.game_map_upk)
    for sentence in describe_assumptions(configuration.mutators or flat.MutatorSettings()):
        _log.warning("%s: the game's own value is not documented", sentence)
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
    """Return how long a match goes on; `seconds` stands above its own regulation, None does not.

    A match without end has no limit of untouched kickoffs.
    """
    mutators = configuration.mutators or flat.MutatorSettings()
    regulation = REGULATION[name_of(mutators.match_length)] if seconds is None else seconds
    if regulation is None:
        max_kickoff = math.inf
    return Course(
        regulation, MAX_SCORE[name_of(mutators.max_score)], configuration.skip_replays,
        max_overtime, max_kickoff, max_hang,
        tie_break=OVERTIME[name_of(mutators.overtime)], max_time=MAX_TIME[name_of(mutators.max_time)],
        instant=configuration.instant_start,
    )  # fmt: skip


def physics_of(
    configuration: flat.MatchConfiguration,
    constants: Mapping[str, Spread] | None = None,
    thrust: bool = True,
    simulator: str | None = None,
) -> Physics:
    """Return mode and mutators of a match, with the values of `constants` besides."""
    mutators = configuration.mutators or flat.MutatorSettings()
    demo_mode, team_demos = DEMOLISH[name_of(mutators.demolish)]
    factors = {name: one.value for name, one in (constants or {}).items()}
    of_ball = ball_factors(mutators)
    for name, factor in of_ball.items():
        factors[name] = factors.get(name, 1.0) * factor
    mode = MODES[name_of(configuration.game_mode)].with_ball(of_ball.get("ball_radius", 1.0))
    unlimited = mutators.boost_amount == flat.BoostAmountMutator.UnlimitedBoost
    no_boost = mutators.boost_amount == flat.BoostAmountMutator.NoBoost
    return Physics(
        mode,
        gravity_z=GRAVITIES[name_of(mutators.gravity)],
        boost_per_second=0.0 if unlimited else mode.boost_per_second,
        boost_strength=BOOST_STRENGTH[name_of(mutators.boost_strength)],
        spawn_boost=100.0 if unlimited else 0.0 if no_boost else mode.spawn_boost,
        has_pads=not no_boost,
        ball_max_speed=BALL_SPEED[name_of(mutators.ball_max_speed)],
        respawn_seconds=RESPAWN[name_of(mutators.respawn_time)],
        demo_mode=demo_mode,
        team_demos=team_demos,
        unlimited_jumps=mutators.jump == flat.JumpMutator.Unlimited,
        game_speed=GAME_SPEED[name_of(mutators.game_speed)],
        factors=factors,
        thrust=thrust,
        simulator=simulator,
    )
