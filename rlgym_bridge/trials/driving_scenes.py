"""Take a pad and demolish a car, and judge pad timers and demolished cars."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rlbot import flat

from rlgym_bridge.trials.findings import Finding
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
    """One absence of a pad: its first and latest packet, and their timers."""

    first: Frame
    first_timer: float
    last: Frame
    last_timer: float


@dataclass
class PadWatch:
    """Follows the timers of all pads that are taken in play, over all packets."""

    _absences: list[_Absence] = field(default_factory=list)
    _away: dict[int, _Absence] = field(default_factory=dict)
    _before: Frame | None = None

    def see(self, frame: Frame) -> None:
        """Follow the pads of a packet."""
        before, self._before = self._before, frame
        if before is None or not (frame.playing and before.playing):
            self._away.clear()
            return
        pads = zip(before.packet.boost_pads, frame.packet.boost_pads, strict=False)
        for number, (was, now) in enumerate(pads):
            if now.is_active:
                self._away.pop(number, None)
            elif was.is_active:
                self._away[number] = _Absence(frame, now.timer, frame, now.timer)
                self._absences.append(self._away[number])
            elif (one := self._away.get(number)) is not None:
                one.last, one.last_timer = frame, now.timer

    def judge(self) -> Finding:
        """Find which way the timers count."""
        values: set[str | None] = set()
        evidence = "no packet showed a pad being taken"
        for one in self._absences:
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


def take_pad(scene: ScenePlayer, info: flat.FieldInfo) -> Play[None]:
    """Take the nearest pad, from a place before it; where states cannot be set, drive there."""
    here = scene.frame.car.physics.location
    pad = min(
        (one.location for one in info.boost_pads),
        key=lambda one: math.dist((one.x, one.y), (here.x, here.y)),
        default=None,
    )
    if pad is None:
        return
    before = put((pad.x - _BEFORE_PAD, pad.y, STANDING_Z), (_PAD_SPEED, 0.0, 0.0))
    if (yield from scene.put(before, boost=0.0)):
        yield from scene.hold(70, press(throttle=0.5))
        return
    x, y = pad.x, pad.y
    for controls in (lambda one: towards(one, x, y), press(throttle=-1.0)):
        if (yield from scene.until(_shows_taken_pad, 360, controls)):
            break
    yield from scene.hold(60)


def _shows_taken_pad(frame: Frame) -> bool:
    return not all(pad.is_active for pad in frame.packet.boost_pads)


_DEMOLITION_SPEED: Final = 2290.0  # uu/s
_BEHIND: Final = 700.0  # uu from the spot, where the first car begins
_TRIES: Final = 3
_NEAR: Final = 120.0  # uu between the last position and that of the demolition
_ORIGIN: Final = 1.0  # uu


def demolition(scene: ScenePlayer) -> Play[list[Frame]]:
    """Demolish the second car and wait until it respawns; return the frames of the attempt."""
    for _ in range(_TRIES):
        x, y = SPOT
        drive = press(throttle=1.0, boost=True)
        rams = put((x - _BEHIND, y, STANDING_Z), (_DEMOLITION_SPEED, 0.0, 0.0))
        stands = put((x + 200.0, y, STANDING_Z))
        if not (yield from scene.put(rams, stands, put(BALL_ASIDE), controls=drive)):
            return []
        if (yield from scene.until(lambda frame: frame.cars[1].demolished_timeout >= 0.0, 120, drive)):
            frames = scene.frames
            yield from scene.until(lambda frame: frame.cars[1].demolished_timeout < 0.0, 600)
            return frames
    return []


def judge_place(frames: Sequence[Frame]) -> Finding:
    """Find which position is shown of a demolished car."""
    gone = [frame for frame in frames if frame.cars[1].demolished_timeout >= 0.0]
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
