"""RocketSim's state and the match's bookkeeping as the packets of RLBot v5.

Every field is set: freshly built flatbuffers have defaults that mean something else
(`demolished_timeout` 0 would be a demolished car). Sources of the conversions are named where
they are made; "flatbuffers" stands for the docstrings of rlbot_flatbuffers 0.19.0.
"""

from typing import Final

import RocketSim as rsim
from rlbot import flat

from rlgym_bridge.game import (
    BACK_WALL_Y,
    BALL_RADIUS,
    BIG_PAD_SECONDS,
    BIG_PAD_Z,
    BIG_PADS,
    BLUE,
    DODGE_DEADLINE_SECONDS,
    GOAL_CENTRE_Z,
    GOAL_HEIGHT,
    GOAL_WIDTH,
    HITBOXES,
    ORANGE,
    PAD_POSITIONS,
    SMALL_PAD_SECONDS,
    SMALL_PAD_Z,
    TICKS_PER_SECOND,
)
from rlgym_bridge.server.referee import Referee
from rlgym_bridge.server.roster import Seat
from rlgym_bridge.server.scores import Scores
from rlgym_bridge.server.simulation import Simulation

_DOUBLE_JUMP_TICKS: Final = 13
"""Packets that show a double jump [flatbuffers, `AirState.DoubleJumping`]."""

_NO_CHARGE: Final = -1  # `charge_level` of a ball that is not Dropshot's [flatbuffers]
_NEVER: Final = -(1 << 30)
_PHASES: Final = tuple(flat.MatchPhase(number) for number in range(8))
_BALL_SHAPE: Final = flat.SphereShape(2.0 * BALL_RADIUS)
_PAD_THERE: Final = flat.BoostPadState(True, 0.0)
_NEUTRAL: Final = flat.ControllerState(0.0, 0.0, 0.0, 0.0, 0.0, False, False, False, False)

_ON_GROUND: Final = flat.AirState.OnGround
_JUMPING: Final = flat.AirState.Jumping
_DOUBLE_JUMPING: Final = flat.AirState.DoubleJumping
_DODGING: Final = flat.AirState.Dodging
_IN_AIR: Final = flat.AirState.InAir


def field_info() -> flat.FieldInfo:
    """Return the standard field: 34 pads sorted by y then x, and the two goals."""
    pads = [
        (y, x, number in BIG_PADS) for number, (x, y) in enumerate(PAD_POSITIONS)
    ]  # sorted as tuples, so by y and then by x [flatbuffers, `FieldInfo`]
    return flat.FieldInfo(
        boost_pads=[
            flat.BoostPad(flat.Vector3(x, y, BIG_PAD_Z if big else SMALL_PAD_Z), big)
            for y, x, big in sorted(pads)
        ],
        goals=[
            flat.GoalInfo(
                team_num=team,
                location=flat.Vector3(0.0, -side * BACK_WALL_Y, GOAL_CENTRE_Z),
                direction=flat.Vector3(0.0, side, 0.0),
                width=GOAL_WIDTH,
                height=GOAL_HEIGHT,
            )
            for team, side in ((BLUE, 1.0), (ORANGE, -1.0))
        ],
        tiles=[],
    )


class _CarHistory:
    """What a packet says about a car and RocketSim does not keep."""

    __slots__ = ("body", "dodge_direction", "double_jump_frame", "had_double_jumped", "last_input",
                 "offset", "seat", "touch")  # fmt: skip

    def __init__(self, seat: Seat) -> None:
        box = HITBOXES[seat.hitbox]
        self.seat = seat
        self.body = flat.BoxShape(box.length, box.width, box.height)
        self.offset = flat.Vector3(box.offset_x, 0.0, box.offset_z)
        self.touch: flat.Touch | None = None
        self.last_input = _NEUTRAL
        self.had_double_jumped = False
        self.double_jump_frame = _NEVER
        self.dodge_direction = flat.Vector2(0.0, 0.0)


