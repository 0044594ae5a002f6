"""Where scenes are played: one packet after another, two cars, a ball."""

import math
from collections.abc import Callable, Generator, Mapping
from typing import Final, TypeVar

from rlbot import flat

from rlgym_bridge.game import BALL_REST_Z, PLAYING_PHASES, Phase
from rlgym_bridge.probe.frames import NEUTRAL, Frame, Reply, put

T = TypeVar("T")
Play = Generator[Reply, Frame, T]
"""A scene, or a part of one: yields an answer to a packet, is sent the next packet."""

STANDING_Z: Final = 17.0  # uu, of a car on its wheels, to the nearest whole number
SPOT: Final = (600.0, -1700.0)  # uu; flat floor, no pad within 500 uu: most scenes are played here
ASIDE: Final = (-3000.0, 1800.0)  # uu; where the other car waits
BALL_ASIDE: Final = (-3000.0, -1700.0, BALL_REST_Z)  # uu; where the ball lies while nobody needs it

_SHOWN_WITHIN: Final = 60  # packets in which a state that was set has to be seen
_NEAR: Final = 150.0  # uu between a set place and a seen one, besides what the car has driven
_LIKE: Final = 250.0  # uu/s between a set velocity and a seen one


class MatchOver(Exception):
    """The match is over, or does not go on: no more scenes can be played."""


class ProbeScene:
    """The present packet, and those of the present scene.

    Attributes:
        frame: The latest packet.
        frames: Packets of the present scene, oldest first.
        sets_state: Whether states that were set have been seen; None before the first.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.frames = [frame]
        self.sets_state: bool | None = None

    def begin(self) -> Play[None]:
        """Wait until the ball is in play, and begin a scene.

        Raises:
            MatchOver: It is not for longer than a goal with its replay and countdown takes.
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
        """Answer the present packet and take in the next one."""
        self.frame = yield Reply((controls, other), cars, ball)
        self.frames.append(self.frame)

    def hold(
        self, ticks: int, controls: flat.ControllerState = NEUTRAL, other: flat.ControllerState = NEUTRAL
    ) -> Play[None]:
        """Hold inputs for some ticks (by frame numbers), as many packets at most."""
        yield from self.until(lambda _: False, ticks, controls, other)

    def until(
        self,
        seen: Callable[[Frame], bool],
        ticks: int,
        controls: flat.ControllerState | Callable[[Frame], flat.ControllerState] = NEUTRAL,
        other: flat.ControllerState = NEUTRAL,
    ) -> Play[bool]:
        """Hold inputs until something is seen; tell whether it was within some ticks."""
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
        return (yield from self.until(lambda one: one.car.air_state == flat.AirState.OnGround, ticks))

    def put(
        self,
        car: flat.DesiredPhysics | None = None,
        other: flat.DesiredPhysics | None = None,
        ball: flat.DesiredPhysics | None = None,
        boost: float = 100.0,
        controls: flat.ControllerState = NEUTRAL,
    ) -> Play[bool]:
        """Set cars and ball; tell whether the state was seen. The scene begins then.

        A server that has not done so twice is not asked again.

        Args:
            car: For the first car, None to leave it.
            other: For the second car.
            ball: For the ball.
            boost: For the cars that are set, 0..100.
            controls: Input of the first car while the state is waited for.
        """
        if self.sets_state is False:
            return False
        wanted = {number: one for number, one in enumerate((car, other)) if one is not None}
        states = {number: flat.DesiredCarState(one, boost) for number, one in wanted.items()}
        for _ in range(2):
            desired = None if ball is None else flat.DesiredBallState(ball)
            yield from self.step(controls, NEUTRAL, states, desired)
            for _ in range(_SHOWN_WITHIN):
                if all(_is_there(self.frame, number, one) for number, one in wanted.items()):
                    self.sets_state = True
                    self.frames = [self.frame]
                    return True
                yield from self.step(controls)
        if self.sets_state is None:
            self.sets_state = False
        return False

    def stand(self, yaw: float = 0.0, spot: tuple[float, float] = SPOT, settle: int = 20) -> Play[bool]:
        """Stand the first car on its spot, with all else out of its way; where it is if that is refused."""
        done = yield from self.put(
            put((*spot, STANDING_Z), rotation=(0.0, yaw, 0.0)),
            put((*ASIDE, STANDING_Z), rotation=(0.0, 0.5 * math.pi, 0.0)),
            put(BALL_ASIDE),
        )
        yield from self.hold(settle)
        self.frames = [self.frame]
        return done


def _is_there(frame: Frame, number: int, wanted: flat.DesiredPhysics) -> bool:
    seen, place, velocity = frame.cars[number].physics, wanted.location, wanted.velocity
    if place is not None and velocity is not None:
        speed = math.hypot(*_numbers(velocity))
        if math.dist(_numbers(seen.location), _numbers(place)) > _NEAR + 0.1 * speed:
            return False
        return math.dist(_numbers(seen.velocity), _numbers(velocity)) < _LIKE
    return velocity is None or velocity.z is None or abs(seen.velocity.z - velocity.z) < _LIKE


def _numbers(vector: flat.Vector3 | flat.Vector3Partial) -> tuple[float, float, float]:
    return vector.x or 0.0, vector.y or 0.0, vector.z or 0.0
