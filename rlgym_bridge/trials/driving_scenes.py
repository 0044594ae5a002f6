"""Take pads, boost, slide, bump and demolish, and judge pad timers and demolished cars."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from rlbot import flat

from rlgym_bridge.game import (
    BIG_PAD_SECONDS,
    BOOST_MIN_SECONDS,
    BOOST_PER_SECOND,
    DEMOLISHED_SECONDS,
    SMALL_PAD_SECONDS,
    TICK_SECONDS,
)
from rlgym_bridge.trials.findings import Fact, Finding
from rlgym_bridge.trials.scene_player import (
    BALL_ASIDE,
    SPOT,
    STANDING_Z,
    Frame,
    Play,
    ScenePlayer,
    press,
    put,
    seconds_between,
    towards,
)

_BEFORE_PAD: Final = 250.0  # uu before the pad, where the car is placed
_PAD_SPEED: Final = 700.0  # uu/s
_LONG_ENOUGH: Final = 0.3  # s that a pad must be inactive to show which way its timer counts


@dataclass
class _Absence:
    """One absence of a pad: its first and latest packet, their timers, and the packet that ended it."""

    first: Frame
    first_timer: float
    last: Frame
    last_timer: float
    back: Frame | None = None
    certain: bool = True  # no packet was lost at either end


@dataclass
class PadWatch:
    """Follows all pads, whose positions `info` has in packet order, over all packets."""

    info: flat.FieldInfo
    _absences: dict[int, list[_Absence]] = field(default_factory=dict)
    _before: Frame | None = None

    def see(self, frame: Frame) -> None:
        """Follow the pads of a packet."""
        before, self._before = self._before, frame
        if before is None or not (frame.playing and before.playing):
            for absences in self._absences.values():
                if absences[-1].back is None:
                    absences[-1].certain = False
            return
        complete = frame.number - before.number == 1
        pads = zip(before.packet.boost_pads, frame.packet.boost_pads, strict=False)
        for number, (was, now) in enumerate(pads):
            if was.is_active and not now.is_active:
                one = _Absence(frame, now.timer, frame, now.timer, certain=complete)
                self._absences.setdefault(number, []).append(one)
            elif number in self._absences and self._absences[number][-1].back is None:
                one = self._absences[number][-1]
                if now.is_active:
                    one.back = frame
                    one.certain &= complete
                else:
                    one.last, one.last_timer = frame, now.timer

    def judge(self) -> Finding:
        """Find which way the timers count."""
        values: set[str | None] = set()
        evidence = "no packet showed a pad being taken"
        for one in (one for absences in self._absences.values() for one in absences):
            passed = seconds_between(one.first, one.last)
            if passed >= _LONG_ENOUGH:
                slope = (one.last_timer - one.first_timer) / passed
                values.add(
                    "elapsed" if abs(slope - 1.0) < 0.1 else "remaining" if abs(slope + 1.0) < 0.1 else None
                )
                evidence = (
                    f"timer {one.first_timer:.4f} in the first packet without the pad, "
                    f"{passed:.2f} s later {one.last_timer:.4f}"
                )
        return Finding(values.pop() if len(values) == 1 else None, evidence)

    def facts(self) -> list[Fact]:
        """Return how long small and big pads are inactive."""
        measured: list[Fact] = []
        for big, name, expected in (
            (False, "a small pad is away", SMALL_PAD_SECONDS), (True, "a big pad is away", BIG_PAD_SECONDS)
        ):  # fmt: skip
            times = [
                (not one.certain, seconds_between(one.first, one.back))
                for number, absences in self._absences.items()
                if number < len(self.info.boost_pads) and self.info.boost_pads[number].is_full_boost == big
                for one in absences
                if one.back is not None
            ]
            value = min(times)[1] if times else None
            measured.append(Fact.of(name, value, expected, "s", 4.1 * TICK_SECONDS))
        return measured


def take_pads(scene: ScenePlayer, watch: PadWatch) -> Play[None]:
    """Take a big pad and a small one, and wait until the small one is active again.

    Where states cannot be set, the car drives to the nearest pad.
    """
    for big in (True, False):
        place = min(
            (one.location for one in watch.info.boost_pads if one.is_full_boost == big),
            key=lambda one: math.dist((one.x, one.y), (3072.0, -4096.0) if big else (1788.0, -2300.0)),
            default=None,
        )
        if place is None:
            continue
        set_up = yield from scene.put(
            put((place.x - _BEFORE_PAD, place.y, STANDING_Z), (_PAD_SPEED, 0.0, 0.0)), boost=0.0
        )
        if set_up:
            yield from scene.hold(70, press(throttle=0.5))
        elif not big:
            yield from _drive_to_a_pad(scene, watch.info)


def _drive_to_a_pad(scene: ScenePlayer, info: flat.FieldInfo) -> Play[None]:
    here = scene.frame.car.physics.location
    target = min(
        (one.location for one in info.boost_pads),
        key=lambda one: math.dist((one.x, one.y), (here.x, here.y)),
        default=None,
    )
    if target is None:
        return
    place = (target.x, target.y)
    for controls in (lambda one: towards(one, *place), press(throttle=-1.0)):
        yield from scene.until(
            lambda one: not all(pad.is_active for pad in one.packet.boost_pads), 360, controls
        )
        if not all(pad.is_active for pad in scene.frame.packet.boost_pads):
            break
    yield from scene.hold(60)


_SLIDE_SPEED: Final = 1000.0  # uu/s at which the handbrake is pulled
_SLIDE_TICKS: Final = 60
_SLIDE: Final = 708.0
"""uu/s sideways after 60 ticks of full throttle, steering and handbrake from that speed (RocketSim 2.2.1)."""


def boost(scene: ScenePlayer) -> Play[list[Fact]]:
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
        Fact.of("boost burnt in a second", rate, BOOST_PER_SECOND, "of 100", 0.5),
        Fact.of("a tapped boost burns for", time, BOOST_MIN_SECONDS, "s", 1.1 * TICK_SECONDS),
    ]


def handbrake(scene: ScenePlayer) -> Play[list[Fact]]:
    """Slide with full throttle, steering and handbrake from a given speed."""
    value = None
    yield from scene.stand()
    if (yield from scene.put(put((*SPOT, STANDING_Z), (_SLIDE_SPEED, 0.0, 0.0)))):
        slide = press(throttle=1.0, steer=1.0, handbrake=True)
        yield from scene.until(lambda frame: frame.car.last_input.handbrake, 20, slide)
        yield from scene.hold(_SLIDE_TICKS, slide)
        value = _sideways(scene)
    return [Fact.of("speed sideways in a slide", value, _SLIDE, "uu/s", 0.1 * _SLIDE)]


def _sideways(scene: ScenePlayer) -> float:
    body = scene.frame.car.physics
    yaw, velocity = body.rotation.yaw, body.velocity
    return abs(-math.sin(yaw) * velocity.x + math.cos(yaw) * velocity.y)


_BUMP_SPEED: Final = 1200.0  # uu/s
_BUMPED: Final = 1607.0
"""uu/s, top speed of a standing car after it was hit from behind at `_BUMP_SPEED` (RocketSim 2.2.1)."""

_DEMOLITION_SPEED: Final = 2290.0  # uu/s
_TRIES: Final = 3
_NEAR: Final = 120.0  # uu between the last position and that of the demolition
_ORIGIN: Final = 1.0  # uu


def _behind(scene: ScenePlayer, away: float, speed: float) -> Play[bool]:
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


def bump(scene: ScenePlayer) -> Play[list[Fact]]:
    """Hit a standing car from behind, too slowly to demolish it."""
    speed = None
    if (yield from _behind(scene, 300.0, _BUMP_SPEED)):
        yield from scene.hold(90)
        speeds = [
            math.hypot(v.x, v.y, v.z) for v in (frame.cars[1].physics.velocity for frame in scene.frames)
        ]
        speed = max(speeds)
    return [Fact.of("a bumped car's speed", speed, _BUMPED, "uu/s", 0.15 * _BUMPED)]


def demolition(scene: ScenePlayer) -> Play[list[Frame]]:
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
    gone = _gone(frames)
    if len(gone) < 10:
        return Finding(None, "no car was demolished")
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
        return Finding("origin", evidence)
    if all(math.dist(position, last) < _NEAR for position in seen):
        return Finding("kept", evidence)
    return Finding(None, f"{evidence}: not always there or at the origin")


def demolition_facts(frames: Sequence[Frame]) -> list[Fact]:
    """Return how long a car stays demolished."""
    gone = _gone(frames)
    value = None
    if gone and frames[-1].cars[1].demolished_timeout < 0.0:
        value = seconds_between(gone[0], frames[-1])
    return [Fact.of("a demolished car is away", value, DEMOLISHED_SECONDS, "s", 4.1 * TICK_SECONDS)]
