"""Bump and demolish a car, and judge how a demolished car is shown."""

import math
from collections.abc import Sequence
from typing import Final

from rlgym_bridge.game import DEMOLISHED_SECONDS, TICK_SECONDS
from rlgym_bridge.trials.findings import Fact, Finding
from rlgym_bridge.trials.frames import Frame, press, put, seconds_between
from rlgym_bridge.trials.probe_scene import BALL_ASIDE, SPOT, STANDING_Z, Play, ProbeScene

_BUMP_SPEED: Final = 1200.0  # uu/s
_BUMPED: Final = 1607.0
"""uu/s, top speed of a standing car after it was hit from behind at `_BUMP_SPEED` (RocketSim 2.2.1)."""

_DEMOLITION_SPEED: Final = 2290.0  # uu/s
_TRIES: Final = 3
_NEAR: Final = 120.0  # uu between the last position and that of the demolition
_ORIGIN: Final = 1.0  # uu


def _behind(scene: ProbeScene, away: float, speed: float) -> Play[bool]:
    """Place the second car on the spot and drive the first one into it from behind."""
    x, y = SPOT
    return (
        yield from scene.put(
            put((x - away, y, STANDING_Z), (speed, 0.0, 0.0)),
            put((x + 200.0, y, STANDING_Z)),
            put(BALL_ASIDE),
            controls=press(throttle=1.0, boost=True),
        )
    )


def bump(scene: ProbeScene) -> Play[list[Fact]]:
    """Hit a standing car from behind, too slowly to demolish it."""
    speed = None
    if (yield from _behind(scene, 300.0, _BUMP_SPEED)):
        yield from scene.hold(90)
        speeds = [
            math.hypot(v.x, v.y, v.z) for v in (frame.cars[1].physics.velocity for frame in scene.frames)
        ]
        speed = max(speeds)
    return [Fact("a bumped car's speed", speed, _BUMPED, "uu/s", 0.15 * _BUMPED)]


def demolition(scene: ProbeScene) -> Play[list[Frame]]:
    """Demolish the second car and wait until it respawns; return the frames of the attempt."""
    for _ in range(_TRIES):
        if not (yield from _behind(scene, 700.0, _DEMOLITION_SPEED)):
            return []
        drive = press(throttle=1.0, boost=True)
        if (yield from scene.until(lambda frame: frame.cars[1].demolished_timeout >= 0.0, 120, drive)):
            frames = scene.frames
            yield from scene.until(lambda frame: frame.cars[1].demolished_timeout < 0.0, 600)
            return frames
    return []


def _gone(frames: Sequence[Frame]) -> list[Frame]:
    return [frame for frame in frames if frame.cars[1].demolished_timeout >= 0.0]


def judge_place(frames: Sequence[Frame]) -> Finding:
    """Find which position is shown of a demolished car."""
    name = "demolished_place"
    gone = _gone(frames)
    if len(gone) < 10:
        return Finding(name, None, "no car was demolished")
    there = frames[frames.index(gone[0]) - 1].cars[1].physics.location
    last = (there.x, there.y, there.z)
    places = [frame.cars[1].physics.location for frame in gone]
    seen = [(place.x, place.y, place.z) for place in places]
    x, y, z = seen[len(seen) // 2]
    evidence = (
        f"({x:.0f}, {y:.0f}, {z:.0f}) uu while it is demolished, "
        f"({last[0]:.0f}, {last[1]:.0f}, {last[2]:.0f}) in the packet before"
    )
    if all(math.dist(position, (0.0, 0.0, 0.0)) < _ORIGIN for position in seen):
        return Finding(name, "origin", evidence)
    if all(math.dist(position, last) < _NEAR for position in seen):
        return Finding(name, "kept", evidence)
    return Finding(name, None, f"{evidence}: not always there or at the origin")


def facts(frames: Sequence[Frame]) -> list[Fact]:
    """Return how long a car stays demolished."""
    gone = _gone(frames)
    value = None
    if gone and frames[-1].cars[1].demolished_timeout < 0.0:
        value = seconds_between(gone[0], frames[-1])
    return [Fact("a demolished car is away", value, DEMOLISHED_SECONDS, "s", 4.1 * TICK_SECONDS)]
