"""Jump, land, take a pad and demolish a car, and judge what packets show of each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from typing import Final

from rlbot import flat

from rlgym_bridge.game import DODGE_DEADLINE_SECONDS, HITBOXES, TICK_SECONDS, WHEELS
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
    xyz,
)

_JUMP: Final = press(jump=True)
_NEAR: Final = 0.05  # s by which a measured time may differ from the expected one
_RISE: Final = 900.0  # uu/s, enough to stay in the air until no dodge is possible
_AERIAL_PITCH: Final = 1.2  # rad


def jump(scene: ScenePlayer) -> Play[list[Frame]]:
    """Jump with the button held for longer than a jump pushes, and land."""
    yield from scene.stand()
    yield from scene.hold(40, _JUMP)
    yield from scene.hold(30)
    yield from scene.land()
    return scene.frames


def jump_twice(scene: ScenePlayer, pitch: float = 0.0) -> Play[list[Frame]]:
    """Jump, and a little later jump again, or dodge by a pitch."""
    yield from scene.stand()
    yield from scene.hold(12, _JUMP)
    yield from scene.hold(18)
    yield from scene.hold(4, press(jump=True, pitch=pitch))
    yield from scene.hold(100)
    yield from scene.land()
    return scene.frames


def fly_on(scene: ScenePlayer, throw: bool = True) -> Play[list[Frame]]:
    """Jump and stay in the air until no dodge is possible: thrown up, or else by boost."""
    yield from scene.stand()
    yield from scene.hold(24, _JUMP)
    if scene.sets_state is False or not throw:
        yield from scene.until(lambda _: False, 45, lambda frame: _nose_up(frame, boost=False))
        yield from scene.until(lambda _: False, 150, lambda frame: _nose_up(frame, boost=True))
    else:
        thrown = flat.DesiredPhysics(velocity=flat.Vector3Partial(z=_RISE))
        yield from scene.step(cars={0: flat.DesiredCarState(thrown)})
        yield from scene.hold(190)
    frames = scene.frames
    yield from scene.land(300)
    return frames


def _nose_up(frame: Frame, boost: bool) -> flat.ControllerState:
    off = _AERIAL_PITCH - frame.car.physics.rotation.pitch
    spin = frame.car.physics.angular_velocity
    fast = (spin.x**2 + spin.y**2 + spin.z**2) ** 0.5
    pitch = max(-1.0, min(1.0, 2.5 * off - (0.4 * fast if off < 0.5 else 0.0)))
    return press(pitch=pitch, boost=boost)


def _pushing(frames: Sequence[Frame]) -> list[Frame]:
    def pushes(one: Frame) -> bool:
        return one.car.air_state == flat.AirState.Jumping

    return [*takewhile(pushes, dropwhile(lambda one: not pushes(one), frames))]


def _length(frames: Sequence[Frame]) -> float:
    return seconds_between(frames[0], frames[-1]) + TICK_SECONDS if frames else 0.0


def _after_push(frames: Sequence[Frame]) -> tuple[list[Frame], list[Frame]]:
    """Return the frames in which a jump pushes, and those in the air after it."""
    push = _pushing(frames)
    if not push:
        return [], []
    after = frames[frames.index(push[-1]) + 1 :]
    return push, [
        *takewhile(lambda one: one.car.air_state != flat.AirState.OnGround and one.car.has_jumped, after)
    ]


def judge_timeout(frames: Sequence[Frame]) -> Finding:
    """Find what `dodge_timeout` starts from after a held jump."""
    push, rest = _after_push(frames)
    timed = [one for one in rest if one.car.dodge_timeout > 0.0]
    if len(push) < 6 or not timed:
        return Finding(None, "no held jump with a dodge_timeout above 0 after it was seen")
    first, hold = timed[0], _length(push)
    waited = seconds_between(push[-1], first)
    start = first.car.dodge_timeout + waited
    evidence = (
        f"{first.car.dodge_timeout:.4f} in the air, {waited:.4f} s after a jump that pushed for {hold:.3f} s"
    )
    more = start - DODGE_DEADLINE_SECONDS
    neither = f": neither {DODGE_DEADLINE_SECONDS} s nor that and the push"
    return Finding.first_of(
        evidence, neither, after_jump=abs(more) < _NEAR, plus_hold=abs(more - hold) < _NEAR
    )


def judge_jumping(frames: Sequence[Frame]) -> Finding:
    """Find the value of `dodge_timeout` while a jump pushes."""
    push = _pushing(frames)
    if len(push) < 6:
        return Finding(None, "no held jump was seen")
    values = [one.car.dodge_timeout for one in push[len(push) // 2 :]]
    evidence = f"{min(values):.4f} to {max(values):.4f} while the jump pushes"
    return Finding.first_of(
        evidence, minus_one=set(values) == {-1.0}, full=min(values) > DODGE_DEADLINE_SECONDS - _NEAR
    )


def judge_used(dodged: Sequence[Frame], doubled: Sequence[Frame]) -> Finding:
    """Find the value of `dodge_timeout` after a dodge and after a double jump."""
    values: set[str | None] = set()
    evidence: list[str] = []
    for what, frames in (("dodge", dodged), ("double jump", doubled)):
        push, rest = _after_push(frames)
        used = [
            one
            for one in rest
            if (one.car.has_dodged or one.car.has_double_jumped)
            and seconds_between(push[-1], one) < DODGE_DEADLINE_SECONDS - 0.1
        ]
        if len(used) < 20:
            evidence.append(f"no {what} was seen")
            continue
        timeouts, passed = [one.car.dodge_timeout for one in used], seconds_between(used[0], used[-1])
        evidence.append(f"{timeouts[0]:.4f} to {timeouts[-1]:.4f} in {passed:.2f} s of {what}")
        counts = min(timeouts) > 0.0 and abs(timeouts[0] - timeouts[-1] - passed) < _NEAR
        values.add("minus_one" if set(timeouts) == {-1.0} else "counting" if counts else None)
    return Finding(values.pop() if len(values) == 1 else None, "; ".join(evidence))


def judge_expired(frames: Sequence[Frame]) -> Finding:
    """Find the value of `dodge_timeout` in the air once no dodge is possible any more."""
    push, rest = _after_push(frames)
    late = [
        one
        for one in rest
        if not one.car.has_dodged
        and not one.car.has_double_jumped
        and seconds_between(push[-1], one) > DODGE_DEADLINE_SECONDS + _length(push) + 0.03
    ]
    if not late:
        return Finding(None, "no car stayed in the air for 1.5 s after a jump")
    values = {one.car.dodge_timeout for one in late}
    since = seconds_between(push[-1], late[0])
    evidence = f"{min(values):g} in the air, {since:.2f} s and more after the jump"
    if values not in ({-1.0}, {0.0}):
        evidence = f"{min(values):.4f} to {max(values):.4f}, {since:.2f} s after the jump"
    return Finding.first_of(evidence, minus_one=values == {-1.0}, zero=values == {0.0})


_TILTS: Final = (
    (0.1, 0.25), (0.14, -0.3), (-0.12, 0.25), (-0.15, -0.3), (0.2, 0.2), (-0.2, 0.2),
    (0.25, -0.25), (-0.25, 0.3),
)  # fmt: skip
"""(pitch, roll) of the landings, rad."""

_DROP_Z: Final = 62.0  # uu; no wheel reaches the floor yet
_SINKING: Final = 60.0  # uu/s
_CLEAR: Final = 0.4  # uu by which a wheel must reach or miss the floor to be counted
_LONGER_REACH: Final = 2.5  # uu that the game's wheels reach farther than RocketSim's [captures of 2026]
_LEAST: Final = 4  # frames with three wheels that are needed for a finding
_MOST_SPEED: Final = 600.0  # uu/s


def land_tilted(scene: ScenePlayer) -> Play[list[Frame]]:
    """Land several times with a tilt, so that one wheel touches after another."""
    frames: list[Frame] = []
    for pitch, roll in _TILTS:
        set_up = yield from scene.put(
            put((*SPOT, _DROP_Z), (0.0, 0.0, -_SINKING), (pitch, 0.0, roll)), boost=50.0
        )
        if not set_up:  # a jump with a roll also lands on two wheels first
            yield from scene.hold(20, press(jump=True))
            yield from scene.hold(15, press(roll=math.copysign(1.0, roll), pitch=math.copysign(0.5, pitch)))
            yield from scene.land(240)
        yield from scene.hold(45)
        frames += scene.frames
    return frames


def count_touching_wheels(car: flat.PlayerInfo) -> int | None:
    """Count the wheels that touch the floor by geometry; None where that is too close to call.

    A wheel that touches by the game's physics and not by RocketSim's, or the other way round, is too close.
    The pose one tick before is computed from the current one and its speeds, so lost packets do no harm.
    """
    body, turn = car.physics, car.physics.rotation
    sp, cp = math.sin(turn.pitch), math.cos(turn.pitch)
    sy, cy = math.sin(turn.yaw), math.cos(turn.yaw)
    sr, cr = math.sin(turn.roll), math.cos(turn.roll)
    axes = (
        (cp * cy, cp * sy, sp),
        (cy * sp * sr - cr * sy, sy * sp * sr + cr * cy, -cp * sr),
        (-cr * cy * sp - sr * sy, -cr * sy * sp + sr * cy, cp * cr),
    )
    spin, tick = body.angular_velocity, TICK_SECONDS
    forward, right, up = (z - tick * (spin.x * y - spin.y * x) for x, y, z in axes)
    height = body.location.z - tick * body.velocity.z
    if up < 0.5:
        return None
    box = car.hitbox
    sizes = [math.dist((box.length, box.width, box.height), one[1:4]) for one in HITBOXES]
    wheels = WHEELS[sizes.index(min(sizes))]
    count = 0
    for x, y, z, reach in (wheels.front, wheels.back):
        for side in (1.0, -1.0):
            gap = height + forward * x + right * side * y + up * (z - reach)
            if -_CLEAR < gap < _LONGER_REACH + _CLEAR:
                return None
            count += gap < 0.0
    return count


def judge_wheels(frames: Sequence[Frame]) -> Finding:
    """Find how many wheels make `OnGround`, from landings on the flat floor."""
    grounded = {3: 0, 4: 0}
    seen = {3: 0, 4: 0}
    for one in frames:
        car = one.car
        if car.air_state not in (flat.AirState.OnGround, flat.AirState.InAir):
            continue
        speed, place = car.physics.velocity, car.physics.location
        if math.hypot(speed.x, speed.y, speed.z) > _MOST_SPEED or max(abs(place.x), abs(place.y)) > 3500.0:
            continue
        count = count_touching_wheels(car)
        if count in (3, 4):
            seen[count] += 1
            grounded[count] += car.air_state == flat.AirState.OnGround
    evidence = (
        f"on the ground in {grounded[3]} of {seen[3]} packets with three wheels down, "
        f"in {grounded[4]} of {seen[4]} with four"
    )
    if seen[3] < _LEAST or seen[4] < _LEAST or grounded[4] < 0.8 * seen[4]:
        return Finding(None, evidence)
    share = grounded[3] / seen[3]
    return Finding.first_of(evidence, three_wheels=share > 0.75, four_wheels=share < 0.25)


_BEFORE_PAD: Final = 250.0  # uu before the pad, where the car is placed
_PAD_SPEED: Final = 700.0  # uu/s
_LONG_ENOUGH: Final = 0.3  # s that a pad must be inactive to show which way its timer counts


_Absence = list[tuple[Frame, float]]
"""The packets that show a pad inactive, with its timer: the first and the latest."""


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
                self._away[number] = [(frame, now.timer)] * 2
                self._absences.append(self._away[number])
            elif number in self._away:
                self._away[number][1] = frame, now.timer

    def judge(self) -> Finding:
        """Find which way the timers count."""
        values: set[str | None] = set()
        evidence = "no packet showed a pad being taken"
        for (first, at_first), (last, at_last) in self._absences:
            passed = seconds_between(first, last)
            if passed >= _LONG_ENOUGH:
                slope = (at_last - at_first) / passed
                values.add(
                    "elapsed" if abs(slope - 1.0) < 0.1 else "remaining" if abs(slope + 1.0) < 0.1 else None
                )
                evidence = (
                    f"timer {at_first:.4f} in the first packet without the pad, "
                    f"{passed:.2f} s later {at_last:.4f}"
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
_UNMOVED: Final = 120.0  # uu between the last position and that of the demolition
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
    last = xyz(frames[frames.index(gone[0]) - 1].cars[1].physics.location)
    seen = [xyz(frame.cars[1].physics.location) for frame in gone]
    x, y, z = seen[len(seen) // 2]
    evidence = (
        f"({x:.0f}, {y:.0f}, {z:.0f}) uu while it is demolished, "
        f"({last[0]:.0f}, {last[1]:.0f}, {last[2]:.0f}) in the packet before"
    )
    return Finding.first_of(
        evidence,
        ": not always there or at the origin",
        origin=all(math.dist(position, (0.0, 0.0, 0.0)) < _ORIGIN for position in seen),
        kept=all(math.dist(position, last) < _UNMOVED for position in seen),
    )
