"""Build RLBot v5 packets from the simulation and the counts of a match; every field is set.

"flatbuffers" stands for the docstrings of rlbot_flatbuffers 0.19.0.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from rlbot import flat

from rlgym_bridge import game
from rlgym_bridge.game import BLUE, DODGE_DEADLINE_SECONDS, HITBOXES, ORANGE, PAD_POSITIONS, TICKS_PER_SECOND
from rlgym_bridge.protocol_variant import OWN_SERVER, ProtocolVariant
from rlgym_bridge.rotations import angles_of
from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.game.referee import Referee, Scoreboard
from rlgym_bridge.server.game.roster import AgentSeat
from rlgym_bridge.server.game.simulation import CAR, Simulation

MAX_PAYLOAD: Final = 65535  # bytes in one message: the length has 16 bits [RLBot core]
_log = client_log(__name__)


def framed(message: object, *, named: bool = False) -> bytes:
    """Pack a message of a `flat.CorePacket` for a client, length first; empty and logged if it is too long.

    `named` appends `OWN_SERVER`, by which clients of this project know its server.
    """
    payload = flat.CorePacket(message).pack()  # type: ignore[arg-type]
    if named:
        payload += OWN_SERVER.encode()
    if len(payload) > MAX_PAYLOAD:
        _log.error(
            "not sent: a %s of %d bytes, the protocol allows %d",
            type(message).__name__, len(payload), MAX_PAYLOAD,
        )  # fmt: skip
        return b""
    return len(payload).to_bytes(2, "big") + payload


_TORQUE, _WHEELS = CAR["flip_torque"], CAR["wheels_with_contact"]
_BOOST, _RESPAWN, _FLIP_TIME = CAR["boost_amount"], CAR["demo_respawn_timer"], CAR["flip_time"]
_IS_DEMOED, _IS_SUPERSONIC, _IS_ON_GROUND = CAR["is_demoed"], CAR["is_supersonic"], CAR["on_ground"]
_IS_JUMPING, _JUMP_TIME, _SINCE_JUMP = CAR["is_jumping"], CAR["jump_time"], CAR["air_time_since_jump"]
_HAS_JUMPED, _HAS_FLIPPED, _HAS_DOUBLE_JUMPED = (
    CAR["has_jumped"], CAR["has_flipped"], CAR["has_double_jumped"]
)  # fmt: skip

_DOUBLE_JUMP_TICKS: Final = 13  # packets that show a double jump [flatbuffers, `AirState.DoubleJumping`]
_LONGEST_DODGE: Final = game.FLIP_TORQUE_SECONDS + 1.5 * game.TICK_SECONDS
"""Seconds since the dodge began, before its 80th tick: it turns the car for 79."""

_NEVER: Final = -(1 << 30)
NEUTRAL: Final = flat.ControllerState()
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
    """One car in the packets: its numbers in the simulation, and what no simulation keeps of it.

    `info` has to be called for every frame, in order: the length of a double jump and the input of
    a demolished car are known only from the frames before.
    """

    def __init__(self, seat: AgentSeat, dialect: ProtocolVariant) -> None:
        self._seat = seat
        self.set_hitbox(seat.hitbox)
        self._last_input = NEUTRAL
        self._adds_hold = dialect["dodge_timeout"] == "plus_hold"
        self._is_full = dialect["dodge_timeout_jumping"] == "full"
        self._counts_on = dialect["dodge_timeout_used"] == "counting"
        self._expired = 0.0 if dialect["dodge_timeout_expired"] == "zero" else -1.0
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
        self._hold = 0.0  # seconds for which the latest jump has pushed

    def take_over(self, earlier: "Player") -> None:
        """Show what another match has seen of this car: its latest touch and dodge."""
        self._touch = earlier._touch
        self._dodge_direction = earlier._dodge_direction
        self._had_double_jumped = earlier._had_double_jumped

    def touched(self, contact: Sequence[float], frame: int) -> None:
        """Keep a contact, its place and that relative to the ball's centre [uu], which a frame shows first.

        The touch is stamped with the time of the packet, so that a bot sees it as new.
        """
        x, y, z, *arm = contact
        length = sum(value * value for value in arm) ** 0.5 or 1.0
        self._touch = flat.Touch(
            frame / TICKS_PER_SECOND,
            flat.Vector3(x, y, z),
            flat.Vector3(*(-value / length for value in arm)),
            0,
        )

    def info(
        self,
        car: Sequence[float],
        score: flat.ScoreInfo,
        accolades: list[str],
        controls: flat.ControllerState,
        frame: int,
    ) -> flat.PlayerInfo:
        """Return the car's part of the packet of a frame, from its numbers and its line on the scoreboard."""
        seat = self._seat
        demolished = car[_IS_DEMOED]
        if not demolished:  # RocketSim applies no controls to a car that is not there
            self._last_input = controls
        double_jumped, dodged = car[_HAS_DOUBLE_JUMPED] > 0, car[_HAS_FLIPPED] > 0
        if double_jumped and not self._had_double_jumped:
            self._double_jump_frame = frame
        self._had_double_jumped = double_jumped
        if dodged:
            # The torque turns about the axis at right angles to the dodge (measured).
            self._dodge_direction = flat.Vector2(car[_TORQUE + 1], -car[_TORQUE])
        return flat.PlayerInfo(
            self._physics(car),
            score,
            self._body,
            self._offset,
            self._touch,
            self._air_state(car, double_jumped and frame - self._double_jump_frame < _DOUBLE_JUMP_TICKS),
            self._dodge_timeout(car),
            car[_RESPAWN] if demolished else -1.0,
            car[_IS_SUPERSONIC] > 0,
            not seat.is_idle,  # is_bot: humans and Psyonix bots are none [RLBot core, `GameStateToFlat.cs`]
            seat.name,
            seat.team,
            car[_BOOST],
            seat.identifier,
            accolades,
            self._last_input,
            car[_HAS_JUMPED] > 0,
            double_jumped,
            dodged,
            car[_FLIP_TIME] if dodged else 0.0,
            self._dodge_direction,
            None,  # rumble_item
            0.0,
            0.0,
        )

    def _dodge_timeout(self, car: Sequence[float]) -> float:
        """Return the seconds in which a dodge is still possible, -1 where it is not or not timed."""
        if car[_IS_JUMPING]:
            if self._adds_hold:  # RocketSim's `jump_time` goes on after the jump: only now it is the hold
                self._hold = car[_JUMP_TIME]
            return DODGE_DEADLINE_SECONDS + self._hold if self._is_full else -1.0
        if car[_IS_ON_GROUND] or not car[_HAS_JUMPED]:
            return -1.0
        if not self._counts_on and (car[_HAS_DOUBLE_JUMPED] or car[_HAS_FLIPPED]):
            return -1.0
        left = DODGE_DEADLINE_SECONDS + self._hold - car[_SINCE_JUMP]
        return left if left > 0.0 else self._expired


