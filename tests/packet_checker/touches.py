"""Latest touches: they never go back, never lie in the future, and start the clock."""

from math import hypot, sqrt

from rlbot import flat

from rlgym_bridge.game import PLAYING_PHASES, Phase
from tests.packet_checker.findings import Findings, Step, shown
from tests.packet_checker.limits import TIMER_SLACK, TOUCH_REACH, UNIT_SLACK


class Touches:
    """Follows the latest touch of every car.

    Attributes:
        new: A touch is shown for the first time by this packet.
        since_go: A touch was shown since GO; None where GO was not seen.
    """

    def __init__(self) -> None:
        self.new = False
        self.since_go: bool | None = None
        self._times: list[float | None] = []

    def see(self, step: Step, findings: Findings) -> None:
        """Read a packet."""
        packet = step.packet
        if step.phase_before >= 0 and step.phase != step.phase_before:
            if step.phase == Phase.COUNTDOWN or (step.phase == Phase.KICKOFF and step.exact):
                self.since_go = False
            elif not step.exact:
                self.since_go = None
        times = [
            None if player.latest_touch is None else player.latest_touch.game_seconds
            for player in packet.players
        ]
        self.new = False
        if step.phase == Phase.COUNTDOWN and any(time is not None for time in times):
            findings.add("players.latest_touch", times, "none: a kickoff begins without touches")
        if times != self._times:
            for slot, time in enumerate(times):
                before = self._times[slot] if slot < len(self._times) else None
                if time != before:
                    self._changed(step, findings, slot, before)
            self._times = times
        if self.new and self.since_go is not None:
            self.since_go = True

    def _changed(self, step: Step, findings: Findings, slot: int, before: float | None) -> None:
        name = f"players[{slot}].latest_touch"
        touch, now = step.packet.players[slot].latest_touch, step.packet.match_info.seconds_elapsed
        if touch is None:
            if step.phase not in (Phase.COUNTDOWN, Phase.KICKOFF):
                findings.add(name, None, f"the one at {shown(before or 0.0)} s: touches are kept")
            return
        time = touch.game_seconds
        earliest = 0.0 if before is None else before
        if step.before is not None and step.exact:
            earliest = step.before.match_info.seconds_elapsed
        if not earliest <= time <= now + TIMER_SLACK:
            findings.add(
                f"{name}.game_seconds", shown(time), f"a time from {shown(earliest)} s to now, {shown(now)} s"
            )
        if step.before is None:
            return
        self.new = True
        if step.exact and step.phase_before not in PLAYING_PHASES:
            findings.add(name, f"new, at {shown(time)} s", "the one before: the ball was not in play")
        self._place(step, findings, name, touch)

    @staticmethod
    def _place(step: Step, findings: Findings, name: str, touch: flat.Touch) -> None:
        normal, place, balls = touch.normal, touch.location, step.packet.balls
        length = sqrt(normal.x * normal.x + normal.y * normal.y + normal.z * normal.z)
        if not abs(length - 1.0) <= UNIT_SLACK:
            findings.add(f"{name}.normal", f"{shown(length)} long", "a unit vector")
        if touch.ball_index != 0:
            findings.add(f"{name}.ball_index", touch.ball_index, "0, the only ball")
        if balls and step.followed:
            ball = balls[0].physics.location
            distance = hypot(place.x - ball.x, place.y - ball.y, place.z - ball.z)
            if not distance <= TOUCH_REACH:
                findings.add(
                    f"{name}.location", f"{shown(distance)} uu from the ball", f"{TOUCH_REACH} at most"
                )
