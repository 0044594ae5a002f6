"""Tolerances: the largest errors against a recording that are not called a gap.

Each number is a median position error in uu, at 1, 12, 30, 60, 120 and 240 ticks. Below the noise floor,
which every comparison measures for itself, nothing is called a gap either. Recordings of exact states have
limits of their own, see `noise_limits`.

Sources: [B] free balls of the real game, 12 recordings of 10 s at 61 rows a second, clock fitted: in the
air 0.02, 0.06, 0.17, 0.47 (single recordings up to 0.05 and 0.2 at 12 and 60 ticks) and after bounces 0.5,
0.9, 0.9, 1.1 uu (medians at 12, 60, 120, 240 ticks); [R] balls of replays of the real game, aligned to
ticks, in the air: 0.01, 0.1, 0.4, 1.4; [F] 70 s of freeplay at 120 rows a second, lag fitted: in the air
0.03, 0.2, 0.7, 2.8, on the ground 0.4, 2.2, 6.5, 11, on walls 0.4, 3, 9, 56, where wheels leave or reach
something 2.7, 6, 10, 20; [G] seven drives of 5 s at 61 rows a second, on the ground up to 0.9, 7, 14, 92.
Each tolerance is the largest of these, usually times 1 to 2.3, for bounces up to 4.5: what the two physics
are known to be off each other with nothing wrong in bot, server or recording. The rows of contacts and the
column of 1 tick are our choice.

The column of 30 ticks is what was measured there, times the factor that the columns of 12 and 60 ticks have
to theirs (the geometric mean of both): [R] in the air 0.034; [B] after bounces 0.52, on the ground 0.053; [F]
on the ground 1.1, on walls 1.1, in the air 0.065, after a jump 0.047, where wheels leave or reach something
1.8.
"""

from typing import Final

from rlgym_bridge.compare.simulate.windows import (
    BALL_AIR,
    BALL_BOUNCED,
    BALL_GROUND,
    BALL_TOUCHED,
    CAR_AIR,
    CAR_CONTACT,
    CAR_GROUND,
    CAR_JUMPED,
    CAR_LEAVES,
    CAR_WALL,
    HORIZONS,
)

TOLERANCES: Final[dict[str, tuple[float, ...]]] = {
    BALL_AIR: (0.02, 0.08, 0.13, 0.3, 0.8, 2.8),  # [B] of single recordings, [R]
    BALL_BOUNCED: (0.5, 1.0, 1.1, 1.8, 2.5, 5.0),  # [B]
    BALL_GROUND: (0.05, 0.1, 0.2, 0.3, 1.0, 3.0),  # [B], few
    BALL_TOUCHED: (1.0, 5.0, 10.0, 20.0, 50.0, 150.0),  # our choice: a hit a little off goes elsewhere
    CAR_AIR: (0.02, 0.06, 0.13, 0.4, 1.5, 6.0),  # [F]
    CAR_JUMPED: (0.02, 0.1, 0.18, 0.5, 1.5, 6.0),  # [F]
    CAR_GROUND: (0.2, 1.2, 3.4, 8.0, 20.0, 100.0),  # [F], [G]
    CAR_WALL: (0.1, 0.9, 2.5, 6.5, 20.0, 110.0),  # [F]
    CAR_LEAVES: (1.0, 5.0, 6.2, 12.0, 20.0, 40.0),  # [F]
    CAR_CONTACT: (1.0, 5.0, 10.0, 20.0, 50.0, 150.0),  # our choice, as for the ball
}  # uu

LEAST_WINDOWS: Final = 8
"""Fewer tell no median: one of them in two would be chance."""

FLOORS: Final = 1.5
"""A median within so many noise floors may be noise: the floor is itself a median of few windows."""

TAIL: Final = 2.5
"""A 90th percentile so many times the tolerance of a median comes from a missing input, where one is known to
be missing: what is pressed now and then shows in the tail alone. Else it is within 3 [F]."""

SHOWS: Final = 0.01
"""uu: where a constant is known to differ, a median error from here on is put down to it; RocketSim's own
positions come out of a recording to 0.0005."""

CLOCK_SCALE: Final = 0.0005
"""By how much a clock may run wrong: a body at 1,000 uu/s is then 0.5 uu off after a second, as much as the
two physics differ [B]."""


def tolerance(situation: str, horizon: int) -> float:
    """Return the tolerance of a median position error in uu.

    Args:
        situation: One of `windows.SITUATIONS`.
        horizon: One of `windows.HORIZONS`, ticks.
    """
    return TOLERANCES[situation][HORIZONS.index(horizon)]
