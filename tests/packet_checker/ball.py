"""The ball."""

from math import hypot

from rlbot import flat

from rlgym_bridge.game import BALL_RADIUS, BALL_REST_Z, GOAL_THRESHOLD_Y, PLAYING_PHASES, Phase
from rlgym_bridge.protocol_variant import ProtocolVariant
from tests.packet_checker.cars import body, leap
from tests.packet_checker.findings import Findings, Step, shown
from tests.packet_checker.limits import BALL_MAX_TURN, SPEED_SLACK, Rules

_MIDDLE_SLACK = 1.0  # uu


class Ball:
    """Follows the ball."""

    def __init__(self, dialect: ProtocolVariant, rules: Rules) -> None:
        self._after_goal = dialect.get("ball_after_goal")
        self._max_speed = rules.ball_max_speed
        self._soccar = rules.soccar
        self._speed = 0.0  # in the packet before
        self._scored = False  # since the latest countdown

    def see(self, step: Step, findings: Findings) -> None:
        """Read a packet."""
        balls = step.packet.balls
        if step.packet.tiles:
            findings.add("tiles", f"{len(step.packet.tiles)} long", "none in soccar")
        if step.phase in PLAYING_PHASES or step.phase == Phase.COUNTDOWN:
            self._scored = False
        elif step.phase in (Phase.GOAL_SCORED, Phase.REPLAY):
            self._scored = True
        if len(balls) != 1:
            if balls or not (self._scored and self._after_goal != "shown"):
                findings.add("balls", f"{len(balls)} long", "one ball")
            return
        if self._scored and self._after_goal == "hidden":
            findings.add("balls", "one ball", "none after a goal")
        ball = balls[0]
        name = "balls[0]"
        speed = body(name, ball.physics, self._max_speed, BALL_MAX_TURN, findings)
        if self._soccar:
            self._kind(ball, findings)
        place = ball.physics.location
        kickoff = step.phase == Phase.COUNTDOWN or (step.phase == Phase.KICKOFF and step.reset and step.exact)
        if kickoff and self._soccar:
            off = hypot(place.x, place.y, place.z - BALL_REST_Z)
            if not (off <= _MIDDLE_SLACK and speed <= SPEED_SLACK):
                findings.add(
                    f"{name}.physics.location", f"{shown(off)} uu off", "the ball at rest in the middle"
                )
        if step.followed and step.before is not None and step.before.balls:
            before = step.before.balls[0].physics
            leap(f"{name}.physics.location", before, ball.physics, max(speed, self._speed), findings)
            if step.phase == Phase.GOAL_SCORED != step.phase_before and abs(place.y) < GOAL_THRESHOLD_Y:
                findings.add(f"{name}.physics.location.y", shown(place.y), "the ball behind a goal line")
        self._speed = speed

    @staticmethod
    def _kind(ball: flat.BallInfo, findings: Findings) -> None:
        shape = ball.shape
        if not (isinstance(shape, flat.SphereShape) and abs(shape.diameter - 2.0 * BALL_RADIUS) < 1e-3):
            findings.add("balls[0].shape", shape, f"a sphere of {2.0 * BALL_RADIUS} uu")
        if ball.charge_level != -1 or ball.target_speed != 0.0:
            findings.add(
                "balls[0].charge_level", ball.charge_level, "-1, and target_speed 0: no Dropshot ball"
            )