def physics(numbers: Sequence[float]) -> flat.Physics:
    """Return place, turn and speeds of a car or ball, which its numbers begin with."""
    pitch, yaw, roll = angles_of(numbers, 3)
    return flat.Physics(
        flat.Vector3(numbers[0], numbers[1], numbers[2]),
        flat.Rotator(pitch, yaw, roll),
        flat.Vector3(numbers[12], numbers[13], numbers[14]),
        flat.Vector3(numbers[15], numbers[16], numbers[17]),
    )


def _physics_if_there(car: Sequence[float]) -> flat.Physics:
    return _NOWHERE if car[_IS_DEMOED] else physics(car)


def _air_state(car: Sequence[float], double_jumping: bool) -> flat.AirState:
    """Name the strongest thing that acts on a car: jump, dodge, double jump, ground, nothing."""
    if car[_IS_JUMPING]:
        return _JUMPING
    if car[_HAS_FLIPPED] and car[_FLIP_TIME] < _LONGEST_DODGE:
        return _DODGING
    if double_jumping:
        return _DOUBLE_JUMPING
    return _ON_GROUND if car[_IS_ON_GROUND] else _IN_AIR


def _air_state_of_four(car: Sequence[float], double_jumping: bool) -> flat.AirState:
    """Do the same, where a car is on the ground with all its wheels only; RocketSim asks for three."""
    named = _air_state(car, double_jumping)
    return _IN_AIR if named == _ON_GROUND and not all(car[_WHEELS : _WHEELS + 4]) else named


_NO_CHARGE: Final = -1  # `charge_level` of a ball that is not Dropshot's [flatbuffers]
_PHASES: Final = tuple(flat.MatchPhase(number) for number in range(8))
_PAD_THERE: Final = flat.BoostPadState(True, 0.0)
_NO_PAD: Final = flat.BoostPadState(False, 0.0)  # in a match without boost


def field_info() -> flat.FieldInfo:
    """Return the standard field: 34 pads sorted by y then x, and the two goals."""
    # Sorted as tuples, so by y and then by x [flatbuffers, `FieldInfo`].
    pads = sorted((y, x, number in game.BIG_PADS) for number, (x, y) in enumerate(PAD_POSITIONS))
    return flat.FieldInfo(
        boost_pads=[
            flat.BoostPad(flat.Vector3(x, y, game.BIG_PAD_Z if big else game.SMALL_PAD_Z), big)
            for y, x, big in pads
        ],
        goals=[
            flat.GoalInfo(
                team_num=team,
                location=flat.Vector3(0.0, -side * game.BACK_WALL_Y, game.GOAL_CENTRE_Z),
                direction=flat.Vector3(0.0, side, 0.0),
                width=game.GOAL_WIDTH,
                height=game.GOAL_HEIGHT,
            )
            for team, side in ((BLUE, 1.0), (ORANGE, -1.0))
        ],
        tiles=[],
    )


