"""Represent a packet as the probe sees it, and the probe's reply: inputs and a state to set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rlbot import flat

from rlgym_bridge.game import PLAYING_PHASES, TICKS_PER_SECOND

NEUTRAL: Final = flat.ControllerState(0.0, 0.0, 0.0, 0.0, 0.0, False, False, False, False)


@dataclass(frozen=True)
class Frame:
    """One packet with the probe's two cars.

    Attributes:
        number: `frame_num`, ticks.
        phase: Number of the match phase (`game.Phase`).
        cars: The probe's two cars, blue first.
        indices: Indices of the two cars in the packet.
        packet: The whole packet.
    """

    number: int
    phase: int
    cars: tuple[flat.PlayerInfo, flat.PlayerInfo]
    indices: tuple[int, int]
    packet: flat.GamePacket

    @classmethod
    def of(cls, packet: flat.GamePacket, ids: tuple[int, int]) -> "Frame | None":
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
    """The answer to a packet.

    Attributes:
        controls: Inputs of the two cars.
        cars: States to set, by car of the probe, 0 or 1; other cars stay as they are.
        ball: State to set for the first ball, None to leave it.
    """

    controls: tuple[flat.ControllerState, flat.ControllerState] = (NEUTRAL, NEUTRAL)
    cars: Mapping[int, flat.DesiredCarState] | None = None
    ball: flat.DesiredBallState | None = None

    def desired(self, indices: tuple[int, int]) -> flat.DesiredGameState | None:
        """Return the message that sets the state, None where there is nothing to set.

        Args:
            indices: Indices of the two cars in packets.
        """
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
