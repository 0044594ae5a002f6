"""Apply a `flat.DesiredGameState` to a simulation; null parts and components keep their values [flatbuffers].

Documented, for v4, is only that a dodge under way goes on [RLBot issue 389] and that a demolished car cannot
be set [RLBot pull request 394]. The rest is chosen here and stated at `edit_car`.
"""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from rlbot import flat

from rlgym_bridge import game
from rlgym_bridge.rotations import angles_of, rotation_of
from rlgym_bridge.server.game.simulation import Simulation
from rlgym_bridge.state import MatchState, derive

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
    return any(value is not None for value in _components(part))


def set_bodies(simulation: Simulation, desired: flat.DesiredGameState) -> bool:
    """Set the ball and cars that are desired, but no demolished ones; tell whether the ball has a place."""
    state = simulation.state.copy()
    balls = desired.ball_states[:1]
    for ball in balls:
        _edit_physics(state, "ball_", 0, ball.physics)  # one at rest stays in the air until it is touched
    slots = []
    for slot, (place, wanted) in enumerate(zip(simulation.places, desired.car_states, strict=False)):
        if (wanted.physics is None and wanted.boost_amount is None) or state.car_is_demoed[0, place]:
            continue
        slots.append(slot)
        edit_car(state, place, wanted)
    derive(state)
    for slot in slots:
        physics = desired.car_states[slot].physics
        if physics is not None and _changes(physics.velocity):
            _set_supersonic(state, simulation.places[slot])
    simulation.set(state, slots, bool(balls))
    return any(
        ball.physics is not None and None not in (_components(ball.physics.location) or (None,))
        for ball in balls
    )


def edit_car(state: MatchState, place: int, desired: flat.DesiredCarState) -> None:
    """Put what is desired into a car of a state; `derive` and whether it is supersonic have to follow.

    Boost is cut to 0..100 and to whole numbers, as RLBot's core does. A car whose place or rotation is
    set has neither jumped nor dodged since it left the ground, so it has its jump or dodge yet, as a
    car that has fallen off something; only a dodge under way goes on with all that belongs to it [RLBot
    issue 389]. It stands on four wheels where it is set upright at the height of a standing car on the
    floor, and is in the air anywhere else until the next tick looks for walls under its wheels.
    Whether it is supersonic follows a set velocity at once.
    """
    if desired.boost_amount is not None:
        state.car_boost_amount[0, place] = int(min(100.0, max(0.0, desired.boost_amount)))
    physics = desired.physics
    if physics is None:
        return
    _edit_physics(state, "car_", (0, place), physics)
    if _changes(physics.location) or _changes(physics.rotation):
        _set_down(state, place)


def _set_supersonic(state: MatchState, place: int) -> None:
    speed = math.hypot(*state.car_linear_velocity[0, place].tolist())
    if speed >= game.SUPERSONIC_START_SPEED or speed < game.SUPERSONIC_KEEP_SPEED:
        state.car_is_supersonic[0, place] = speed >= game.SUPERSONIC_START_SPEED
        state.car_supersonic_time[0, place] = 0.0


def _edit_physics(
    state: MatchState, of: str, at: int | tuple[int, int], desired: flat.DesiredPhysics
) -> None:
    for name, part in (
        ("position", desired.location), ("linear_velocity", desired.velocity),
        ("angular_velocity", desired.angular_velocity),
    ):  # fmt: skip
        values = getattr(state, of + name)[at]
        for axis, value in enumerate(_components(part)):
            if value is not None:
                values[axis] = value
    if _changes(desired.rotation):
        matrix = getattr(state, of + "rotation")[at]
        asked = _components(desired.rotation)
        now = angles_of(matrix.ravel().tolist())
        angles = (old if new is None else new for old, new in zip(now, asked, strict=True))
        matrix[:] = np.reshape(rotation_of(*angles), (3, 3))


def _set_down(state: MatchState, place: int) -> None:
    """Set the fields that depend on where a car is; see `edit_car`."""
    upright = state.car_rotation[0, place, 2, 2] >= game.STANDING_LEAST_UP
    standing = upright and 0.0 <= state.car_position[0, place, 2] <= game.STANDING_MOST_Z
    state.car_wheels_with_contact[0, place] = standing
    reset = ["is_autoflipping", "autoflip_timer"]
    if not state.car_is_flipping[0, place]:
        reset += [
            "is_jumping", "has_jumped", "has_double_jumped", "has_flipped", "jump_time", "flip_time",
            "air_time_since_jump",
        ]  # fmt: skip
    for name in reset:
        getattr(state, f"car_{name}")[0, place] = 0.0
