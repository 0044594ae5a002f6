"""Bounds of a packet's numbers, beside `rlgym_bridge.game`; lengths in uu, times in seconds.

Sources: [RS] RocketSim 2.2.1; [FB] rlbot_flatbuffers 0.19.0 docstrings; [M] measured on the match
server's packets.
"""

import math
from dataclasses import dataclass
from typing import Final

from rlgym_bridge.game import (
    BALL_MAX_SPEED,
    BOOST_PER_SECOND,
    DEMOLISHED_SECONDS,
    KICKOFF_BOOST,
    TICKS_PER_SECOND,
    Phase,
)


@dataclass(frozen=True)
class Rules:
    """Values that mutators change and no packet says.

    Attributes:
        boost_per_second: Boost used per second, of 100.
        kickoff_boost: Boost at kickoffs and respawns, of 100.
        respawn_seconds: From demolition to respawn.
        ball_max_speed: uu/s.
        soccar: Soccar's ball, at rest in the middle at kickoffs; False for other modes, whose ball is held to
            the arena and to its speed only.
        rocketsim3: Played by RocketSim 3: at the pickup a pad's timer has run for a tick, the flags of double
            jumps and dodges last into the first packet on the ground, boost is used from a tick after the
            press to a tick after it is let go, and a dodge sets `has_jumped`, which stays where wheels that
            touch something give the dodge back.
    """

    boost_per_second: float = BOOST_PER_SECOND
    kickoff_boost: float = KICKOFF_BOOST
    respawn_seconds: float = DEMOLISHED_SECONDS
    ball_max_speed: float = BALL_MAX_SPEED
    soccar: bool = True
    rocketsim3: bool = False

    @property
    def burn(self) -> float:
        """Most boost used in a tick."""
        return self.boost_per_second / TICKS_PER_SECOND


MOVING_PHASES: Final = frozenset({Phase.KICKOFF, Phase.ACTIVE, Phase.GOAL_SCORED})
"""Phases in which timers of pads and cars run: in Replay, Paused and Ended they stand still [M]."""

IDLE_PHASES: Final = frozenset({Phase.INACTIVE, Phase.REPLAY, Phase.PAUSED, Phase.ENDED})
"""Phases in which a frame number may stand still, where the dialect says so."""

KICKOFF_TICKS: Final = 2 * TICKS_PER_SECOND
"""Longest Kickoff where it ends after two seconds [FB, `MatchPhase`]."""

OUTER_X: Final = 4096.0  # side walls [RS]
OUTER_Y: Final = 6000.0  # back of the goals: 880 behind the back walls [RS]
OUTER_Z: Final = 2044.0  # ceiling [RS]
OUTER_SLACK: Final = 20.0  # bodies sink a little into what they hit [M]

SPEED_SLACK: Final = 0.01  # uu/s, float32
TURN_SLACK: Final = 1e-4  # rad/s, float32
ANGLE_SLACK: Final = 1e-5  # rad, float32
LEAP_SLACK: Final = 30.0
"""Farther than its speed a body never gets in a tick; contacts push it by up to 5 [M]."""
COUNTDOWN_SPEED: Final = (
    30.0  # uu/s of a car that settles on its suspension: 2 for an Octane, 21 for a Merc [M]
)
BALL_MAX_TURN: Final = 6.0  # rad/s [RS]

SMALL_PAD_BOOST: Final = 12.0  # [RS]
PAD_REACH: Final = {True: 330.0, False: 245.0}
"""Big or not, to how far a car takes a pad, on the ground plane: cylinders of 208 and 144, and for a car
that waits on its pad boxes of 160 and 96 against its own [RS]."""
PAD_HEIGHT: Final = 190.0  # cylinders end 95 above the pad; a tick of motion on top [RS]
PAD_TICKS: Final = {True: (1200, 1201), False: (480, 480)}
"""Big or not, the least and the most ticks a pad is away. RocketSim subtracts 1/120 in float32: after 1200
ticks of a big pad 7e-5 s are left, so it comes back one tick late [RS]."""
PAD_SECONDS: Final = {True: 10.0, False: 4.0}  # [RS]

BOOST_SLACK: Final = 1e-3  # of 100, float32
TIMER_SLACK: Final = 2e-3  # float32 sums of 1/120 [RS]; a quarter of a tick
BURN_TICKS: Final = 12  # a tapped boost burns 0.1 s [RS]

MAX_HOLD_SECONDS: Final = 0.2  # of a jump [RS]
TOUCH_REACH: Final = 230.0
"""From the middle of the ball to its contact point: radius 91, and a tick of ball and car [RS]."""
BUMP_REACH: Final = 230.0
"""From one car's middle to that of a car it bumps: two of the longest hitboxes, and a tick of both [RS]."""
UNIT_SLACK: Final = 1e-3

HALF_TURN: Final = math.pi + ANGLE_SLACK
QUARTER_TURN: Final = math.pi / 2 + ANGLE_SLACK
