"""Follow the boost pads: what their timers count, and how long pads are inactive."""

import math
from dataclasses import dataclass, field
from typing import Final

from rlbot import flat

from rlgym_bridge.game import BIG_PAD_SECONDS, SMALL_PAD_SECONDS, TICK_SECONDS
from rlgym_bridge.trials.findings import Fact, Finding
from rlgym_bridge.trials.frames import Frame, press, put, seconds_between
from rlgym_bridge.trials.probe_scene import STANDING_Z, Play, ProbeScene

_SHORT: Final = 250.0  # uu before the pad, where the car is placed
_SPEED: Final = 700.0  # uu/s
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
    """Follows all pads over all packets.

    Attributes:
        info: Positions of the pads, in packet order.
    """

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
        name = "pad_timer"
        values: set[str] = set()
        evidence = "no packet showed a pad being taken"
        for absences in self._absences.values():
            for one in absences:
                passed = seconds_between(one.first, one.last)
                if passed < _LONG_ENOUGH:
                    continue
                slope = (one.last_timer - one.first_timer) / passed
                evidence = (
                    f"timer {one.first_timer:.4f} in the first packet without the pad, "
                    f"{passed:.2f} s later {one.last_timer:.4f}"
                )
                if abs(slope - 1.0) < 0.1:
                    values.add("elapsed")
                elif abs(slope + 1.0) < 0.1:
                    values.add("remaining")
                else:
                    values.add("")
        value = values.pop() if len(values) == 1 else None
        return Finding(name, value or None, evidence)

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
            measured.append(Fact(name, value, expected, "s", 4.1 * TICK_SECONDS))
        return measured


def pickups(scene: ProbeScene, watch: PadWatch) -> Play[None]:
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
            put((place.x - _SHORT, place.y, STANDING_Z), (_SPEED, 0.0, 0.0)), boost=0.0
        )
        if set_up:
            yield from scene.hold(70, press(throttle=0.5))
        elif not big:
            yield from _drive_to_a_pad(scene, watch.info)


def _drive_to_a_pad(scene: ProbeScene, info: flat.FieldInfo) -> Play[None]:
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


def towards(frame: Frame, x: float, y: float, throttle: float = 0.6) -> flat.ControllerState:
    """Return an input that drives the first car to a position, uu."""
    body = frame.car.physics
    turn = math.atan2(y - body.location.y, x - body.location.x) - body.rotation.yaw
    turn = (turn + math.pi) % (2.0 * math.pi) - math.pi
    return press(throttle=throttle, steer=max(-1.0, min(1.0, 3.0 * turn)))
