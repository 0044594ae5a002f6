"""Apply a `flat.DesiredGameState` to RocketSim's states.

Null parts and null components keep their values [flatbuffers]. What the real game does with the
state that no message names is documented in two places only, both about RLBot v4:

- a dodge under way goes on when the state is set [RLBot issue 389];
- setting the state of a demolished car fails [RLBot pull request 394].

The rest is chosen here and stated at `edit_car`.
"""

import math
from collections.abc import Iterator
from typing import Final

import RocketSim as rsim
from rlbot import flat

from rlgym_bridge.game import (
    STANDING_LEAST_UP,
    STANDING_MOST_Z,
    SUPERSONIC_KEEP_SPEED,
    SUPERSONIC_START_SPEED,
)
from rlgym_bridge.server.game.simulation import Simulation

_LARGEST: Final = 1e6  # of any value; physics overflows float32 from much larger ones on


def is_usable(desired: flat.DesiredGameState) -> bool:
    """Tell whether all values are finite and at most 1e6 in size (uu, uu/s, rad, rad/s, uu/s^2)."""
    return all(abs(value) <= _LARGEST for value in _values(desired))  # False for NaN


def _values(desired: flat.DesiredGameState) -> Iterator[float]:
    info = desired.match_info
    numbers = [info.world_gravity_z, info.game_speed] if info is not None else []
    objects: list[flat.DesiredBallState | flat.DesiredCarState] = [*desired.ball_states, *desired.car_states]
    for one in objects:
        if isinstance(one, flat.DesiredCarState):
            numbers.append(one.boost_amount)
        if (physics := one.physics) is not None:
            for part in (physics.location, physics.rotation, physics.velocity, physics.angular_velocity):
                numbers += _components(part)
    return (number for number in numbers if number is not None)


def _components(part: flat.Vector3Partial | flat.RotatorPartial | None) -> tuple[float | None, ...]:
    if part is None:
        return ()
    if isinstance(part, flat.RotatorPartial):
        return (part.pitch, part.yaw, part.roll)
    return (part.x, part.y, part.z)


def _changes(part: flat.Vector3Partial | flat.RotatorPartial | None) -> bool:
    """Tell whether a part has a component that is not null."""
    return any(value is not None for value in _components(part))


def is_placed(physics: flat.DesiredPhysics | None) -> bool:
    """Tell whether a whole place is given."""
    return physics is not None and None not in (_components(physics.location) or (None,))


def set_bodies(simulation: Simulation, desired: flat.DesiredGameState) -> bool:
    """Set the ball and the cars that are desired, between two ticks; demolished cars stay as they are.

    Returns:
        Whether the ball was put somewhere.
    """
    ball = None
    for new in desired.ball_states[:1]:
        ball = simulation.arena.ball.get_state()
        edit_ball(ball, new)
    cars = {}
    for slot, (car, wanted) in enumerate(zip(simulation.cars, desired.car_states, strict=False)):
        if (wanted.physics is None and wanted.boost_amount is None) or simulation.states[slot].is_demoed:
            continue
        cars[slot] = car.get_state()
        edit_car(cars[slot], wanted)
    of_balls = sum(is_placed(one.physics) for one in desired.ball_states[:1])
    placed = of_balls + sum(is_placed(one.physics) for one in desired.car_states)
    if ball is not None and len(cars) == len(simulation.cars) and placed > len(cars):
        simulation.set_all(ball, [cars[slot] for slot in sorted(cars)])
    else:
        if ball is not None:
            simulation.set_ball(ball)
        for slot, state in cars.items():
            simulation.set_car(slot, state)
    return bool(of_balls)


def edit_ball(state: rsim.BallState, desired: flat.DesiredBallState) -> None:
    """Put what is desired into the ball's state.

    RocketSim keeps a ball without any velocity and spin where it is, in the air too, until it is touched.
    """
    _edit_physics(state, desired.physics)


def edit_car(state: rsim.CarState, desired: flat.DesiredCarState) -> None:
    """Put what is desired into a car's state.

    Boost is cut to 0..100 and to whole numbers, as RLBot's core does. A car whose place or rotation is
    set has neither jumped nor dodged since it left the ground, so it has its jump or dodge yet, as a
    car that has fallen off something; only a dodge under way goes on with all that belongs to it [RLBot
    issue 389]. It stands on four wheels where it is set upright at the height of a standing car on the
    floor, and is in the air anywhere else until the next tick looks for walls under its wheels.
    Whether it is supersonic follows a set velocity at once.

    Args:
        state: A car that is not demolished.
        desired: The new state.
    """
    if desired.boost_amount is not None:
        state.boost = float(int(min(100.0, max(0.0, desired.boost_amount))))
    physics = desired.physics
    if physics is None:
        return
    _edit_physics(state, physics)
    if _changes(physics.location) or _changes(physics.rotation):
        _set_down(state)
    if _changes(physics.velocity):
        speed = math.hypot(*state.vel.as_tuple())
        if speed >= SUPERSONIC_START_SPEED or speed < SUPERSONIC_KEEP_SPEED:
            state.is_supersonic = speed >= SUPERSONIC_START_SPEED
            state.supersonic_time = 0.0


def _edit_physics(state: rsim.BallState | rsim.CarState, desired: flat.DesiredPhysics) -> None:
    state.pos = _with(state.pos, desired.location)
    state.vel = _with(state.vel, desired.velocity)
    state.ang_vel = _with(state.ang_vel, desired.angular_velocity)
    rotation = desired.rotation
    if rotation is not None and _changes(rotation):
        now = state.rot_mat.as_angle()
        state.rot_mat = rsim.Angle(
            now.yaw if rotation.yaw is None else rotation.yaw,
            now.pitch if rotation.pitch is None else rotation.pitch,
            now.roll if rotation.roll is None else rotation.roll,
        ).as_rot_mat()


def _with(now: rsim.Vec, desired: flat.Vector3Partial | None) -> rsim.Vec:
    if desired is None:
        return now
    return rsim.Vec(
        now.x if desired.x is None else desired.x,
        now.y if desired.y is None else desired.y,
        now.z if desired.z is None else desired.z,
    )


def _set_down(state: rsim.CarState) -> None:
    """Set the state that depends on where a car is; see `edit_car`."""
    upright = state.rot_mat.up.z >= STANDING_LEAST_UP
    standing = upright and 0.0 <= state.pos.z <= STANDING_MOST_Z
    state.is_on_ground = standing
    state.wheels_with_contact = (standing, standing, standing, standing)
    state.has_world_contact = False
    state.is_auto_flipping = False
    state.auto_flip_timer = 0.0
    if state.is_flipping:
        return
    state.is_jumping = state.has_jumped = state.has_double_jumped = state.has_flipped = False
    state.jump_time = state.flip_time = state.air_time = state.air_time_since_jump = 0.0
