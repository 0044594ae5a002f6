"""Control rows as RLBot's inputs: the way out into a match."""

from collections.abc import Sequence

from rlbot import flat


def player_input(slot: int, row: Sequence[float]) -> flat.PlayerInput:
    """Return a control row as the input of a car.

    Args:
        slot: Index of the car in the packet.
        row: Eight numbers, `game.CONTROL_NAMES`.
    """
    throttle, steer, pitch, yaw, roll, jump, boost, handbrake = row
    controls = flat.ControllerState(
        throttle, steer, pitch, yaw, roll, jump > 0, boost > 0, handbrake > 0, False
    )
    return flat.PlayerInput(slot, controls)
