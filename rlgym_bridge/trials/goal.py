"""Score a goal and judge what follows it: ball list, replay, countdown."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from rlgym_bridge.game import (
    COUNTDOWN_TICKS,
    GOAL_SCORED_TICKS,
    REPLAY_TICKS,
    TICK_SECONDS,
    Phase,
)
from rlgym_bridge.trials.findings import Fact, Finding
from rlgym_bridge.trials.frames import Frame, put, seconds_between
from rlgym_bridge.trials.probe_scene import ASIDE, SPOT, STANDING_Z, Play, ProbeScene

_SETTLED: Final = 30  # packets after a change of phase that are not judged
_LONGEST: Final = 3200  # packets from a goal to the next kickoff, at most
_AT_REPLAY: Final = 60  # packets of a replay needed to judge whether frames are counted
_IDLE: Final = (Phase.REPLAY, Phase.PAUSED, Phase.ENDED)


def score(scene: ProbeScene) -> Play[list[Frame]]:
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
    for _ in range(_LONGEST):
        if scene.frame.playing or scene.frame.phase == Phase.ENDED:
            break
        yield from scene.step()
    return scene.frames


def judge_ball(frames: Sequence[Frame]) -> Finding:
    """Find whether packets have a ball between a goal and the next countdown."""
    name = "ball_after_goal"
    after = [one for one in frames if one.phase in (Phase.GOAL_SCORED, Phase.REPLAY)][_SETTLED:]
    if not after:
        return Finding(name, None, "no goal was scored")
    shown = sum(bool(one.packet.balls) for one in after)
    evidence = f"a ball in {shown} of {len(after)} packets between a goal and the countdown"
    if shown == len(after):
        return Finding(name, "shown", evidence)
    return Finding(name, None if shown else "hidden", evidence)


def judge_frames(frames: Sequence[Frame]) -> Finding:
    """Find whether frame numbers advance where no physics runs."""
    name = "idle_frames"
    steps = [
        now.number - before.number
        for before, now in pairwise(frames)
        if before.phase == now.phase and now.phase in _IDLE
    ]
    if len(steps) < _AT_REPLAY:
        return Finding(
            name, None, f"only {len(steps)} packets of a replay were seen, although goals are replayed"
        )
    moving = sum(one > 0 for one in steps)
    evidence = f"frame_num rose in {moving} of {len(steps)} packets of the replay"
    if moving == len(steps):
        return Finding(name, "counted", evidence)
    return Finding(name, "repeated" if steps.count(0) > 0.9 * len(steps) else None, evidence)


@dataclass
class PhaseWatch:
    """Measures how long phases last, over all packets."""

    _began: Frame | None = None
    _before: Frame | None = None
    _seconds: dict[int, float] = field(default_factory=dict)  # by frame numbers
    _packets: dict[int, int] = field(default_factory=dict)  # of phases in which frame numbers stood still
    _count: int = 0

    def see(self, frame: Frame) -> None:
        """Follow the phase of a packet."""
        before, self._before = self._before, frame
        self._count += 1
        if before is None or before.phase == frame.phase:
            return
        if self._began is not None:
            if before.phase in _IDLE and before.number == self._began.number:
                self._packets.setdefault(before.phase, self._count)
            else:
                self._seconds.setdefault(before.phase, seconds_between(self._began, frame))
        self._began, self._count = frame, 0

    def facts(self, packets_per_second: float) -> list[Fact]:
        """Return the lengths of the phases of fixed length.

        Args:
            packets_per_second: Packet rate in play; it times phases in which frame numbers stand still.
        """
        measured: list[Fact] = []
        for name, phase, ticks in (
            ("GoalScored lasts", Phase.GOAL_SCORED, GOAL_SCORED_TICKS),
            ("Replay lasts", Phase.REPLAY, REPLAY_TICKS),
            ("Countdown lasts", Phase.COUNTDOWN, COUNTDOWN_TICKS),
        ):
            value, tolerance = self._seconds.get(phase), 0.1
            if value is None and phase in self._packets:
                value, tolerance = self._packets[phase] / packets_per_second, 0.5
            measured.append(Fact(name, value, ticks * TICK_SECONDS, "s", tolerance))
        return measured
