"""Measure boost and handbrake, with RocketSim's numbers for comparison."""

import math
from itertools import pairwise
from typing import Final

from rlgym_bridge.game import BOOST_MIN_SECONDS, BOOST_PER_SECOND, TICK_SECONDS
from rlgym_bridge.trials.findings import Fact
from rlgym_bridge.trials.frames import press, put, seconds_between
from rlgym_bridge.trials.probe_scene import SPOT, STANDING_Z, Play, ProbeScene

_SLIDE_SPEED: Final = 1000.0  # uu/s at which the handbrake is pulled
_SLIDE_TICKS: Final = 60
_SLIDE: Final = 708.0
"""uu/s sideways after 60 ticks of full throttle, steering and handbrake from that speed (RocketSim 2.2.1)."""


def boost(scene: ProbeScene) -> Play[list[Fact]]:
    """Boost for one packet, then for half a second."""
    yield from scene.stand()
    yield from scene.hold(1, press(boost=True))
    yield from scene.hold(30)
    tapped = list(scene.frames)
    yield from scene.stand()
    yield from scene.hold(60, press(boost=True))
    long = [frame for frame in scene.frames if frame.car.boost > 1.0]
    burnt = tapped[0].car.boost - tapped[-1].car.boost
    burning = [now for before, now in pairwise(long) if now.car.boost < before.car.boost - 1e-3]
    rate = None
    if len(burning) > 10:
        used = burning[0].car.boost - burning[-1].car.boost
        rate = used / seconds_between(burning[0], burning[-1])
    time = burnt / rate if rate and burnt > 0.0 else None
    return [
        Fact("boost burnt in a second", rate, BOOST_PER_SECOND, "of 100", 0.5),
        Fact("a tapped boost burns for", time, BOOST_MIN_SECONDS, "s", 1.1 * TICK_SECONDS),
    ]


def handbrake(scene: ProbeScene) -> Play[list[Fact]]:
    """Slide with full throttle, steering and handbrake from a given speed."""
    value = None
    yield from scene.stand()
    if (yield from scene.put(put((*SPOT, STANDING_Z), (_SLIDE_SPEED, 0.0, 0.0)))):
        slide = press(throttle=1.0, steer=1.0, handbrake=True)
        yield from scene.until(lambda frame: frame.car.last_input.handbrake, 20, slide)
        yield from scene.hold(_SLIDE_TICKS, slide)
        value = _sideways(scene)
    return [Fact("speed sideways in a slide", value, _SLIDE, "uu/s", 0.1 * _SLIDE)]


def _sideways(scene: ProbeScene) -> float:
    body = scene.frame.car.physics
    yaw, velocity = body.rotation.yaw, body.velocity
    return abs(-math.sin(yaw) * velocity.x + math.cos(yaw) * velocity.y)
