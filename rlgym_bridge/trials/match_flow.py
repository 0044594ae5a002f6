"""Play a kickoff and a goal, and judge clock, phases, frame numbers and the ball around them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from rlbot import flat

from rlgym_bridge.game import BALL_REST_Z, TICKS_PER_SECOND, Phase
from rlgym_bridge.trials.findings import Finding
from rlgym_bridge.trials.scene_player import (
    ASIDE,
    SPOT,
    STANDING_Z,
    Frame,
    MatchOver,
    Play,
    ScenePlayer,
    press,
    put,
    seconds_between,
    towards,
)

_IDLE_TICKS: Final = 300  # of a kickoff that nobody plays: 2.5 s
_WAIT: Final = 3000  # packets until the first kickoff
_RUN_TICKS: Final = 200  # with the clock running


def leave_kickoff(scene: ScenePlayer) -> Play[list[Frame]]:
    """Wait for the first kickoff and leave the ball alone for 2.5 s; return the frames from GO on."""
    yield from scene.wait(_WAIT, lambda frame: frame.playing or frame.phase == Phase.ENDED)
    if not scene.frame.playing:
        raise MatchOver("no kickoff came")
    fresh = len(scene.frames) > 1 and scene.frames[-2].phase == Phase.COUNTDOWN
    scene.frames = [scene.frame]
    if not fresh:
        return []
    yield from scene.hold(_IDLE_TICKS)
    return scene.frames


def judge_kickoff_end(frames: Sequence[Frame]) -> Finding:
    """Find when the phase Kickoff turns Active."""
    if not frames:
        return Finding(None, "no kickoff was seen from its GO on")
    start = frames[0]
    for one in frames:
        if _touched(start, one):
            return Finding(None, "somebody touched the ball in the kickoff, which nobody should")
        if one.phase != Phase.KICKOFF:
            waited = seconds_between(start, one)
            evidence = f"phase {one.phase} without a touch {waited:.3f} s after GO"
            settled = one.phase == Phase.ACTIVE and 1.8 < waited < 2.2
            return Finding.first_of(evidence, after_two_seconds=settled)
    waited = seconds_between(start, frames[-1])
    evidence = f"still Kickoff {waited:.2f} s after GO, without a touch"
    return Finding.first_of(evidence, at_touch=waited > 2.2)


def _touched(start: Frame, now: Frame) -> bool:
    since = start.packet.match_info.seconds_elapsed
    touches = [one.latest_touch for one in now.packet.players]
    return any(one is not None and one.game_seconds > since for one in touches)


def touch_ball(scene: ScenePlayer) -> Play[list[Frame]]:
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
    clocks = [one.clock for one in frames if one.playing]
    if not clocks or clocks[0] == clocks[-1]:
        return Finding(None, "the clock did not run")
    kinds = len(set(clocks))
    evidence = f"{clocks[0]:.4f} to {clocks[-1]:.4f}, {kinds} values in {len(clocks)} packets"
    whole = all(abs(one - round(one)) < 1e-4 for one in clocks)
    if not whole:
        return Finding("fraction", evidence)
    ran = [one for one in frames if one.clock != frames[0].clock]
    if seconds_between(ran[0], frames[-1]) < 0.1:
        return Finding(None, f"{evidence}: too short to judge")
    return Finding("whole", evidence)


def note_early_clock(frames: Sequence[Frame]) -> str | None:
    """Return a note if the clock ran before the kickoff's first touch, None if it waited."""
    clocks = {one.clock for one in frames}
    if len(clocks) > 1:
        return f"the clock ran from {max(clocks):.2f} to {min(clocks):.2f} before the first touch"
    return None


_SETTLED: Final = 30  # packets after a change of phase that are not judged
_LONGEST: Final = 3200  # packets from a goal to the next kickoff, at most
_AT_REPLAY: Final = 60  # packets of a replay needed to judge whether frames are counted
_IDLE: Final = (Phase.REPLAY, Phase.PAUSED, Phase.ENDED)


def score_goal(scene: ScenePlayer) -> Play[list[Frame]]:
    """Shoot the ball into orange's goal; return the frames from then to the next kickoff."""
    for _ in range(2):
        done = yield from scene.put(
            put((*SPOT, STANDING_Z)),
            put((*ASIDE, STANDING_Z)),
            put((0.0, 4600.0, 150.0), (0.0, 2500.0, 200.0)),
        )
        if not done:
            return []
        yield from scene.until(lambda frame: not frame.playing, 240)
        if not scene.frame.playing:
            break
    scene.frames = [scene.frame]
    if scene.frame.playing:
        return []
    yield from scene.wait(_LONGEST, lambda frame: frame.playing or frame.phase == Phase.ENDED)
    return scene.frames


def judge_ball_after_goal(frames: Sequence[Frame]) -> Finding:
    """Find whether packets have a ball between a goal and the next countdown."""
    after = [one for one in frames if one.phase in (Phase.GOAL_SCORED, Phase.REPLAY)][_SETTLED:]
    if not after:
        return Finding(None, "no goal was scored")
    shown = sum(bool(one.packet.balls) for one in after)
    evidence = f"a ball in {shown} of {len(after)} packets between a goal and the countdown"
    return Finding.first_of(evidence, shown=shown == len(after), hidden=not shown)


def judge_idle_frames(frames: Sequence[Frame]) -> Finding:
    """Find whether frame numbers advance where no physics runs."""
    steps = [
        now.number - before.number
        for before, now in pairwise(frames)
        if before.phase == now.phase and now.phase in _IDLE
    ]
    if len(steps) < _AT_REPLAY:
        return Finding(None, f"only {len(steps)} packets of a replay were seen, although goals are replayed")
    moving = sum(one > 0 for one in steps)
    evidence = f"frame_num rose in {moving} of {len(steps)} packets of the replay"
    repeated = steps.count(0) > 0.9 * len(steps)
    return Finding.first_of(evidence, counted=moving == len(steps), repeated=repeated)


_GAP_TICKS: Final = 120  # a longer step is a jump of the counter, as one back is


@dataclass
class Cadence:
    """Counts packets and frames while the ball is in play."""

    _before: Frame | None = None
    _steps: dict[int, int] = field(default_factory=dict)

    def see(self, frame: Frame) -> None:
        """Count a packet."""
        before, self._before = self._before, frame
        if before is not None and before.playing and frame.playing:
            step = frame.number - before.number
            self._steps[step] = self._steps.get(step, 0) + 1

    def judge(self) -> Finding:
        """Find the packets in a second of game time."""
        forward = {step: count for step, count in self._steps.items() if 0 < step <= _GAP_TICKS}
        packets = sum(forward.values())
        jumps = sum(self._steps.values()) - packets
        if packets < TICKS_PER_SECOND:
            why = f"; {jumps} jumps of frame_num" if jumps else ""
            return Finding(None, f"less than a second of play was seen{why}")
        steps = ", ".join(f"{count} times {step}" for step, count in sorted(forward.items()))
        evidence = f"frame_num advances by: {steps}" + (f"; {jumps} jumps left out" if jumps else "")
        frames = sum(step * count for step, count in forward.items())
        return Finding(f"{packets / frames * TICKS_PER_SECOND:.1f}", evidence)
