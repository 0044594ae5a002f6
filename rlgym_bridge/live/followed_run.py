"""Play the newest checkpoint of a training run, and take newer ones at kickoffs."""

import logging
from collections.abc import Callable
from pathlib import Path

from rlbot import flat

from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.game import Phase
from rlgym_bridge.live.match_sizes import misfit
from rlgym_bridge.live.player import LivePlayer
from rlgym_bridge.policy.files import newest_checkpoint, run_of

_LOG = logging.getLogger("rlgym_bridge.agent")


class FollowedRun:
    """A training run whose newest checkpoint plays.

    Args:
        run: The run's folder, or a checkpoint of it.
        load: Loads the player of a policy folder.

    Attributes:
        spec: The player that plays.
        taken: Names of its checkpoint and of those before, in order.

    Raises:
        FileNotFoundError: The run has no checkpoint yet, or a file of it is missing.
        ValueError: The folder belongs to no run, or its checkpoint cannot be loaded.
    """

    def __init__(self, run: str | Path, load: Callable[[Path], PlayerSpec]) -> None:
        folder = run_of(run)
        newest = None if folder is None else newest_checkpoint(folder)
        if folder is None or newest is None:
            raise FileNotFoundError(
                f"{run} has no checkpoint to follow, expected a training run: rlgym-bridge train makes it"
            )
        self._run, self._load = folder, load
        self._tried = newest
        self._in_countdown = False
        self.spec = load(newest)
        self.taken = [newest.name]

    def see(
        self, packet: flat.GamePacket, player: LivePlayer, config: flat.MatchConfiguration | None
    ) -> None:
        """Look for a newer checkpoint where a countdown begins, and let the player take it. Never raises.

        A checkpoint that cannot be taken counts as a fault of the player, and is not tried again.

        Args:
            packet: The packet that the player has just seen.
            player: Plays `spec`.
            config: The match, whose team sizes the checkpoint has to fit.
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
