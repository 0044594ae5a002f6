"""Wait out a kickoff, then touch the ball; judge when Kickoff ends and how the clock runs."""

import math
from collections.abc import Sequence
from typing import Final

from rlbot import flat

from rlgym_bridge.game import BALL_REST_Z, Phase
from rlgym_bridge.trials.findings import Finding
from rlgym_bridge.trials.frames import Frame, press, put, seconds_between
from rlgym_bridge.trials.pad_watch import towards
from rlgym_bridge.trials.probe_scene import ASIDE, STANDING_Z, MatchOver, Play, ProbeScene

_IDLE_TICKS: Final = 300  # of a kickoff that nobody plays: 2.5 s
_WAIT: Final = 3000  # packets until the first kickoff
_RUN_TICKS: Final = 200  # with the clock running


def untouched(scene: ProbeScene) -> Play[list[Frame]]:
    """Wait for the first kickoff and leave the ball alone for 2.5 s; return the frames from GO on.

    Raises:
        MatchOver: No kickoff came.
    """
    packets = 0
    while not scene.frame.playing:
        packets += 1
        if packets > _WAIT or scene.frame.phase == Phase.ENDED:
            raise MatchOver("no kickoff came")
        yield from scene.step()
    fresh = len(scene.frames) > 1 and scene.frames[-2].phase == Phase.COUNTDOWN
    scene.frames = [scene.frame]
    if not fresh:
        return []
    yield from scene.hold(_IDLE_TICKS)
    return scene.frames


def judge_end(frames: Sequence[Frame]) -> Finding:
    """Find when the phase Kickoff turns Active."""
    name = "kickoff_ends"
    if not frames:
        return Finding(name, None, "no kickoff was seen from its GO on")
    start = frames[0]
    for one in frames:
        if _touched(start, one):
            return Finding(name, None, "somebody touched the ball in the kickoff, which nobody should")
        if one.phase != Phase.KICKOFF:
            waited = seconds_between(start, one)
            evidence = f"phase {one.phase} without a touch {waited:.3f} s after GO"
            settled = one.phase == Phase.ACTIVE and 1.8 < waited < 2.2
            return Finding(name, "after_two_seconds" if settled else None, evidence)
    waited = seconds_between(start, frames[-1])
    evidence = f"still Kickoff {waited:.2f} s after GO, without a touch"
    return Finding(name, "at_touch" if waited > 2.2 else None, evidence)


def _touched(start: Frame, now: Frame) -> bool:
    since = start.packet.match_info.seconds_elapsed
    touches = [one.latest_touch for one in now.packet.players]
    return any(one is not None and one.game_seconds > since for one in touches)


def touch(scene: ProbeScene) -> Play[list[Frame]]:
    """Touch the ball so that the clock runs, and record the clock."""
    begun = yield from scene.put(
        put((-400.0, 0.0, STANDING_Z), (800.0, 0.0, 0.0)),
        put((*ASIDE, STANDING_Z), rotation=(0.0, 0.5 * math.pi, 0.0)),
        put((0.0, 0.0, BALL_REST_Z)),
        controls=press(throttle=1.0),
    )
    start = scene.frame
    ticks = 90 if begun else 900
    yield from scene.until(
        lambda frame: _touched(start, frame), ticks, press(throttle=1.0) if begun else _at_ball
    )
    yield from scene.hold(_RUN_TICKS)
    return scene.frames


def _at_ball(frame: Frame) -> flat.ControllerState:
    balls = frame.packet.balls
    place = balls[0].physics.location if balls else None
    return press() if place is None else towards(frame, place.x, place.y, throttle=1.0)


def judge_clock(frames: Sequence[Frame]) -> Finding:
    """Find whether the clock has fractions of a second."""
    name = "clock"
    clocks = [one.clock for one in frames if one.playing]
    if not clocks or clocks[0] == clocks[-1]:
        return Finding(name, None, "the clock did not run")
    kinds = len(set(clocks))
    evidence = f"{clocks[0]:.4f} to {clocks[-1]:.4f}, {kinds} values in {len(clocks)} packets"
    whole = all(abs(one - round(one)) < 1e-4 for one in clocks)
    if not whole:
        return Finding(name, "fraction", evidence)
    ran = [one for one in frames if one.clock != frames[0].clock]
    if seconds_between(ran[0], frames[-1]) < 0.1:
        return Finding(name, None, f"{evidence}: too short to judge")
    return Finding(name, "whole", evidence)


def waits(frames: Sequence[Frame]) -> str | None:
    """Return a note if the clock ran before the kickoff's first touch, None if it waited."""
    clocks = {one.clock for one in frames}
    if len(clocks) > 1:
        return f"the clock ran from {max(clocks):.2f} to {min(clocks):.2f} before the first touch"
    return None
