"""A car's body while a tick of it is computed."""

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.sim.vectors import Vector, add, cross, dot

Axes = tuple[Vector, Vector, Vector]


class Chassis:
    """A car's body: where it is, how it moves, and what acts on it in this tick.

    Units are uu, s and rad, per unit of mass.

    Args:
        inertia: Inverse inertia about its axes per unit of mass, 1/uu^2.
        axes: Forward, right and up.
        position, velocity, spin: In the world's axes.

    Attributes:
        force: Acceleration of this tick, uu/s^2.
        torque: Angular acceleration of this tick, rad/s^2.
    """

    __slots__ = ("axes", "force", "inertia", "position", "spin", "torque", "velocity")

    def __init__(self, inertia: Vector, axes: Axes, position: Vector, velocity: Vector, spin: Vector) -> None:
        self.inertia, self.axes = inertia, axes
        self.position, self.velocity, self.spin = position, velocity, spin
        self.force: Vector = (0.0, 0.0, 0.0)
        self.torque: Vector = (0.0, 0.0, 0.0)

    def turn_of(self, moment: Vector) -> Vector:
        """Return the change of spin that an angular impulse makes."""
        forward, right, up = self.axes
        x, y, z = self.inertia
        x, y, z = x * dot(forward, moment), y * dot(right, moment), z * dot(up, moment)
        return (
            forward[0] * x + right[0] * y + up[0] * z,
            forward[1] * x + right[1] * y + up[1] * z,
            forward[2] * x + right[2] * y + up[2] * z,
        )

    def yield_at(self, place: Vector, direction: Vector) -> float:
        """Return the speed that a unit impulse at a place gives to that place."""
        return 1 + dot(cross(self.turn_of(cross(place, direction)), place), direction)

    def push(self, impulse: Vector, place: Vector) -> None:
        """Apply an impulse at a place, given from the centre."""
        self.velocity = add(self.velocity, impulse)
        self.spin = add(self.spin, self.turn_of(cross(place, impulse)))

    def accelerate(self, direction: Vector, amount: float) -> None:
        """Add to the tick's acceleration, uu/s^2."""
        self.force = add(self.force, direction, amount)

    def twist(self, axis: Vector, amount: float) -> None:
        """Add to the tick's angular acceleration, rad/s^2."""
        self.torque = add(self.torque, axis, amount)

    def apply_forces(self) -> None:
        """Let the tick's accelerations act for a tick."""
        self.velocity = add(self.velocity, self.force, TICK_SECONDS)
        self.spin = add(self.spin, self.torque, TICK_SECONDS)
