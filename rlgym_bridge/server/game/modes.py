"""Define the game modes that the server plays: ball, kickoff spots, boost.

Sources: [RS] `RLConst` of RocketSim 2.2.1; [RSM] measured in an arena of RocketSim 2.2.1.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from rlbot import flat

from rlgym_bridge.game import BALL_RADIUS, BALL_REST_Z, BLUE, BOOST_PER_SECOND, KICKOFF_BOOST, KICKOFF_SPAWNS

Vector = tuple[float, float, float]

_HEIGHT, _UPRIGHT, _RISE = 2, 11, 14  # among a ball's numbers: z, z of its own z axis, velocity's z

_FLOOR_SLACK: Final = 1.0  # uu a lying or rolling ball may be above its rest height
_BOUNCE_REACH: Final = 60.0  # uu, a little more than the fastest ball falls in a tick
PUCK_RADIUS: Final = 114.25  # uu [RS, Snowday.PUCK_RADIUS]
PUCK_HEIGHT: Final = 62.5  # uu [RS, Snowday.PUCK_HEIGHT]
PUCK_REST_Z: Final = 33.14  # uu, height of the centre of a puck that lies flat [RSM]
_PUCK_GAP: Final = PUCK_REST_Z - 0.5 * PUCK_HEIGHT  # uu between floor and puck, 1.89; a ball's is 1.90

HEATSEEKER_SPAWNS: Final = (
    (-1000.0, -4620.0, 0.5), (1000.0, -4620.0, 0.5), (-2000.0, -4620.0, 0.5), (2000.0, -4620.0, 0.5),
)  # fmt: skip
"""(x uu, y uu, yaw in units of pi) of blue's four spots [RS, CAR_SPAWN_LOCATIONS_HEATSEEKER]."""


@dataclass(frozen=True)
class Mode:
    """A game mode.

    Attributes:
        name: As `flat.GameMode` has it.
        shape: Of the ball, as packets show it.
        ball_place: (x, y, z) of the ball at kickoffs, uu; of one that is served, where blue is served.
        serve: Velocity of the ball at GO where blue is served, uu/s; None for a ball that lies still. Where
            orange is served, y of place and velocity are the other way round [RSM].
        spawns: (x uu, y uu, yaw in units of pi) of blue's kickoff spots; orange's are turned by 180 degrees.
        boost_per_second: Boost used per second, of 100.
        spawn_boost: Boost at kickoffs and respawns, 0..100.
        homing: Whether the ball turns to a goal by itself; packets then show the speed it aims at.
        rest_z: Height of a ball's centre that lies on the floor, uu; a puck's depends on how it lies.
    """

    name: str
    shape: flat.SphereShape | flat.CylinderShape
    ball_place: tuple[float, float, float] = (0.0, 0.0, BALL_REST_Z)
    serve: tuple[float, float, float] | None = None
    spawns: tuple[tuple[float, float, float], ...] = KICKOFF_SPAWNS
    boost_per_second: float = BOOST_PER_SECOND
    spawn_boost: float = KICKOFF_BOOST
    homing: bool = False
    rest_z: float = BALL_REST_Z

    def with_ball(self, size: float) -> Self:
        """Return the mode with a ball of another size; the heights at which balls lie grow with it [RSM]."""
        if size == 1.0 or not isinstance(self.shape, flat.SphereShape):
            return self
        x, y, z = self.ball_place
        return replace(
            self, shape=flat.SphereShape(size * self.shape.diameter), ball_place=(x, y, size * z),
            rest_z=size * self.rest_z,
        )  # fmt: skip

    def kickoff_ball(self, served: int, moving: bool) -> tuple[Vector, Vector]:
        """Return place [uu] and velocity [uu/s] of the ball of a kickoff; it waits for GO unless `moving`.

        `served` is the team in whose half a ball that is served begins.
        """
        side = 1.0 if served == BLUE else -1.0
        x, y, z = self.ball_place
        forth, aside, up = self.serve if moving and self.serve is not None else (0.0, 0.0, 0.0)
        return (x, side * y, z), (forth, side * aside, up)

    def rest_height(self, upright: float) -> float:
        """Return the height of the centre [uu] of a ball on the floor, by z of its own z axis [RSM]."""
        if not isinstance(self.shape, flat.CylinderShape):
            return self.rest_z
        upright = min(1.0, abs(upright))
        return _PUCK_GAP + 0.5 * PUCK_HEIGHT * upright + PUCK_RADIUS * math.sqrt(1.0 - upright * upright)

    def meets_floor(self, ball: Sequence[float], before: Sequence[float], touched: bool) -> bool:
        """Tell whether a ball lies on the floor or has bounced off it in a tick, by its numbers.

        A bounce between two ticks is seen by the turn of the vertical speed near the floor, unless a car has
        touched the ball.
        """
        height, rest = ball[_HEIGHT], self.rest_height(ball[_UPRIGHT])
        if height <= rest + _FLOOR_SLACK:
            return True
        turned = before[_RISE] < 0.0 <= ball[_RISE]
        return turned and height < rest + _BOUNCE_REACH and not touched


SOCCAR: Final = Mode("Soccar", flat.SphereShape(2.0 * BALL_RADIUS))

HEATSEEKER: Final = Mode(
    "Heatseeker",
    flat.SphereShape(2.0 * BALL_RADIUS),
    ball_place=(-1000.0, -2220.0, 92.75),  # [RS, Heatseeker.BALL_START_POS]
    serve=(0.0, -65.0, 650.0),  # [RSM, `reset_kickoff` with 400 seeds: one half for each team]
    spawns=HEATSEEKER_SPAWNS,
    boost_per_second=0.0,  # [RSM, the arena's own mutators]
    spawn_boost=100.0,  # [RSM, the arena's own mutators]
    homing=True,
)

SNOWDAY: Final = Mode(
    "Snowday",
    flat.CylinderShape(2.0 * PUCK_RADIUS, PUCK_HEIGHT),
    # RocketSim's own kickoff lets the puck fall from z 93.15 at GO; it lies still after half a second.
    ball_place=(0.0, 0.0, PUCK_REST_Z),
)

MODES: Final[Mapping[str, Mode]] = {mode.name: mode for mode in (SOCCAR, HEATSEEKER, SNOWDAY)}
"""The modes by the names of `flat.GameMode`."""

WHY_NOT: Final[Mapping[str, str]] = {
    "Hoops": "rlgym-rocket-league brings no collision meshes of its arena",
    "Dropshot": "RocketSim 2.2.1 makes no arena of it",
}
"""Reasons why modes that RocketSim knows by name cannot be played; it does not know the others."""
