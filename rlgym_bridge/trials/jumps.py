"""Jump in several ways, and judge `dodge_timeout` and the lengths of jumps and dodges."""

from collections.abc import Sequence
from typing import Final

from rlbot import flat

from rlgym_bridge.game import DODGE_DEADLINE_SECONDS, FLIP_TORQUE_SECONDS, JUMP_MAX_SECONDS, JUMP_MIN_SECONDS
from rlgym_bridge.game import TICK_SECONDS as TICK
from rlgym_bridge.trials.findings import Fact, Finding
from rlgym_bridge.trials.frames import Frame, press, seconds_between
from rlgym_bridge.trials.probe_scene import Play, ProbeScene

_JUMP: Final = press(jump=True)
_NEAR: Final = 0.05  # s by which a measured time may differ from the expected one
_DOUBLE_JUMP_SECONDS: Final = 13 * TICK  # [flatbuffers, `AirState.DoubleJumping`]
_RISE: Final = 900.0  # uu/s, enough to stay in the air until no dodge is possible
_AERIAL_PITCH: Final = 1.2  # rad


# --- scenes ---------------------------------------------------------------------------------------


def tap(scene: ProbeScene) -> Play[list[Frame]]:
    """Jump with the button held for one packet."""
    return (yield from _jump(scene, 1))


def held(scene: ProbeScene) -> Play[list[Frame]]:
    """Jump with the button held for longer than a jump pushes."""
    return (yield from _jump(scene, 40))


def _jump(scene: ProbeScene, ticks: int) -> Play[list[Frame]]:
    yield from scene.stand()
    yield from scene.hold(ticks, _JUMP)
    yield from scene.hold(30)
    yield from scene.land()
    return scene.frames


def dodge(scene: ProbeScene) -> Play[list[Frame]]:
    """Jump, and dodge forwards a little later."""
    return (yield from _second(scene, press(jump=True, pitch=-1.0)))


def double(scene: ProbeScene) -> Play[list[Frame]]:
    """Jump, and jump again a little later."""
    return (yield from _second(scene, _JUMP))


def _second(scene: ProbeScene, controls: flat.ControllerState) -> Play[list[Frame]]:
    yield from scene.stand()
    yield from scene.hold(12, _JUMP)
    yield from scene.hold(18)
    yield from scene.hold(4, controls)
    yield from scene.hold(100)
    yield from scene.land()
    return scene.frames


def unused(scene: ProbeScene, throw: bool = True) -> Play[list[Frame]]:
    """Jump and stay in the air until no dodge is possible.

    Args:
        scene: The scene to play in.
        throw: Set the car's speed upwards. If False, or where states cannot be set, it flies up on its
            boost.
    """
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
    yield from scene.until(lambda frame: frame.car.air_state == flat.AirState.OnGround, 300)
    return frames


def _nose_up(frame: Frame, boost: bool) -> flat.ControllerState:
    off = _AERIAL_PITCH - frame.car.physics.rotation.pitch
    spin = frame.car.physics.angular_velocity
    fast = (spin.x**2 + spin.y**2 + spin.z**2) ** 0.5
    pitch = max(-1.0, min(1.0, 2.5 * off - (0.4 * fast if off < 0.5 else 0.0)))
    return press(pitch=pitch, boost=boost)


# --- judges ---------------------------------------------------------------------------------------


def _pushing(frames: Sequence[Frame]) -> list[Frame]:
    """Return the frames in which the first jump pushes."""
    pushing: list[Frame] = []
    for one in frames:
        if one.car.air_state == flat.AirState.Jumping:
            pushing.append(one)
        elif pushing:
            break
    return pushing


def _length(frames: Sequence[Frame]) -> float:
    """Return the time that frames cover, s, with a tick for the last one."""
    return seconds_between(frames[0], frames[-1]) + TICK if frames else 0.0


def _after_push(frames: Sequence[Frame]) -> tuple[list[Frame], list[Frame]]:
    """Return the frames in which a jump pushes, and those in the air after it."""
    push = _pushing(frames)
    if not push:
        return [], []
    rest: list[Frame] = []
    for one in frames[frames.index(push[-1]) + 1 :]:
        if one.car.air_state == flat.AirState.OnGround or not one.car.has_jumped:
            break
        rest.append(one)
    return push, rest


