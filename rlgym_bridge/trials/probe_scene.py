"""Play a scene packet by packet, with two cars and a ball."""

import math
from collections.abc import Callable, Generator, Mapping
from typing import Final, TypeVar

from rlbot import flat

from rlgym_bridge.game import BALL_REST_Z, PLAYING_PHASES, Phase
from rlgym_bridge.trials.frames import NEUTRAL, Frame, Reply, put

T = TypeVar("T")
Play = Generator[Reply, Frame, T]
"""A scene or a part of it: it yields the answer to a packet and is sent the next packet."""

STANDING_Z: Final = 17.0  # uu, of a car on its wheels, to the nearest whole number
SPOT: Final = (600.0, -1700.0)  # uu; flat floor without a pad within 500 uu, where most scenes are played
ASIDE: Final = (-3000.0, 1800.0)  # uu; where the other car waits
BALL_ASIDE: Final = (-3000.0, -1700.0, BALL_REST_Z)  # uu; where the ball lies while nobody needs it

_SHOWN_WITHIN: Final = 60  # packets within which a state that was set must be seen
_NEAR: Final = 150.0  # uu between a position set and one seen, apart from the way driven
_LIKE: Final = 250.0  # uu/s between a set velocity and a seen one


class MatchOver(Exception):
    """The match is over or stands still, so that no more scenes can be played."""


class ProbeScene:
    """The scene being played: its latest packet and those before.

    Attributes:
        frame: The latest packet.
        frames: Packets of the scene, oldest first.
        sets_state: Whether the server sets states; None before the first attempt.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.frames = [frame]
        self.sets_state: bool | None = None

    def begin(self) -> Play[None]:
        """Wait until the ball is in play, and begin a new scene.

        Raises:
            MatchOver: The ball is not in play for longer than a goal, replay and countdown take.
        """
        packets = 0
        while not self.frame.playing:
            packets += 1
            if self.frame.phase == Phase.ENDED or packets > 4000:
                raise MatchOver("the match was over before all scenes were played")
            yield from self.step()
        self.frames = [self.frame]

    def step(
        self,
        controls: flat.ControllerState = NEUTRAL,
        other: flat.ControllerState = NEUTRAL,
        cars: Mapping[int, flat.DesiredCarState] | None = None,
        ball: flat.DesiredBallState | None = None,
    ) -> Play[None]:
        """Answer the latest packet and wait for the next one."""
        self.frame = yield Reply((controls, other), cars, ball)
        self.frames.append(self.frame)

    def hold(
        self, ticks: int, controls: flat.ControllerState = NEUTRAL, other: flat.ControllerState = NEUTRAL
    ) -> Play[None]:
        """Hold inputs for some ticks by frame numbers, and for at most as many packets."""
        yield from self.until(lambda _: False, ticks, controls, other)

    def until(
        self,
        seen: Callable[[Frame], bool],
        ticks: int,
        controls: flat.ControllerState | Callable[[Frame], flat.ControllerState] = NEUTRAL,
        other: flat.ControllerState = NEUTRAL,
    ) -> Play[bool]:
        """Hold inputs until a condition is seen; return whether it was seen within some ticks."""
        start = self.frame.number
        for _ in range(ticks):
            yield from self.step(controls(self.frame) if callable(controls) else controls, other)
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
        """Set cars and ball, and begin the scene when packets show the state.

        After two failed attempts no state is set any more.

        Args:
            car: State of the first car, None to leave it.
            other: State of the second car, None to leave it.
            ball: State of the ball, None to leave it.
            boost: Boost of the cars that are set, 0..100.
            controls: Input of the first car until the state is seen.

        Returns:
            Whether the state was seen.
        """
        if self.sets_state is False:
            return False
        targets = {number: body for number, body in enumerate((car, other)) if body is not None}
        states = {number: flat.DesiredCarState(body, boost) for number, body in targets.items()}
        for _ in range(2):
            desired = None if ball is None else flat.DesiredBallState(ball)
            yield from self.step(controls, NEUTRAL, states, desired)
            for _ in range(_SHOWN_WITHIN):
                if all(_is_there(self.frame, number, body) for number, body in targets.items()):
                    self.sets_state = True
                    self.frames = [self.frame]
                    return True
                yield from self.step(controls)
        if self.sets_state is None:
            self.sets_state = False
        return False

    def stand(self, yaw: float = 0.0, spot: tuple[float, float] = SPOT, settle: int = 20) -> Play[bool]:
        """Place the first car on a spot, with everything else out of its way.

        It stays where it is if the server does not set states.
        """
        done = yield from self.put(
            put((*spot, STANDING_Z), rotation=(0.0, yaw, 0.0)),
            put((*ASIDE, STANDING_Z), rotation=(0.0, 0.5 * math.pi, 0.0)),
            put(BALL_ASIDE),
        )
        yield from self.hold(settle)
        self.frames = [self.frame]
        return done


def _is_there(frame: Frame, number: int, target: flat.DesiredPhysics) -> bool:
    seen, place, velocity = frame.cars[number].physics, target.location, target.velocity
    if place is not None and velocity is not None:
        speed = math.hypot(*_numbers(velocity))
        if math.dist(_numbers(seen.location), _numbers(place)) > _NEAR + 0.1 * speed:
            return False
        return math.dist(_numbers(seen.velocity), _numbers(velocity)) < _LIKE
    return velocity is None or velocity.z is None or abs(seen.velocity.z - velocity.z) < _LIKE


def _numbers(vector: flat.Vector3 | flat.Vector3Partial) -> tuple[float, float, float]:
    return vector.x or 0.0, vector.y or 0.0, vector.z or 0.0
