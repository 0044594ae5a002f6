"""Measure a server's dialect: play all scenes in order, judge them, and report the findings.

Nothing here shares code with a server, so the probe is an independent check of what servers send.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from rlbot import flat

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.live.agent_connections import AgentConnections, match_of
from rlgym_bridge.protocol_variant import POINTS
from rlgym_bridge.trials import car_scenes, input_latency, match_flow
from rlgym_bridge.trials.findings import TIMING, Finding, ProbeReport
from rlgym_bridge.trials.scene_player import NONSENSE, Frame, Play, Reply, ScenePlayer, SceneScript

_LOG = logging.getLogger("rlgym_bridge.trials")

_MOST_PACKETS: Final = 200 * TICKS_PER_SECOND  # packets after which the probe ends in any case: 200 s of game


class Probe(SceneScript):
    """Plays all scenes on the packets of a server; see `SceneScript`."""

    def __init__(self, ids: Sequence[int], field: flat.FieldInfo, most_packets: int = _MOST_PACKETS) -> None:
        super().__init__(ids, most_packets)
        self._field = field
        self._pads, self._cadence = car_scenes.PadWatch(), match_flow.Cadence()
        self._findings: dict[str, Finding] = {}

    def see(self, frame: Frame) -> None:
        """Follow pads and frame numbers over all packets."""
        self._pads.see(frame)
        self._cadence.see(frame)

    def play(self, scene: ScenePlayer) -> Play[None]:
        """Play all scenes."""
        idle = yield from match_flow.leave_kickoff(scene)
        self._judge("kickoff_ends", lambda: match_flow.judge_kickoff_end(idle))
        if note := match_flow.note_early_clock(idle):
            self.notes.append(note)
        yield from scene.stand()
        if scene.sets_state is False:
            self.notes.append("the server ignores state setting (enable_state_setting)")
        yield from car_scenes.take_pad(scene, self._field)
        yield from self._jumps(scene)
        yield from self._drives(scene)
        yield from scene.begin()
        run = yield from match_flow.touch_ball(scene)
        self._judge("clock", lambda: match_flow.judge_clock(run))
        yield from scene.begin()
        after = yield from match_flow.score_goal(scene)
        self._judge("ball_after_goal", lambda: match_flow.judge_ball_after_goal(after))
        self._judge("idle_frames", lambda: match_flow.judge_idle_frames(after))

    def _jumps(self, scene: ScenePlayer) -> Play[None]:
        yield from scene.begin()
        held = yield from car_scenes.jump(scene)
        self._judge("dodge_timeout", lambda: car_scenes.judge_timeout(held))
        self._judge("dodge_timeout_jumping", lambda: car_scenes.judge_jumping(held))
        yield from scene.begin()
        dodged = yield from car_scenes.jump_twice(scene, pitch=-1.0)
        doubled = yield from car_scenes.jump_twice(scene)
        self._judge("dodge_timeout_used", lambda: car_scenes.judge_used(dodged, doubled))
        landed = [*held, *dodged, *doubled]
        yield from scene.begin()
        unused = yield from car_scenes.fly_on(scene)
        if car_scenes.judge_expired(unused).value is None and scene.sets_state:
            unused = yield from car_scenes.fly_on(scene, throw=False)
        self._judge("dodge_timeout_expired", lambda: car_scenes.judge_expired(unused))
        landed += yield from car_scenes.land_tilted(scene)
        self._judge("on_ground", lambda: car_scenes.judge_wheels(landed))

    def _drives(self, scene: ScenePlayer) -> Play[None]:
        yield from scene.begin()
        changes = yield from input_latency.change_inputs(scene)
        self._judge("input_latency", lambda: input_latency.judge_changes(changes))
        yield from scene.begin()
        frames = yield from car_scenes.demolition(scene)
        self._judge("demolished_place", lambda: car_scenes.judge_place(frames))

    def _judge(self, point: str, judge: Callable[[], Finding]) -> None:
        """Store a judge's finding; a judge that fails leaves its point open."""
        try:
            self._findings[point] = judge()
        except NONSENSE as error:
            _LOG.exception("the judge of %s failed", point)
            self._findings[point] = Finding(None, f"the packets are inconsistent: {error!r}")

    def report(self) -> ProbeReport:
        """Return the findings so far."""
        self._judge("pad_timer", self._pads.judge)
        self._judge("packets_per_second", self._cadence.judge)
        notes = list(self.notes)
        if not self.packets:
            notes.append("no packet came")
        if self.missing:
            notes.append(f"{self.missing} packets lacked one of the probe's cars")
        every = {point: self._finding(point) for point in (*POINTS, *TIMING)}
        return ProbeReport.of(every, notes, self.packets)

    def _finding(self, point: str) -> Finding:
        finding = self._findings.get(point) or Finding(None, "its scene was not reached")
        if finding.value is None and self.scene is not None and self.scene.sets_state is False:
            return Finding(None, f"{finding.evidence}; the server ignores state setting")
        return finding


_SILENCE_SECONDS: Final = 30.0  # without a packet, after which the server is given up


def match_of_two() -> flat.MatchConfiguration:
    """Return the match that the probe plays: five minutes of 1v1 with state setting and goal replays."""
    match = match_of(1, 1)
    match.skip_replays, match.mutators = False, flat.MutatorSettings()
    return match


OnReply = Callable[[Reply, Frame], None]


class Players(AgentConnections):
    """The two cars of a script, on a server that plays a match such as `match_of_two`."""

    def follow(self, script: SceneScript, seconds: float, on_reply: OnReply = lambda _, frame: None) -> None:
        """Answer packets as a script says until it is done or the seconds of wall time are over.

        `on_reply` is called with each reply before it is sent, and the frame that it answers.
        """
        deadline = time.monotonic() + seconds
        try:
            while not script.done:
                left = min(_SILENCE_SECONDS, deadline - time.monotonic())
                packets = self.packets(left) if left > 0.0 else []
                for packet in packets:
                    reply, frame = script.answer(packet)
                    if frame is not None:
                        on_reply(reply, frame)
                        self._send_reply(reply, frame)
                if not packets:
                    late = time.monotonic() >= deadline
                    why = f"ended after {seconds:g} s" if late else f"no packet for {_SILENCE_SECONDS:g} s"
                    script.notes.append(why)
                    return
        except (EOFError, OSError) as error:
            script.notes.append(f"the server went away: {error}")

    def _send_reply(self, reply: Reply, frame: Frame) -> None:
        desired = reply.desired(frame.indices)
        inputs = [
            flat.PlayerInput(index, controls)
            for index, controls in zip(frame.indices, reply.controls, strict=True)
        ]
        self.answer(inputs, *(() if desired is None else (desired,)))
