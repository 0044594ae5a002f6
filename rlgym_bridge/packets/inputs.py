"""Encode control rows as RLBot's player inputs."""

from collections.abc import Sequence

from rlbot import flat


def player_input(index: int, row: Sequence[float]) -> flat.PlayerInput:
    """Return a control row as the input of a car.

    Args:
        index: Index of the car in the packet.
        row: Eight numbers in the order of `game.CONTROL_NAMES`, -1..1; a button is pressed above 0.
    """
    throttle, steer, pitch, yaw, roll, jump, boost, handbrake = row
    controls = flat.ControllerState(
        throttle, steer, pitch, yaw, roll, jump > 0, boost > 0, handbrake > 0, False
    )
    return flat.PlayerInput(index, controls)
