"""Tell whether the bodies of two cars touch."""

from typing import Final, NamedTuple

import RocketSim as rsim

from rlgym_bridge.sim.chassis import Axes
from rlgym_bridge.sim.vectors import Vector, add, cross, dot, length

_MARGIN: Final = (
    2.0  # uu: RocketSim lets bodies act on each other from 1 uu on [contact margin 0.02, 50 uu each]
)
_PARALLEL: Final = 1e-3  # length of a cross product of two edges that are as good as parallel


class CarBox(NamedTuple):
    """The body of a car in the world.

    Attributes:
        middle: uu.
        axes: Forward, right, up.
        half: Half of its sizes along the axes, uu.
    """

    middle: Vector
    axes: Axes
    half: Vector

    @classmethod
    def of(cls, state: rsim.CarState, config: rsim.CarConfig) -> "CarBox":
        """Return the body of a car."""
        turn = state.rot_mat
        axes = (turn.forward.as_tuple(), turn.right.as_tuple(), turn.up.as_tuple())
        middle = state.pos.as_tuple()
        for axis, part in zip(axes, config.hitbox_pos_offset.as_tuple(), strict=True):
            middle = add(middle, axis, part)
        x, y, z = config.hitbox_size.as_tuple()
        return cls(middle, axes, (x / 2, y / 2, z / 2))

    def reach(self, direction: Vector) -> float:
        """Return how far the box reaches from its middle along a direction of length 1."""
        return sum(half * abs(dot(axis, direction)) for half, axis in zip(self.half, self.axes, strict=True))


def boxes_touch(one: CarBox, other: CarBox) -> bool:
    """Tell whether two boxes are less than 2 uu apart: whether no plane has that much room between them."""
    between = add(other.middle, one.middle, -1.0)
    if length(between) > length(one.half) + length(other.half) + _MARGIN:
        return False
    edges = [cross(a, b) for a in one.axes for b in other.axes]
    for direction in (*one.axes, *other.axes, *edges):
        size = length(direction)
        if size < _PARALLEL:
            continue
        along = (direction[0] / size, direction[1] / size, direction[2] / size)
        if abs(dot(between, along)) > one.reach(along) + other.reach(along) + _MARGIN:
            return False
    return True
