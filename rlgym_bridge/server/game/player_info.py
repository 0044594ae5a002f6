"""Build the part of a packet about one car. Sources are named as in `packer.py`."""

from typing import Final

import RocketSim as rsim
from rlbot import flat

from rlgym_bridge.dialect import Dialect
from rlgym_bridge.game import HITBOXES, TICKS_PER_SECOND
from rlgym_bridge.server.game.dodge import dodge_timeout_of
from rlgym_bridge.server.game.roster import AgentSeat

_DOUBLE_JUMP_TICKS: Final = 13
"""Packets that show a double jump [flatbuffers, `AirState.DoubleJumping`]."""

_NEVER: Final = -(1 << 30)
_NEUTRAL: Final = flat.ControllerState(0.0, 0.0, 0.0, 0.0, 0.0, False, False, False, False)
_NOWHERE: Final = flat.Physics(
    flat.Vector3(0.0, 0.0, 0.0), flat.Rotator(0.0, 0.0, 0.0),
    flat.Vector3(0.0, 0.0, 0.0), flat.Vector3(0.0, 0.0, 0.0),
)  # fmt: skip

_ON_GROUND: Final = flat.AirState.OnGround
_JUMPING: Final = flat.AirState.Jumping
_DOUBLE_JUMPING: Final = flat.AirState.DoubleJumping
_DODGING: Final = flat.AirState.Dodging
_IN_AIR: Final = flat.AirState.InAir


class Player:
    """One car in the packets: its RocketSim state, and what RocketSim does not keep of it.

    `info` has to be called for every frame, in order: the length of a double jump and the input of
    a demolished car are known only from the frames before.
    """

    __slots__ = ("_air_state", "_body", "_dialect", "_dodge_direction", "_dodge_timeout",
                 "_double_jump_frame", "_had_double_jumped", "_last_input", "_offset", "_physics", "_seat",
                 "_touch")  # fmt: skip

    def __init__(self, seat: AgentSeat, dialect: Dialect) -> None:
        """Take who it is.

        Args:
            seat: Name, team, id and hitbox.
            dialect: With a value for every point.
        """
        self._seat = seat
        self.set_hitbox(seat.hitbox)
        self._last_input = _NEUTRAL
        self._dialect = dialect
        # Which formulas to use is decided here, once: packets are built thousands of times a second.
        self._air_state = _air_state if dialect["on_ground"] == "three_wheels" else _air_state_of_four
        self._physics = physics if dialect["demolished_place"] == "kept" else _physics_if_there
        self.kickoff()

    def set_hitbox(self, hitbox: int) -> None:
        """Show another hitbox (`game.HITBOXES`)."""
        box = HITBOXES[hitbox]
        self._body = flat.BoxShape(box.length, box.width, box.height)
        self._offset = flat.Vector3(box.offset_x, 0.0, box.offset_z)

    def kickoff(self) -> None:
        """Forget what a kickoff resets: the car is new."""
        self._touch: flat.Touch | None = None
        self._had_double_jumped = False
        self._double_jump_frame = _NEVER
        self._dodge_direction = flat.Vector2(0.0, 0.0)
        self._dodge_timeout = dodge_timeout_of(self._dialect)

    def take_over(self, earlier: "Player") -> None:
        """Show what another match has seen of this car: its latest touch and dodge."""
        self._touch = earlier._touch
        self._dodge_direction = earlier._dodge_direction
        self._had_double_jumped = earlier._had_double_jumped

    def touched(self, hit: rsim.BallHitInfo, frame: int) -> None:
        """Keep a contact with the ball that packet `frame` is the first to show.

        RocketSim's `tick_count_when_hit` is the count before that tick; the touch is stamped
        with the time of the packet, so that a bot sees it as new.
        """
        ball, contact = hit.ball_pos.as_tuple(), hit.relative_pos_on_ball.as_tuple()
        length = sum(value * value for value in contact) ** 0.5 or 1.0
        self._touch = flat.Touch(
            frame / TICKS_PER_SECOND,
            flat.Vector3(ball[0] + contact[0], ball[1] + contact[1], ball[2] + contact[2]),
            flat.Vector3(-contact[0] / length, -contact[1] / length, -contact[2] / length),
            0,
        )

    def info(
        self,
        state: rsim.CarState,
        score: flat.ScoreInfo,
        accolades: list[str],
        controls: flat.ControllerState,
        frame: int,
    ) -> flat.PlayerInfo:
        """Return what the packet of a frame says.

        Args:
            state: The car after the latest tick.
            score: Its line on the scoreboard.
            accolades: Names of its events in the latest tick.
            controls: Input that was in force in the latest tick.
            frame: Frame number of the packet.
        """
        seat = self._seat
        demolished = state.is_demoed
        if not demolished:  # RocketSim applies no controls to a car that is not there
            self._last_input = controls
        double_jumped, dodged = state.has_double_jumped, state.has_flipped
        if double_jumped and not self._had_double_jumped:
            self._double_jump_frame = frame
        self._had_double_jumped = double_jumped
        if dodged:
            torque = state.flip_rel_torque
            # The torque turns about the axis at right angles to the dodge (measured).
            self._dodge_direction = flat.Vector2(torque.y, -torque.x)
        return flat.PlayerInfo(
            self._physics(state),
            score,
            self._body,
            self._offset,
            self._touch,
            self._air_state(state, double_jumped and frame - self._double_jump_frame < _DOUBLE_JUMP_TICKS),
            self._dodge_timeout(state),
            state.demo_respawn_timer if demolished else -1.0,
            state.is_supersonic,
            not seat.is_idle,  # is_bot: humans and Psyonix bots are none [RLBot core, `GameStateToFlat.cs`]
            seat.name,
            seat.team,
            state.boost,
            seat.identifier,
            accolades,
            self._last_input,
            state.has_jumped,
            double_jumped,
            dodged,
            state.flip_time if dodged else 0.0,
            self._dodge_direction,
            None,  # rumble_item
            0.0,
            0.0,
        )


def physics(state: rsim.CarState | rsim.BallState) -> flat.Physics:
    """Return place, turn and speeds of a car or ball."""
    angle = state.rot_mat.as_angle()
    return flat.Physics(
        flat.Vector3(*state.pos.as_tuple()),
        flat.Rotator(angle.pitch, angle.yaw, angle.roll),
        flat.Vector3(*state.vel.as_tuple()),
        flat.Vector3(*state.ang_vel.as_tuple()),
    )


def _physics_if_there(state: rsim.CarState) -> flat.Physics:
    return _NOWHERE if state.is_demoed else physics(state)


def _air_state(state: rsim.CarState, double_jumping: bool) -> flat.AirState:
    """Name the strongest thing that acts on a car: jump, dodge, double jump, ground, nothing."""
    if state.is_jumping:
        return _JUMPING
    if state.is_flipping:
        return _DODGING
    if double_jumping:
        return _DOUBLE_JUMPING
    return _ON_GROUND if state.is_on_ground else _IN_AIR


def _air_state_of_four(state: rsim.CarState, double_jumping: bool) -> flat.AirState:
    """Do the same, where a car is on the ground with all its wheels only; RocketSim asks for three."""
    named = _air_state(state, double_jumping)
    return _IN_AIR if named == _ON_GROUND and not all(state.wheels_with_contact) else named
