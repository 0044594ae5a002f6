"""Tell which match goes on when a client starts the next one, and with which of its cars.

`existing_match_behavior` as RLBot's core has it: Restart, RestartIfDifferent, ContinueAndSpawn.
"""

from collections.abc import Mapping

from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.game.match_mutators import name_of
from rlgym_bridge.server.game.simulated_match import Match

_log = client_log(__name__)


def kept_cars(
    match: Match, configuration: flat.MatchConfiguration, following: flat.MatchConfiguration
) -> Mapping[int, int] | None:
    """Tell which cars of a match stay when the following one is started.

    Args:
        match: The match that is played.
        configuration: What it was started with.
        following: The next match.

    Returns:
        Indices of cars of the following match, with those of the same cars in the present one. None where the
        present match ends.
    """
    behaviour = following.existing_match_behavior
    if behaviour == flat.ExistingMatchBehavior.Restart:
        return None
    if match.referee.phase == Phase.ENDED:
        _log.warning("no match is played that could go on (%s): another one begins", name_of(behaviour))
        return None
    before, after = (
        [_identity(player) for player in one.player_configurations] for one in (configuration, following)
    )
    if behaviour == flat.ExistingMatchBehavior.RestartIfDifferent:
        same = before == after and _rules(configuration) == _rules(following)
        return {index: index for index in range(len(after))} if same else None
    pairs = enumerate(zip(before, after, strict=False))
    return {index: index for index, (old, new) in pairs if old == new}


def _identity(player: flat.PlayerConfiguration) -> tuple[object, ...]:
    """Return what makes a car the same in two matches [RLBot core]."""
    variety = player.variety
    which = getattr(variety, "agent_id", "").strip() or name_of(getattr(variety, "bot_skill", ""))
    return type(variety).__name__, which, player.team


def _rules(configuration: flat.MatchConfiguration) -> tuple[object, ...]:
    """Return what, besides its cars, makes a match another one [RLBot core]."""
    mutators = configuration.mutators or flat.MutatorSettings()
    return (
        configuration.game_mode, configuration.game_map_upk, configuration.instant_start,
        configuration.freeplay, *(getattr(mutators, name) for name in mutators.__match_args__),
    )  # fmt: skip
