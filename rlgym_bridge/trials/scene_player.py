"""Play scenes on a server's packets, with two cars and a ball; nothing here sends or receives.

The probe, scripted scenes and the matches that check a bot are scripts.
"""

import logging
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from rlbot import flat

from rlgym_bridge.game import BALL_REST_Z, PLAYING_PHASES, TICKS_PER_SECOND, Phase

_LOG = logging.getLogger("rlgym_bridge.trials")

NONSENSE: Final = (ArithmeticError, LookupError, TypeError, ValueError)
"""Errors that scenes and judges may raise on inconsistent packets."""

STANDING_Z: Final = 17.0  # uu, of a car on its wheels, to the nearest whole number
SPOT: Final = (600.0, -1700.0)  # uu; flat floor without a pad within 500 uu, where most scenes are played
ASIDE: Final = (-3000.0, 1800.0)  # uu; where the other car waits
BALL_ASIDE: Final = (-3000.0, -1700.0, BALL_REST_Z)  # uu; where the ball lies while nobody needs it

_SHOWN_WITHIN: Final = 60  # packets within which a state that was set must be seen
_NEAR: Final = 150.0  # uu between a position set and one seen, apart from the way driven
_LIKE: Final = 250.0  # uu/s between a set velocity and a seen one

NEUTRAL: Final = flat.ControllerState()


@dataclass(frozen=True)
class Frame:
    """One packet with the probe's two cars, blue first, and their indices in the packet."""

    number: int  # `frame_num`, ticks
    phase: int  # number of the match phase (`game.Phase`)
    cars: tuple[flat.PlayerInfo, flat.PlayerInfo]
    indices: tuple[int, int]
    packet: flat.GamePacket

    @classmethod
    def of(cls, packet: flat.GamePacket, ids: Sequence[int]) -> "Frame | None":
        """Find the cars of a packet by their player ids; None where one of them is missing."""
        index_of = {player.player_id: index for index, player in enumerate(packet.players)}
        if ids[0] not in index_of or ids[1] not in index_of:
            return None
        indices = index_of[ids[0]], index_of[ids[1]]
        players, info = packet.players, packet.match_info
        return cls(
            info.frame_num, int(info.match_phase), (players[indices[0]], players[indices[1]]), indices, packet
        )

    @property
    def car(self) -> flat.PlayerInfo:
        """Return the first car, which plays most scenes."""
        return self.cars[0]

    @property
    def clock(self) -> float:
        """Return the match clock, s."""
        return self.packet.match_info.game_time_remaining

    @property
    def playing(self) -> bool:
        """Tell whether inputs move the cars."""
        return self.phase in PLAYING_PHASES


@dataclass(frozen=True)
class Reply:
    """The answer to a packet: inputs of the two cars, and states to set; None leaves them as they are."""

    controls: tuple[flat.ControllerState, flat.ControllerState] = (NEUTRAL, NEUTRAL)
    cars: Mapping[int, flat.DesiredCarState] | None = None
    ball: flat.DesiredBallState | None = None

    def desired(self, indices: tuple[int, int]) -> flat.DesiredGameState | None:
        """Return the message that sets the state, by the cars' indices in packets; None without a state."""
        if not self.cars and self.ball is None:
            return None
        states = [flat.DesiredCarState() for _ in range(max(indices) + 1)]
        for car, state in (self.cars or {}).items():
            states[indices[car]] = state
        return flat.DesiredGameState(ball_states=[] if self.ball is None else [self.ball], car_states=states)


def seconds_between(first: Frame, last: Frame) -> float:
    """Return the game seconds between two frames, by their numbers."""
    return (last.number - first.number) / TICKS_PER_SECOND


def press(**controls: float | bool) -> flat.ControllerState:
    """Return an input; controls that are not given are neutral."""
    return flat.ControllerState(**controls)  # type: ignore[arg-type]