class Packer:
    """Builds the packets of one match.

    `packet` has to be called for every frame, in order: the length of a double jump and the
    input of a demolished car are known only from the frames before.
    """

    def __init__(self, simulation: Simulation, referee: Referee, scores: Scores, seats: list[Seat]) -> None:
        """Take the sources of a match.

        Args:
            simulation: Cars, ball and pads.
            referee: Phase, clock and score.
            scores: The scoreboard.
            seats: Name, team and id of each slot.
        """
        self._simulation = simulation
        self._referee = referee
        self._scores = scores
        self._cars = [_CarHistory(seat) for seat in seats]
        positions = [pad.get_pos() for pad in simulation.pads]
        order = sorted(range(len(positions)), key=lambda i: (positions[i].y, positions[i].x))
        self._place_of_pad = {pad: place for place, pad in enumerate(order)}
        self._pads = [_PAD_THERE] * len(order)
        self._away: dict[int, int] = {}  # number in the arena -> place in the packet
        self._shown_score = (0, 0)
        self._teams = [flat.TeamInfo(BLUE, 0), flat.TeamInfo(ORANGE, 0)]

    def kickoff(self) -> None:
        """Forget what a kickoff resets: all pads are back, all cars are new."""
        self._away.clear()
        self._pads = [_PAD_THERE] * len(self._pads)
        for car in self._cars:
            car.had_double_jumped = False
            car.double_jump_frame = _NEVER
            car.dodge_direction = flat.Vector2(0.0, 0.0)

    def touched(self, slot: int, frame: int) -> None:
        """Keep a contact with the ball that packet `frame` is the first to show.

        RocketSim's `tick_count_when_hit` is the count before that tick; the touch is stamped
        with the time of the packet, so that a bot sees it as new.
        """
        hit = self._simulation.states[slot].ball_hit_info
        ball, contact = hit.ball_pos.as_tuple(), hit.relative_pos_on_ball.as_tuple()
        length = sum(value * value for value in contact) ** 0.5 or 1.0
        self._cars[slot].touch = flat.Touch(
            frame / TICKS_PER_SECOND,
            flat.Vector3(ball[0] + contact[0], ball[1] + contact[1], ball[2] + contact[2]),
            flat.Vector3(-contact[0] / length, -contact[1] / length, -contact[2] / length),
            0,
        )

    def pads_taken(self, pads: list[int]) -> None:
        """Note the arena's pads that were picked up in the latest tick."""
        for pad in pads:
            self._away[pad] = self._place_of_pad[pad]

    def packet(self, frame: int, inputs: list[flat.ControllerState]) -> flat.GamePacket:
        """Build the packet of a frame.

        Args:
            frame: Frame number, counted from 0 at the first packet of the match.
            inputs: Input of each slot that was in force in the latest tick.

        Returns:
            The packet, every field set.
        """
        states, infos = self._simulation.states, self._scores.infos
        players = [
            self._player(car, states[slot], infos[slot], inputs[slot], frame)
            for slot, car in enumerate(self._cars)
        ]
        if self._away:
            self._update_pads()
        return flat.GamePacket(
            players, self._pads, [self._ball()], self._match_info(frame), self._team_infos(), []
        )

    def _player(
        self,
        car: _CarHistory,
        state: rsim.CarState,
        score: flat.ScoreInfo,
        controls: flat.ControllerState,
        frame: int,
    ) -> flat.PlayerInfo:
        seat = car.seat
        demolished = state.is_demoed
        if not demolished:  # RocketSim applies no controls to a car that is not there
            car.last_input = controls
        double_jumped, dodged = state.has_double_jumped, state.has_flipped
        if double_jumped and not car.had_double_jumped:
            car.double_jump_frame = frame
        car.had_double_jumped = double_jumped
        if dodged:
            torque = state.flip_rel_torque
            # The torque turns about the axis at right angles to the dodge (measured).
            car.dodge_direction = flat.Vector2(torque.y, -torque.x)
        return flat.PlayerInfo(
            _physics(state),
            score,
            car.body,
            car.offset,
            car.touch,
            _air_state(state, double_jumped and frame - car.double_jump_frame < _DOUBLE_JUMP_TICKS),
            _dodge_timeout(state),
            state.demo_respawn_timer if demolished else -1.0,
            state.is_supersonic,
            True,  # is_bot
            seat.name,
            seat.team,
            state.boost,
            seat.identifier,
            [],  # accolades
            car.last_input,
            state.has_jumped,
            double_jumped,
            dodged,
            state.flip_time if dodged else 0.0,
            car.dodge_direction,
            None,  # rumble_item
            0.0,
            0.0,
        )

    def _update_pads(self) -> None:
        """Show how long each pad that was taken is away: seconds since pickup [flatbuffers]."""
        pads = self._simulation.pads
        for number, place in list(self._away.items()):
            state = pads[number].get_state()
            if state.is_active:
                del self._away[number]
                self._pads[place] = _PAD_THERE
            else:
                period = BIG_PAD_SECONDS if pads[number].is_big else SMALL_PAD_SECONDS
                self._pads[place] = flat.BoostPadState(False, period - state.cooldown)

    def _ball(self) -> flat.BallInfo:
        return flat.BallInfo(_physics(self._simulation.ball), _BALL_SHAPE, _NO_CHARGE, 0.0)

    def _match_info(self, frame: int) -> flat.MatchInfo:
        referee = self._referee
        return flat.MatchInfo(
            frame / TICKS_PER_SECOND,
            referee.clock / TICKS_PER_SECOND,
            referee.overtime,
            referee.course.regulation is None,
            _PHASES[referee.phase],
            self._simulation.physics.gravity_z,
            1.0,  # game_speed
            0,  # last_spectated
            frame,
        )

    def _team_infos(self) -> list[flat.TeamInfo]:
        blue, orange = self._referee.score
        if self._shown_score != (blue, orange):
            self._shown_score = (blue, orange)
            self._teams = [flat.TeamInfo(BLUE, blue), flat.TeamInfo(ORANGE, orange)]
        return self._teams


def _physics(state: rsim.CarState | rsim.BallState) -> flat.Physics:
    angle = state.rot_mat.as_angle()
    return flat.Physics(
        flat.Vector3(*state.pos.as_tuple()),
        flat.Rotator(angle.pitch, angle.yaw, angle.roll),
        flat.Vector3(*state.vel.as_tuple()),
        flat.Vector3(*state.ang_vel.as_tuple()),
    )


def _air_state(state: rsim.CarState, double_jumping: bool) -> flat.AirState:
    """Name the strongest thing that acts on a car: jump, dodge, double jump, ground, nothing."""
    if state.is_jumping:
        return _JUMPING
    if state.is_flipping:
        return _DODGING
    if double_jumping:
        return _DOUBLE_JUMPING
    return _ON_GROUND if state.is_on_ground else _IN_AIR


def _dodge_timeout(state: rsim.CarState) -> float:
    """Return the seconds in which a dodge is still possible, -1 where it is not or not timed."""
    if (
        state.is_on_ground or state.is_jumping or not state.has_jumped
        or state.has_double_jumped or state.has_flipped
    ):  # fmt: skip
        return -1.0
    left = DODGE_DEADLINE_SECONDS - state.air_time_since_jump
    return left if left > 0.0 else -1.0
