"""Play the newest checkpoint of a training run, and take newer ones that fit at kickoffs."""

import logging
from collections.abc import Callable
from pathlib import Path

from rlbot import flat

from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.game import BLUE, ORANGE, Phase
from rlgym_bridge.live.player import LivePlayer
from rlgym_bridge.policy.files import chosen_checkpoint, newest_checkpoint, run_of
from rlgym_bridge.policy.shape import explain_misfit

_LOG = logging.getLogger("rlgym_bridge.agent")


class FollowedRun:
    """A training run whose newest checkpoint plays; `load` loads the player of a policy folder.

    A FileNotFoundError says that the run has no checkpoint yet, or a file of it is missing; a ValueError that
    its checkpoint cannot be loaded, or that `checkpoints/latest` names none.
    """

    def __init__(self, run: str | Path, load: Callable[[Path], PlayerSpec]) -> None:
        folder = run_of(run)
        self._tried = None if folder is None else newest_checkpoint(folder)
        newest = None if folder is None else chosen_checkpoint(folder)
        if folder is None or newest is None:
            raise FileNotFoundError(
                f"{run} has no checkpoint to follow, expected a training run: rlgym-bridge train makes it"
            )
        self._run, self._load = folder, load
        self._in_countdown = False
        self.spec = load(newest)  # the player that plays
        self.taken = [newest.name]  # its checkpoint and those before, in order

    def see(
        self, packet: flat.GamePacket, player: LivePlayer, config: flat.MatchConfiguration | None
    ) -> None:
        """Let the player take a newer checkpoint that fits the match where a countdown begins. Never raises.

        A checkpoint that cannot be taken counts as a fault of the player, and is not tried again.
        """
        before, self._in_countdown = self._in_countdown, packet.match_info.match_phase == Phase.COUNTDOWN
        if before or not self._in_countdown:
            return
        newest: Path | None = None
        try:
            newest = newest_checkpoint(self._run)
            if newest is None or newest == self._tried:
                return
            self._tried = newest
            spec = self._load(newest)
            if (problem := misfit(spec, config)) is not None:
                raise ValueError(f"it {problem}")
            player.take(spec)
        except (Exception, SystemExit) as error:  # an own component may raise anything
            what = f"{newest or self._run}: {error}; the one before plays on"
            player.faults.add("checkpoint not taken", what, error)
            return
        self.spec = spec
        self.taken.append(newest.name)
        _LOG.info("plays %s from this kickoff on", newest)


def team_sizes(config: flat.MatchConfiguration | None) -> tuple[int, int] | None:
    """Return how many cars blue and orange have; None where the configuration does not say it."""
    teams = [] if config is None else [player.team for player in config.player_configurations]
    return (teams.count(BLUE), teams.count(ORANGE)) if teams else None


def misfit(spec: PlayerSpec, config: flat.MatchConfiguration | None) -> str | None:
    """Return why a player cannot play the team sizes of a match, to follow its name; None where it may."""
    sizes = team_sizes(config)
    return None if spec.team_sizes is None or sizes is None else explain_misfit(spec.team_sizes, sizes, "BOT")
