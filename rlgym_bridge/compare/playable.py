"""Refuse recordings of games that RocketSim does not play."""

from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.game_modes import mode_number


def check_playable(recording: Recording) -> None:
    """Make sure that RocketSim plays a recorded match by the match's own rules.

    Raises:
        ValueError: The match has another game mode, arena or ball, or mutators that change the physics; the
            message says which, and what to do.
    """
    try:
        mode_number(recording.mode)
    except ValueError as error:
        raise ValueError(
            f"{recording.source} is a match of {recording.mode}, which RocketSim cannot play here: {error}. "
            "`inspect` and `view` read it; compare a match of a mode named"
        ) from None
    if recording.mutators:
        raise ValueError(
            f"{recording.source} was played with {', '.join(recording.mutators)}, expected none of these: "
            "each would count as a gap of physics. `inspect` and `view` read it; compare a match without"
        )