class Packer:
    """Builds the packets of one match.

    `packet` has to be called for every frame, in order (see `Player`).
    """

    def __init__(
        self,
        simulation: Simulation,
        referee: Referee,
        scores: Scoreboard,
        seats: list[AgentSeat],
        dialect: ProtocolVariant,
    ) -> None:
        self._simulation = simulation
        self._referee = referee
        self._scores = scores
        self.players = [Player(seat, dialect) for seat in seats]
        self._mode = simulation.physics.mode
        self._hides_ball = dialect["ball_after_goal"] == "hidden"
        self._whole_clock = dialect["clock"] == "whole"
        # Where it counts down, it does so as the simulation's.
        self._pad_seconds = () if dialect["pad_timer"] == "remaining" else game.PAD_SECONDS
        order = sorted(range(len(PAD_POSITIONS)), key=lambda pad: PAD_POSITIONS[pad][::-1])
        self._place_of_pad = {pad: place for place, pad in enumerate(order)}
        self._new_pad = _PAD_THERE if simulation.physics.has_pads else _NO_PAD
        self._pads = [self._new_pad] * len(order)
        self._away: dict[int, int] = {}  # number in the state -> place in the packet
        self._shown_score = (0, 0)
        self._teams = [flat.TeamInfo(BLUE, 0), flat.TeamInfo(ORANGE, 0)]

    def kickoff(self) -> None:
        """Forget what a kickoff resets: all pads are back, all cars are new."""
        self._away.clear()
        self._pads = [self._new_pad] * len(self._pads)
        for player in self.players:
            player.kickoff()

    def restore(self) -> None:
        """Show the pads as the simulation has them, after it was put back to an earlier state."""
        self.kickoff()
        timers = self._simulation.state.pad_timer[0]
        self.pads_taken([pad for pad in self._place_of_pad if timers[pad] > 0.0])

    def take_over(self, earlier: "Packer", kept: Mapping[int, int]) -> None:
        """Go on with the pads and cars of another match; `kept` has slots here and there."""
        self._pads, self._away = list(earlier._pads), dict(earlier._away)
        for slot, before in kept.items():
            self.players[slot].take_over(earlier.players[before])

    def pads_taken(self, pads: list[int]) -> None:
        """Note the pads that were picked up in the latest tick."""
        for pad in pads:
            self._away[pad] = self._place_of_pad[pad]

    def packet(self, frame: int, inputs: list[flat.ControllerState]) -> flat.GamePacket:
        """Build the packet of a frame, with the input of each slot that was in force in the latest tick."""
        cars, infos, accolades = self._simulation.cars, self._scores.infos, self._scores.accolades
        players = [
            player.info(cars[slot], infos[slot], accolades[slot], inputs[slot], frame)
            for slot, player in enumerate(self.players)
        ]
        if self._away:
            self._update_pads()
        balls = [] if self._hides_ball and self._referee.after_goal else [self._ball()]
        return flat.GamePacket(players, self._pads, balls, self._match_info(frame), self._team_infos(), [])

    def _update_pads(self) -> None:
        """Show how long each taken pad is away: seconds since pickup [flatbuffers], or left."""
        timers = self._simulation.state.pad_timer[0].tolist()
        shown, away, seconds = self._pads, self._away, self._pad_seconds
        for number, place in list(away.items()):
            left = timers[number]
            if left <= 0.0:
                del away[number]
                shown[place] = _PAD_THERE
            elif seconds:
                shown[place] = flat.BoostPadState(False, seconds[number] - left)
            else:
                shown[place] = flat.BoostPadState(False, left)

    def _ball(self) -> flat.BallInfo:
        ball = physics(self._simulation.ball)
        return flat.BallInfo(ball, self._mode.shape, _NO_CHARGE, self._simulation.target_speed)

    def _match_info(self, frame: int) -> flat.MatchInfo:
        referee = self._referee
        clock = referee.clock / TICKS_PER_SECOND
        return flat.MatchInfo(
            frame / TICKS_PER_SECOND,
            math.ceil(clock) if self._whole_clock else clock,
            referee.overtime,
            referee.course.regulation is None,
            _PHASES[referee.phase],
            self._simulation.physics.gravity_z,
            self._simulation.physics.game_speed,
            0,  # last_spectated
            frame,
        )

    def _team_infos(self) -> list[flat.TeamInfo]:
        blue, orange = self._referee.score
        if self._shown_score != (blue, orange):
            self._shown_score = (blue, orange)
            self._teams = [flat.TeamInfo(BLUE, blue), flat.TeamInfo(ORANGE, orange)]
        return self._teams
