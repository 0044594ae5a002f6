"""Cars meet: a bump, and a demolition with what is shown of the car that is gone."""

import math
from collections.abc import Sequence
from typing import Final

from rlgym_bridge.game import DEMOLISHED_SECONDS, TICK_SECONDS
from rlgym_bridge.probe.findings import Fact, Finding
from rlgym_bridge.probe.frames import Frame, press, put, seconds_between
from rlgym_bridge.probe.probe_scene import BALL_ASIDE, SPOT, STANDING_Z, Play, ProbeScene

_BUMP_SPEED: Final = 1200.0  # uu/s
_BUMPED: Final = 1607.0
"""uu/s, most speed of a standing car that was hit from behind at `_BUMP_SPEED` (RocketSim 2.2.1)."""

_DEMOLITION_SPEED: Final = 2290.0  # uu/s
_TRIES: Final = 3
_NEAR: Final = 120.0  # uu between a car's last place and that of its demolition
_ORIGIN: Final = 1.0  # uu


def _behind(scene: ProbeScene, away: float, speed: float) -> Play[bool]:
    """Stand the second car on the spot and send the first one at it from behind."""
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
        speeds = [math.hypot(v.x, v.y, v.z) for v in (one.cars[1].physics.velocity for one in scene.frames)]
        speed = max(speeds)
    return [Fact("a bumped car's speed", speed, _BUMPED, "uu/s", 0.15 * _BUMPED)]


def demolition(scene: ProbeScene) -> Play[list[Frame]]:
    """Demolish the second car and wait until it is back; the frames of the try that did it."""
    for _ in range(_TRIES):
        if not (yield from _behind(scene, 700.0, _DEMOLITION_SPEED)):
            return []
        drive = press(throttle=1.0, boost=True)
        if (yield from scene.until(lambda one: one.cars[1].demolished_timeout >= 0.0, 120, drive)):
            frames = scene.frames
            yield from scene.until(lambda one: one.cars[1].demolished_timeout < 0.0, 600)
            return frames
    return []


def _gone(frames: Sequence[Frame]) -> list[Frame]:
    return [one for one in frames if one.cars[1].demolished_timeout >= 0.0]


def judge_place(frames: Sequence[Frame]) -> Finding:
    """Settle what place and speed are shown of a demolished car."""
    name = "demolished_place"
    gone = _gone(frames)
    if len(gone) < 10:
        return Finding(name, None, "no demolition came about")
    there = frames[frames.index(gone[0]) - 1].cars[1].physics.location
    last = (there.x, there.y, there.z)
    places = [one.cars[1].physics.location for one in gone]
    seen = [(one.x, one.y, one.z) for one in places]
    x, y, z = seen[len(seen) // 2]
    said = (
        f"({x:.0f}, {y:.0f}, {z:.0f}) uu while it is away, "
        f"({last[0]:.0f}, {last[1]:.0f}, {last[2]:.0f}) in the packet before"
    )
    if all(math.dist(one, (0.0, 0.0, 0.0)) < _ORIGIN for one in seen):
        return Finding(name, "origin", said)
    if all(math.dist(one, last) < _NEAR for one in seen):
        return Finding(name, "kept", said)
    return Finding(name, None, f"{said}: neither there nor at the origin all the time")


def facts(frames: Sequence[Frame]) -> list[Fact]:
    """Return how long a demolished car is away."""
    gone = _gone(frames)
    value = None
    if gone and frames[-1].cars[1].demolished_timeout < 0.0:
        value = seconds_between(gone[0], frames[-1])
    return [Fact("a demolished car is away", value, DEMOLISHED_SECONDS, "s", 4.1 * TICK_SECONDS)]
