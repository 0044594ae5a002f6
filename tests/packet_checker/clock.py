"""Frame numbers, seconds elapsed, and the in-game clock."""

from math import ceil, isfinite

from rlbot import flat

from rlgym_bridge.game import TICKS_PER_SECOND, Phase
from rlgym_bridge.protocol_variant import ProtocolVariant
from tests.packet_checker.findings import Findings, Step, shown
from tests.packet_checker.phases import NAMES, Phases
from tests.packet_checker.touches import Touches

_TICK_SLACK = 0.05  # ticks
_FLOAT32 = 1.2e-7  # relative


class Clock:
    """Predicts the clock of every packet, as an interval in ticks, and compares."""

    def __init__(self, dialect: ProtocolVariant, phases: Phases, touches: Touches) -> None:
        self._form = dialect.get("clock")
        self._phases = phases
        self._touches = touches
        self._first: tuple[int, float] | None = None  # frame and seconds of the first packet
        self._clock = (0.0, 0.0)  # least and most ticks on the clock in the packet before
        self._touched: bool | None = None  # since GO, in the packet before
        self._kickoff_ticks = 0

    def see(self, step: Step, findings: Findings) -> None:
        """Read a packet; phases and touches have been read."""
        info = step.packet.match_info
        self._elapsed(info, findings)
        if not isfinite(info.world_gravity_z):
            findings.add("match_info.world_gravity_z", info.world_gravity_z, "a number")
        if not 0.0 < info.game_speed < 100.0:
            findings.add("match_info.game_speed", info.game_speed, "more than 0")
        seen = self._seen(info, findings)
        if step.before is not None:
            self._flags(step, findings)
            self._kickoff_end(step, findings)
            seen = self._compare(step, seen, findings)
        self._clock = seen
        self._touched = self._touches.since_go

    def _elapsed(self, info: flat.MatchInfo, findings: Findings) -> None:
        if self._first is None:
            self._first = (info.frame_num, info.seconds_elapsed)
        expected = self._first[1] + (info.frame_num - self._first[0]) / TICKS_PER_SECOND
        slack = _TICK_SLACK / TICKS_PER_SECOND + _FLOAT32 * expected
        if not abs(info.seconds_elapsed - expected) <= slack:
            findings.add(
                "match_info.seconds_elapsed", info.seconds_elapsed, f"{shown(expected)}: 1/120 a frame"
            )

    def _seen(self, info: flat.MatchInfo, findings: Findings) -> tuple[float, float]:
        """Return the least and the most ticks that the clock shown stands for."""
        value = info.game_time_remaining
        name = "match_info.game_time_remaining"
        if not 0.0 <= value < 1e9:
            findings.add(name, value, "0 or more")
            return self._clock
        ticks = value * TICKS_PER_SECOND
        slack = _TICK_SLACK + _FLOAT32 * ticks
        if self._form == "fraction":
            return ticks - slack, ticks + slack
        if self._form == "whole" and value != ceil(value):
            findings.add(name, value, "whole seconds")
        return max(0.0, ticks - TICKS_PER_SECOND + 2 * slack), ticks + slack

    def _flags(self, step: Step, findings: Findings) -> None:
        assert step.before is not None
        now, before = step.packet.match_info, step.before.match_info
        if now.is_unlimited_time != before.is_unlimited_time:
            findings.add("match_info.is_unlimited_time", now.is_unlimited_time, "what it always was")
        if before.is_overtime and not now.is_overtime:
            findings.add("match_info.is_overtime", False, "overtime to last")
        if now.is_overtime and not before.is_overtime and step.exact:
            if step.phase != Phase.COUNTDOWN or step.phase_before == Phase.COUNTDOWN:
                findings.add(
                    "match_info.is_overtime", f"True in {NAMES[step.phase]}", "it to begin with a Countdown"
                )
            if self._clock[0] > 1.0 + _TICK_SLACK:
                findings.add("match_info.is_overtime", True, "no overtime before the clock is at 0")

    def _kickoff_end(self, step: Step, findings: Findings) -> None:
        """Hold the end of Kickoff against the touches."""
        if step.phase_before != Phase.KICKOFF or not step.exact:
            self._kickoff_ticks = 0
            return
        self._kickoff_ticks += 1
        touched = self._touches.new
        name = "match_info.match_phase"
        if step.phase == Phase.KICKOFF and touched:
            findings.add(name, "Kickoff with a touch", "Active from the first touch on")
        if step.phase == Phase.ACTIVE and not touched:
            if self._phases.active_means_touched:
                findings.add(name, "Active without a new latest_touch", "Kickoff until the first touch")
            elif self._kickoff_ticks < 2 * TICKS_PER_SECOND:
                findings.add(name, f"Active after {self._kickoff_ticks} ticks", "a touch, or 240 ticks")

    def _compare(self, step: Step, seen: tuple[float, float], findings: Findings) -> tuple[float, float]:
        """Hold the clock against its prediction; return what both allow."""
        assert step.before is not None
        info, before = step.packet.match_info, step.before.match_info
        low, high = self._clock
        least, most = self._run(step)
        if info.is_overtime and not before.is_overtime:
            low = high = 0.0
            least, most = 0, 0 if step.exact else most
        if info.is_overtime or info.is_unlimited_time:
            low, high = low + least, high + most
        else:
            low, high = max(0.0, low - most), max(0.0, high - least)
        slack = _TICK_SLACK + _FLOAT32 * high
        if seen[1] < low - slack or seen[0] > high + slack:
            what = "stands still" if most == 0 else "goes on by a tick" if most == 1 else "goes on"
            findings.add(
                "match_info.game_time_remaining",
                shown(info.game_time_remaining),
                f"{shown(high / TICKS_PER_SECOND)}: the clock {what} in {NAMES[step.phase_before]}",
            )
            return seen
        low, high = max(low, seen[0]), min(high, seen[1])
        return (low, high) if low <= high else seen

    def _run(self, step: Step) -> tuple[int, int]:
        """Return the least and the most ticks by which the clock has gone on."""
        frames = max(0, step.frames)
        if not step.exact:
            if step.phase == step.phase_before == Phase.ACTIVE and self._phases.active_means_touched:
                return frames, frames
            playing = Phase.ACTIVE in (step.phase, step.phase_before)
            return (0, frames) if playing else (0, 0)
        if step.phase_before != Phase.ACTIVE or self._touched is False:
            return 0, 0
        if self._touched or self._phases.active_means_touched:
            return frames, frames
        return 0, frames
