"""Land on fewer than four wheels, and judge how many must touch for `AirState.OnGround`.

Which wheels touch the flat floor follows from the car's pose one tick before: a wheel touches where the
floor is within its reach below the mount.
"""

import math
from collections.abc import Sequence
from typing import Final

from rlbot import flat

from rlgym_bridge.game import HITBOXES, TICK_SECONDS, WHEELS
from rlgym_bridge.trials.findings import Finding
from rlgym_bridge.trials.frames import Frame, press, put
from rlgym_bridge.trials.probe_scene import SPOT, Play, ProbeScene

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


def landings(scene: ProbeScene) -> Play[list[Frame]]:
    """Land several times with a tilt, so that one wheel touches after another."""
    frames: list[Frame] = []
    for pitch, roll in _TILTS:
        set_up = yield from scene.put(
            put((*SPOT, _DROP_Z), (0.0, 0.0, -_SINKING), (pitch, 0.0, roll)), boost=50.0
        )
        if not set_up:  # a jump with a roll also lands on two wheels first
            yield from scene.hold(20, press(jump=True))
            yield from scene.hold(15, press(roll=math.copysign(1.0, roll), pitch=math.copysign(0.5, pitch)))
            yield from scene.until(lambda frame: frame.car.air_state == flat.AirState.OnGround, 240)
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


def judge(frames: Sequence[Frame]) -> Finding:
    """Find how many wheels make `OnGround`, from landings on the flat floor."""
    name = "on_ground"
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
        return Finding(name, None, evidence)
    share = grounded[3] / seen[3]
    value = "three_wheels" if share > 0.75 else "four_wheels" if share < 0.25 else None
    return Finding(name, value, evidence)