def judge_timeout(frames: Sequence[Frame]) -> Finding:
    """Find what `dodge_timeout` starts from after a held jump."""
    name = "dodge_timeout"
    push, rest = _after_push(frames)
    timed = [one for one in rest if one.car.dodge_timeout > 0.0]
    if len(push) < 6 or not timed:
        return Finding(name, None, "no held jump with a dodge_timeout above 0 after it was seen")
    first, hold = timed[0], _length(push)
    waited = seconds_between(push[-1], first)
    start = first.car.dodge_timeout + waited
    evidence = (
        f"{first.car.dodge_timeout:.4f} in the air, {waited:.4f} s after a jump that pushed for {hold:.3f} s"
    )
    if abs(start - DODGE_DEADLINE_SECONDS) < _NEAR:
        return Finding(name, "after_jump", evidence)
    if abs(start - DODGE_DEADLINE_SECONDS - hold) < _NEAR:
        return Finding(name, "plus_hold", evidence)
    return Finding(name, None, f"{evidence}: neither {DODGE_DEADLINE_SECONDS} s nor that and the push")


def judge_jumping(frames: Sequence[Frame]) -> Finding:
    """Find the value of `dodge_timeout` while a jump pushes."""
    name = "dodge_timeout_jumping"
    push = _pushing(frames)
    if len(push) < 6:
        return Finding(name, None, "no held jump was seen")
    values = [one.car.dodge_timeout for one in push[len(push) // 2 :]]
    evidence = f"{min(values):.4f} to {max(values):.4f} while the jump pushes"
    if max(values) == min(values) == -1.0:
        return Finding(name, "minus_one", evidence)
    if min(values) > DODGE_DEADLINE_SECONDS - _NEAR:
        return Finding(name, "full", evidence)
    return Finding(name, None, evidence)


def judge_used(dodged: Sequence[Frame], doubled: Sequence[Frame]) -> Finding:
    """Find the value of `dodge_timeout` after a dodge and after a double jump."""
    name = "dodge_timeout_used"
    answers: dict[str, str] = {}
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
        first, last = used[0], used[-1]
        values = [one.car.dodge_timeout for one in used]
        evidence.append(
            f"{values[0]:.4f} to {values[-1]:.4f} in {seconds_between(first, last):.2f} s of {what}"
        )
        counted = values[0] - values[-1] - seconds_between(first, last)
        if set(values) == {-1.0}:
            answers[what] = "minus_one"
        elif min(values) > 0.0 and abs(counted) < _NEAR:
            answers[what] = "counting"
        else:
            answers[what] = ""
    kinds = set(answers.values())
    value = kinds.pop() if len(kinds) == 1 else None
    return Finding(name, value or None, "; ".join(evidence))


def judge_expired(frames: Sequence[Frame]) -> Finding:
    """Find the value of `dodge_timeout` in the air once no dodge is possible any more."""
    name = "dodge_timeout_expired"
    push, rest = _after_push(frames)
    late = [
        one
        for one in rest
        if not one.car.has_dodged
        and not one.car.has_double_jumped
        and seconds_between(push[-1], one) > DODGE_DEADLINE_SECONDS + _length(push) + 0.03
    ]
    if not late:
        return Finding(name, None, "no car stayed in the air for 1.5 s after a jump")
    values = {one.car.dodge_timeout for one in late}
    since = seconds_between(push[-1], late[0])
    evidence = f"{min(values):g} in the air, {since:.2f} s and more after the jump"
    if values == {-1.0}:
        return Finding(name, "minus_one", evidence)
    if values == {0.0}:
        return Finding(name, "zero", evidence)
    return Finding(name, None, f"{min(values):.4f} to {max(values):.4f}, {since:.2f} s after the jump")


def facts(
    tapped: Sequence[Frame], long: Sequence[Frame], dodged: Sequence[Frame], doubled: Sequence[Frame]
) -> list[Fact]:
    """Return how long jumps and dodges last."""
    return [
        _lasting(name, frames, kind, expected)
        for name, frames, kind, expected in (
            ("a tapped jump pushes", tapped, flat.AirState.Jumping, JUMP_MIN_SECONDS),
            ("a held jump pushes", long, flat.AirState.Jumping, JUMP_MAX_SECONDS),
            ("a dodge turns", dodged, flat.AirState.Dodging, FLIP_TORQUE_SECONDS + TICK),
            ("a double jump is shown", doubled, flat.AirState.DoubleJumping, _DOUBLE_JUMP_SECONDS),
        )
    ]


def _lasting(name: str, frames: Sequence[Frame], kind: flat.AirState, expected: float) -> Fact:
    """Return how long an air state is shown, from its first packet to the first one after it."""
    shown = [number for number, frame in enumerate(frames) if frame.car.air_state == kind]
    if not shown or shown[-1] + 1 >= len(frames):
        return Fact(name, None, expected, "s", TICK)
    value = seconds_between(frames[shown[0]], frames[shown[-1] + 1])
    # Where packets skip frames, both ends are seen late.
    return Fact(name, value, expected, "s", max(map(seconds_between, frames, frames[1:])) + 0.1 * TICK)
