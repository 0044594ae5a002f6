"""Play all scenes in order, judge them, and report the findings."""

import logging
from collections.abc import Callable
from typing import Final

from rlbot import flat

from rlgym_bridge.dialect import POINTS
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.trials import boost_and_slide, contact, goal, jumps, kickoff, latency, wheel_landings
from rlgym_bridge.trials.cadence import Cadence
from rlgym_bridge.trials.findings import Fact, Finding, ProbeReport
from rlgym_bridge.trials.frames import Frame, Reply
from rlgym_bridge.trials.goal import PhaseWatch
from rlgym_bridge.trials.pad_watch import PadWatch, pickups
from rlgym_bridge.trials.probe_scene import MatchOver, Play, ProbeScene

_LOG = logging.getLogger("rlgym_bridge.trials")

MOST_PACKETS: Final = 200 * TICKS_PER_SECOND
"""Packets after which the probe ends in any case: 200 s of game."""

_NONSENSE: Final = (ArithmeticError, LookupError, TypeError, ValueError)
"""Errors that scenes and judges may raise on inconsistent packets."""

_NOT_REACHED: Final = "its scene was not reached"


class Probe:
    """Plays all scenes on the packets of a server.

    Attributes:
        done: Whether all scenes were played, or the packets have run out.
    """

    def __init__(self, ids: tuple[int, int], field: flat.FieldInfo, most_packets: int = MOST_PACKETS) -> None:
        """Begin with no packet seen.

        Args:
            ids: `player_id` of its two cars, blue and orange.
            field: The pads in packet order.
            most_packets: Packets after which it ends.
        """
        self.done = False
        self._ids = ids
        self._most_packets = most_packets
        self._packets = 0
        self._missing = 0  # packets without one of the cars
        self._pads, self._phases, self._cadence = PadWatch(field), PhaseWatch(), Cadence()
        self._findings: dict[str, Finding] = {}
        self._facts: list[Fact] = []
        self._notes: list[str] = []
        self._scene: ProbeScene | None = None
        self._script: Play[None] | None = None

    def answer(self, packet: flat.GamePacket) -> tuple[Reply, Frame | None]:
        """Answer a packet.

        Args:
            packet: The server's next packet.

        Returns:
            The reply, which is neutral once all scenes are played, and the packet's frame; None for the frame
            where a car of the probe is missing.
        """
        self._packets += 1
        frame = Frame.of(packet, self._ids)
        if frame is None:
            self._missing += 1
        if self._packets >= self._most_packets and not self.done:
            self._notes.append(f"ended after {self._packets} packets, before all scenes were played")
            self.done = True
        if frame is None or self.done:
            return Reply(), frame
        for watch in (self._pads, self._phases, self._cadence):
            watch.see(frame)
        try:
            if self._script is None:
                self._scene = ProbeScene(frame)
                self._script = self._all(self._scene)
                return next(self._script), frame
            return self._script.send(frame), frame
        except StopIteration:
            pass
        except MatchOver as error:
            self._notes.append(str(error))
        except _NONSENSE as error:
            _LOG.exception("a scene failed")
            self._notes.append(
                f"a scene failed on inconsistent packets, so it and later ones are missing: {error!r}"
            )
        self.done = True
        return Reply(), frame

    def _all(self, scene: ProbeScene) -> Play[None]:
        """Play all scenes."""
        idle = yield from kickoff.untouched(scene)
        self._judge("kickoff_ends", lambda: kickoff.judge_end(idle))
        if note := kickoff.waits(idle):
            self._notes.append(note)
        yield from scene.stand()
        if scene.sets_state is False:
            self._notes.append("the server ignores state setting (enable_state_setting)")
        yield from pickups(scene, self._pads)
        yield from self._jumps(scene)
        yield from self._drives(scene)
        yield from scene.begin()
        run = yield from kickoff.touch(scene)
        self._judge("clock", lambda: kickoff.judge_clock(run))
        yield from scene.begin()
        after = yield from goal.score(scene)
        self._judge("ball_after_goal", lambda: goal.judge_ball(after))
        self._judge("idle_frames", lambda: goal.judge_frames(after))

    def _jumps(self, scene: ProbeScene) -> Play[None]:
        yield from scene.begin()
        tapped = yield from jumps.tap(scene)
        long = yield from jumps.held(scene)
        self._judge("dodge_timeout", lambda: jumps.judge_timeout(long))
        self._judge("dodge_timeout_jumping", lambda: jumps.judge_jumping(long))
        yield from scene.begin()
        dodged = yield from jumps.dodge(scene)
        doubled = yield from jumps.double(scene)
        self._judge("dodge_timeout_used", lambda: jumps.judge_used(dodged, doubled))
        self._facts += jumps.facts(tapped, long, dodged, doubled)
        landed = [*tapped, *long, *dodged, *doubled]
        yield from scene.begin()
        unused = yield from jumps.unused(scene)
        if jumps.judge_expired(unused).value is None and scene.sets_state:
            unused = yield from jumps.unused(scene, throw=False)
        self._judge("dodge_timeout_expired", lambda: jumps.judge_expired(unused))
        landed += yield from wheel_landings.landings(scene)
        self._judge("on_ground", lambda: wheel_landings.judge(landed))

    def _drives(self, scene: ProbeScene) -> Play[None]:
        yield from scene.begin()
        changes = yield from latency.change_inputs(scene)
        self._judge("input_latency", lambda: latency.judge(changes))
        yield from scene.begin()
        self._facts += yield from boost_and_slide.boost(scene)
        self._facts += yield from boost_and_slide.handbrake(scene)
        yield from scene.begin()
        self._facts += yield from contact.bump(scene)
        yield from scene.begin()
        frames = yield from contact.demolition(scene)
        self._judge("demolished_place", lambda: contact.judge_place(frames))
        self._facts += contact.facts(frames)

    def _judge(self, point: str, judge: Callable[[], Finding]) -> None:
        """Store a judge's finding; a judge that fails leaves its point open."""
        try:
            self._findings[point] = judge()
        except _NONSENSE as error:
            _LOG.exception("the judge of %s failed", point)
            self._findings[point] = Finding(point, None, f"the packets are inconsistent: {error!r}")

    def report(self) -> ProbeReport:
        """Return the findings so far."""
        self._judge("pad_timer", self._pads.judge)
        self._judge("packets_per_second", self._cadence.judge)
        notes = list(self._notes)
        if not self._packets:
            notes.append("no packet came")
        if self._missing:
            notes.append(f"{self._missing} packets lacked one of the probe's cars")
        every = {point: self._finding(point) for point in (*POINTS, "input_latency", "packets_per_second")}
        rate = float(every["packets_per_second"].value or TICKS_PER_SECOND)
        facts = list(self._facts)
        try:
            facts = [*self._pads.facts(), *facts, *self._phases.facts(rate)]
        except _NONSENSE as error:
            notes.append(f"measured times are inconsistent: {error!r}")
        return ProbeReport(
            {point: every[point] for point in POINTS},
            every["input_latency"],
            every["packets_per_second"],
            facts,
            notes,
            self._packets,
        )

    def _finding(self, point: str) -> Finding:
        finding = self._findings.get(point) or Finding(point, None, _NOT_REACHED)
        if finding.value is None and self._scene is not None and self._scene.sets_state is False:
            return Finding(point, None, f"{finding.evidence}; the server ignores state setting")
        return finding
