"""Count the cars of a server's match, and tell whether a player can play it."""

from rlbot import flat

from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.game import BLUE, ORANGE
from rlgym_bridge.policy.shape import explain_misfit


def team_sizes(config: flat.MatchConfiguration | None) -> tuple[int, int] | None:
    """Return how many cars blue and orange have; None where the configuration does not say it."""
    teams = [] if config is None else [player.team for player in config.player_configurations]
    return (teams.count(BLUE), teams.count(ORANGE)) if teams else None


def misfit(spec: PlayerSpec, config: flat.MatchConfiguration | None) -> str | None:
    """Return why a player cannot play the team sizes of a match.

    Returns:
        A clause that follows the player's name. None where it can play them, or where they are unknown.
    """
    sizes = team_sizes(config)
    return None if spec.team_sizes is None or sizes is None else explain_misfit(spec.team_sizes, sizes, "BOT")
