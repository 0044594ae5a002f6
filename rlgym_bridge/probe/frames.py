"""What the probe sees and what it answers: one packet with its two cars found, inputs, a state to set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rlbot import flat

from rlgym_bridge.game import PLAYING_PHASES, TICKS_PER_SECOND

NEUTRAL: Final = flat.ControllerState(0.0, 0.0, 0.0, 0.0, 0.0, False, False, False, False)


@dataclass(frozen=True)
class Frame:
    """One packet.

    Attributes:
        number: `frame_num`, ticks.
        phase: Number of the match phase (`game.Phase`).
        cars: The probe's two cars, blue first, wherever they stand in the packet.
        slots: Where they stand in the packet.
        packet: All of it.
    """

    number: int
    phase: int
    cars: tuple[flat.PlayerInfo, flat.PlayerInfo]
    slots: tuple[int, int]
    packet: flat.GamePacket

    @classmethod
    def of(cls, packet: flat.GamePacket, ids: tuple[int, int]) -> "Frame | None":
        """Find the cars of a packet by their player ids; None where one of them is missing."""
        places = {player.player_id: slot for slot, player in enumerate(packet.players)}
        if ids[0] not in places or ids[1] not in places:
            return None
        slots = places[ids[0]], places[ids[1]]
        players, info = packet.players, packet.match_info
        return cls(
            info.frame_num, int(info.match_phase), (players[slots[0]], players[slots[1]]), slots, packet
        )

    @property
    def car(self) -> flat.PlayerInfo:
        """Return the first car, which does most of what is to be seen."""
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
    """What answers a packet.

    Attributes:
        controls: Inputs of the two cars.
        cars: States to set, by car; a car that is not in it stays as it is.
        ball: State of the first ball to set, None for none.
    """

    controls: tuple[flat.ControllerState, flat.ControllerState] = (NEUTRAL, NEUTRAL)
    cars: Mapping[int, flat.DesiredCarState] | None = None
    ball: flat.DesiredBallState | None = None

    def desired(self, slots: tuple[int, int]) -> flat.DesiredGameState | None:
        """Return the message that sets the state, None where there is nothing to set.

        Args:
            slots: Where the two cars stand in packets.
        """
        if not self.cars and self.ball is None:
            return None
        states = [flat.DesiredCarState() for _ in range(max(slots) + 1)]
        for car, state in (self.cars or {}).items():
            states[slots[car]] = state
        return flat.DesiredGameState(ball_states=[] if self.ball is None else [self.ball], car_states=states)


def seconds_between(first: Frame, last: Frame) -> float:
    """Return the game seconds between two frames, by their numbers."""
    return (last.number - first.number) / TICKS_PER_SECOND


def press(**controls: float | bool) -> flat.ControllerState:
    """Return an input; what is not named is neutral."""
    values = {
        "throttle": 0.0, "steer": 0.0, "pitch": 0.0, "yaw": 0.0, "roll": 0.0,
        "jump": False, "boost": False, "handbrake": False, "use_item": False,
    } | controls  # fmt: skip
    return flat.ControllerState(**values)  # type: ignore[arg-type]


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