def put(
    place: Sequence[float],
    velocity: Sequence[float] = (0.0, 0.0, 0.0),
    rotation: Sequence[float] = (0.0, 0.0, 0.0),
) -> flat.DesiredPhysics:
    """Return a place [uu], velocity [uu/s] and rotation (pitch, yaw, roll) [rad] to set, without spin."""
    return flat.DesiredPhysics(
        location=flat.Vector3Partial(*place),
        rotation=flat.RotatorPartial(*rotation),
        velocity=flat.Vector3Partial(*velocity),
        angular_velocity=flat.Vector3Partial(0.0, 0.0, 0.0),
    )


def towards(frame: Frame, x: float, y: float, throttle: float = 0.6) -> flat.ControllerState:
    """Return an input that drives the first car to a position, uu."""
    body = frame.car.physics
    turn = math.atan2(y - body.location.y, x - body.location.x) - body.rotation.yaw
    turn = (turn + math.pi) % (2.0 * math.pi) - math.pi
    return press(throttle=throttle, steer=max(-1.0, min(1.0, 3.0 * turn)))


T = TypeVar("T")
Play = Generator[Reply, Frame, T]
"""A scene or a part of it: it yields the answer to a packet and is sent the next packet."""


class MatchOver(Exception):
    """The match is over or stands still, so that no more scenes can be played."""


class ScenePlayer:
    """The scene being played: its latest packet and those before, oldest first."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.frames = [frame]
        self.sets_state: bool | None = None  # whether the server does; None before the first attempt

    def begin(self) -> Play[None]:
        """Wait until the ball is in play, and begin a new scene.

        Raises:
            MatchOver: The ball is not in play for longer than a goal, replay and countdown take.
        """
        yield from self.wait(4000, lambda frame: frame.playing or frame.phase == Phase.ENDED)
        if not self.frame.playing:
            raise MatchOver("the match was over before all scenes were played")
        self.frames = [self.frame]

    def step(
        self,
        controls: flat.ControllerState = NEUTRAL,
        cars: Mapping[int, flat.DesiredCarState] | None = None,
        ball: flat.DesiredBallState | None = None,
    ) -> Play[None]:
        """Answer the latest packet and wait for the next one."""
        self.frame = yield Reply((controls, NEUTRAL), cars, ball)
        self.frames.append(self.frame)

    def wait(self, packets: int, seen: Callable[[Frame], bool]) -> Play[bool]:
        """Wait until something is so, in whatever phase; return whether it is after so many packets."""
        for _ in range(packets):
            if seen(self.frame):
                return True
            yield from self.step()
        return seen(self.frame)

    def hold(self, ticks: int, controls: flat.ControllerState = NEUTRAL) -> Play[None]:
        """Hold the first car's inputs for some ticks by frame numbers, and for at most as many packets."""
        yield from self.until(lambda _: False, ticks, controls)

    def until(
        self,
        seen: Callable[[Frame], bool],
        ticks: int,
        controls: flat.ControllerState | Callable[[Frame], flat.ControllerState] = NEUTRAL,
    ) -> Play[bool]:
        """Hold inputs until a condition is seen; return whether it was seen within some ticks."""
        start = self.frame.number
        for _ in range(ticks):
            yield from self.step(controls(self.frame) if callable(controls) else controls)
            if seen(self.frame):
                return True
            if self.frame.number - start >= ticks or self.frame.phase not in PLAYING_PHASES:
                break
        return False

    def land(self, ticks: int = 500) -> Play[bool]:
        """Wait until the first car stands on the ground."""
        return (yield from self.until(lambda frame: frame.car.air_state == flat.AirState.OnGround, ticks))

    def put(
        self,
        car: flat.DesiredPhysics | None = None,
        other: flat.DesiredPhysics | None = None,
        ball: flat.DesiredPhysics | None = None,
        boost: float = 100.0,
        controls: flat.ControllerState = NEUTRAL,
    ) -> Play[bool]:
        """Set cars and ball, and begin the scene when packets show the state; return whether they do.

        What is None stays as it is; boost [0..100] is that of the cars that are set, `controls` the input of
        the first car until the state is seen. After two failed attempts no state is set any more.
        """
        if self.sets_state is False:
            return False
        targets = {number: body for number, body in enumerate((car, other)) if body is not None}
        states = {number: flat.DesiredCarState(body, boost) for number, body in targets.items()}
        for _ in range(2):
            desired = None if ball is None else flat.DesiredBallState(ball)
            yield from self.step(controls, states, desired)
            for _ in range(_SHOWN_WITHIN):
                if all(_is_there(self.frame, number, body) for number, body in targets.items()):
                    self.sets_state = True
                    self.frames = [self.frame]
                    return True
                yield from self.step(controls)
        if self.sets_state is None:
            self.sets_state = False
        return False

    def stand(self, settle: int = 20) -> Play[bool]:
        """Place the first car on a spot, with everything else out of its way.

        It stays where it is if the server does not set states.
        """
        done = yield from self.put(
            put((*SPOT, STANDING_Z)),
            put((*ASIDE, STANDING_Z), rotation=(0.0, 0.5 * math.pi, 0.0)),
            put(BALL_ASIDE),
        )
        yield from self.hold(settle)
        self.frames = [self.frame]
        return done


