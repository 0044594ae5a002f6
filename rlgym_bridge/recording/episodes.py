"""Find where the episodes of a recorded match begin and end."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rlgym_bridge.clock import GAP_TICKS
from rlgym_bridge.game import PLAYING_PHASES
from rlgym_bridge.recording.mcap.channels import Decision
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.mcap.mcap_writer import RecordingError

_GAP_DECISIONS: Final = 4  # in a row that lost packets may make a bot miss, and it is still the same episode
_GAP_LEAST: Final = 12  # ticks that they may


def segments_of_play(recording: MatchRecording) -> tuple[np.ndarray, np.ndarray]:
    """Return the ticks at which play begins and ends: `(n,)` int64 each.

    Raises:
        RecordingError: Frames begin anew.
    """
    playing = np.isin(recording.state.phase, [int(phase) for phase in PLAYING_PHASES])
    steps = np.diff(recording.tick, prepend=recording.tick[:1])
    if (steps < 0).any():
        raise RecordingError(
            f"the frames of {recording.source} begin anew at row {int(np.argmax(steps < 0))}: it holds more "
            "than one match, expected a recording of each"
        )
    broken = steps > GAP_TICKS
    begins = playing & (np.diff(playing, prepend=False) | broken)
    starts = recording.tick[begins]
    last = np.r_[playing[1:] & ~begins[1:], False]  # play goes on in the next row
    return starts, recording.tick[playing & ~last]


def by_episode(
    decisions: Sequence[Decision], starts: np.ndarray, stops: np.ndarray, tick_skip: int
) -> dict[tuple[int, int], list[Decision]]:
    """Return the decisions of each segment of play, divided where decisions are missing.

    The last decision of a segment may come one tick after it. A new part begins with an override, when a bot
    joins again or changes cars, and where many packets were lost.

    Args:
        decisions: Decisions of one bot, in order.
        starts: First ticks of the segments of play, `(segments,)`, see `segments_of_play`.
        stops: Last ticks of the segments, `(segments,)`.
        tick_skip: Ticks that a decision lasts.

    Returns:
        Decisions by the number of the segment and the number of the part.
    """
    found: dict[tuple[int, int], list[Decision]] = {}
    number, part = -1, 0
    for one in decisions:
        here = int(np.searchsorted(starts, one.frame, side="right")) - 1
        if here < 0 or one.frame > stops[here] + GAP_TICKS:
            continue
        if here != number:
            number, part = here, 0
        before = found.get((number, part), [])
        if before and (
            not before[-1].actions.shape[1]
            or not 0 < one.frame - before[-1].frame <= max(_GAP_DECISIONS * tick_skip, _GAP_LEAST)
            or one.seats.tolist() != before[0].seats.tolist()
            or one.obs.shape != before[0].obs.shape
        ):
            part += 1
        found.setdefault((number, part), []).append(one)
    return found