class SceneScript:
    """Answers the packets of a server with scenes until they are over, or `most_packets` were seen.

    `ids` are the `player_id` of its two cars, blue and orange.
    """

    def __init__(self, ids: Sequence[int], most_packets: float) -> None:
        self.done = False  # no more packets are wanted
        self.notes: list[str] = []  # problems on the way, as sentences
        self.packets = self.missing = 0  # packets seen, and those without one of the cars
        self.scene: ScenePlayer | None = None  # being played; None before the first packet
        self._ids, self._most_packets = ids, most_packets
        self._script: Play[None] | None = None

    def play(self, scene: ScenePlayer) -> Play[None]:
        """Play all scenes."""
        raise NotImplementedError

    def see(self, frame: Frame) -> None:
        """Look at a packet before it is answered; most scripts need not."""

    def answer(self, packet: flat.GamePacket) -> tuple[Reply, Frame | None]:
        """Return the reply to a packet, neutral at the end, and its frame, None where a car is missing."""
        self.packets += 1
        frame = Frame.of(packet, self._ids)
        self.missing += frame is None
        if self.packets >= self._most_packets and not self.done:
            self.notes.append(f"ended after {self.packets} packets, before all scenes were played")
            self.done = True
        if frame is None or self.done:
            return Reply(), frame
        self.see(frame)
        try:
            if self.scene is None or self._script is None:
                self.scene = ScenePlayer(frame)
                self._script = self.play(self.scene)
                return next(self._script), frame
            return self._script.send(frame), frame
        except StopIteration:
            pass
        except MatchOver as error:
            self.notes.append(str(error))
        except NONSENSE as error:
            _LOG.exception("a scene failed")
            self.notes.append(
                f"a scene failed on inconsistent packets, so it and later ones are missing: {error!r}"
            )
        self.done = True
        return Reply(), frame


def _is_there(frame: Frame, number: int, target: flat.DesiredPhysics) -> bool:
    seen, place, velocity = frame.cars[number].physics, target.location, target.velocity
    if place is not None and velocity is not None:
        speed = math.hypot(*xyz(velocity))
        if math.dist(xyz(seen.location), xyz(place)) > _NEAR + 0.1 * speed:
            return False
        return math.dist(xyz(seen.velocity), xyz(velocity)) < _LIKE
    return velocity is None or velocity.z is None or abs(seen.velocity.z - velocity.z) < _LIKE


def xyz(vector: flat.Vector3 | flat.Vector3Partial) -> tuple[float, float, float]:
    """Return a vector's numbers; 0 for those that are not given."""
    return vector.x or 0.0, vector.y or 0.0, vector.z or 0.0
