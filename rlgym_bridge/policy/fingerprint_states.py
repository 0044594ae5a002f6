"""Make the fixed states that a policy's components are shown when it is saved and loaded.

They are made by formula, not by a random generator, so that they are the same everywhere. Changing them
makes every saved policy unreadable: count `manifest.FORMAT` up with it.
"""

import math
from itertools import count
from typing import Any, Final

from rlgym_bridge.derived_fields import derive
from rlgym_bridge.game import (
    BIG_PAD_SECONDS,
    BIG_PADS,
    DODGE_DEADZONE,
    ORANGE,
    PAD_COUNT,
    SMALL_PAD_SECONDS,
    Phase,
)
from rlgym_bridge.state import MatchState

PROBE_STATES: Final = 6
_GOLDEN: Final = (math.sqrt(5) - 1) / 2  # its multiples, modulo 1, spread evenly without repeating


def probe_states(blue: int, orange: int, hitbox: int) -> list[MatchState]:
    """Return `PROBE_STATES` states that differ in every field, at no symmetric spot.

    From state to state the cars take turns at the situations below, so that each shows all of them and
    no two flags are equal throughout. A third of the pads is taken.
    """
    states = []
    for i in range(PROBE_STATES):
        state = MatchState(blue, orange)
        numbers = (((k + 1) * _GOLDEN) % 1.0 for k in count(1000 * i))

        def spread(low: float, high: float, shape: int = 1, numbers: Any = numbers) -> list[float]:
            return [low + (high - low) * next(numbers) for _ in range(shape)]

        _fill_match(state, i, spread)
        for car in range(state.layout.cars):
            state.car_player_id[0, car] = car
            state.car_hitbox[0, car] = hitbox
            _fill_car(state, car, spread)
            _SITUATIONS[(i + car) % len(_SITUATIONS)](state, car, spread)
        state.car_known[:] = 1
        derive(state)
        states.append(state)
    return states


def _fill_match(state: MatchState, i: int, spread: Any) -> None:
    state.frame[:] = 1000 + 8 * i
    state.phase[:], state.clock[:] = Phase.ACTIVE, 211 - i
    state.score[:] = (1, 2)
    state.gravity[:], state.boost_consumption[:], state.dodge_deadzone[:] = 1, 1, DODGE_DEADZONE
    state.ball_known[:] = 1
    state.ball_position[:] = (*spread(-3500, 3500), *spread(-4500, 4500), *spread(150, 1800))
    state.ball_rotation[:] = _rotation(*spread(-1.2, 1.2, 3))
    state.ball_linear_velocity[:] = spread(-1500, 1500, 3)
    state.ball_angular_velocity[:] = spread(-5, 5, 3)
    for pad in range(PAD_COUNT):
        if (pad + i) % 3 == 0:
            state.pad_timer[0, pad] = spread(0.1, BIG_PAD_SECONDS if pad in BIG_PADS else SMALL_PAD_SECONDS)[
                0
            ]


def _fill_car(state: MatchState, car: int, spread: Any) -> None:
    state.car_team[0, car] = 0 if car < state.layout.blue else ORANGE
    state.car_position[0, car] = (*spread(-3800, 3800), *spread(-4800, 4800), *spread(100, 1900))
    state.car_rotation[0, car] = _rotation(*spread(-1.2, 1.2, 3))
    state.car_linear_velocity[0, car] = spread(-1100, 1100, 3)
    state.car_angular_velocity[0, car] = spread(-3, 3, 3)
    state.car_boost_amount[0, car] = spread(5, 95)[0]
    state.car_handbrake[0, car] = spread(0.1, 0.9)[0]
    state.car_bump_victim[0, car] = -1
    state.car_controls[0, car, :5] = spread(-1, 1, 5)


def _drive(state: MatchState, car: int, spread: Any) -> None:
    """On the ground, boosting, supersonic, touching the ball and having bumped the car before it."""
    state.car_position[0, car, 2] = 17.0
    state.car_rotation[0, car] = _rotation(0.0, spread(-3, 3)[0], 0.0)
    state.car_linear_velocity[0, car, 2] = 0
    state.car_wheels_with_contact[0, car] = 1
    state.car_boost_active_time[0, car] = spread(0.1, 1.5)[0]
    state.car_supersonic_time[0, car] = spread(0.1, 1.5)[0]
    state.car_ball_touches[0, car] = 2
    state.car_bump_victim[0, car] = car - 1


def _dodge(state: MatchState, car: int, spread: Any) -> None:
    """In the air, in a dodge."""
    state.car_has_jumped[0, car] = state.car_has_flipped[0, car] = 1
    state.car_jump_time[0, car] = 0.2
    state.car_air_time_since_jump[0, car] = spread(0.3, 1.1)[0]
    state.car_flip_time[0, car] = spread(0.05, 0.55)[0]
    state.car_flip_torque[0, car, :2] = spread(-1, 1, 2)


def _demolish(state: MatchState, car: int, spread: Any) -> None:
    """Demolished after a dodge that is spent."""
    state.car_has_jumped[0, car] = state.car_has_flipped[0, car] = 1
    state.car_flip_time[0, car] = 0.9
    state.car_demo_respawn_timer[0, car] = spread(0.5, 2.9)[0]


def _rise(state: MatchState, car: int, spread: Any) -> None:
    """In the air, rising, with the jump button held and two wheels still touching."""
    state.car_has_jumped[0, car] = state.car_is_jumping[0, car] = state.car_is_holding_jump[0, car] = 1
    state.car_controls[0, car, 5] = 1
    state.car_jump_time[0, car] = spread(0.03, 0.19)[0]
    state.car_wheels_with_contact[0, car] = (0, 0, 1, 1)


def _double_jump(state: MatchState, car: int, spread: Any) -> None:
    """In the air, boosting, the second jump just pressed."""
    state.car_has_jumped[0, car] = state.car_has_double_jumped[0, car] = 1
    state.car_is_holding_jump[0, car] = state.car_controls[0, car, 5] = 1
    state.car_air_time_since_jump[0, car] = spread(0.3, 1.1)[0]
    state.car_boost_active_time[0, car] = spread(0.1, 1.5)[0]


def _fall(state: MatchState, car: int, spread: Any) -> None:
    """In the air without a jump, supersonic, a dodge left."""
    state.car_supersonic_time[0, car] = spread(0.1, 1.5)[0]


_SITUATIONS: Final = (_drive, _dodge, _demolish, _rise, _double_jump, _fall)


def _rotation(pitch: float, yaw: float, roll: float) -> list[list[float]]:
    """Return the matrix with columns forward, right, up of a car turned by these angles in radians."""
    (sp, sy, sr), (cp, cy, cr) = (
        [turn(angle) for angle in (pitch, yaw, roll)] for turn in (math.sin, math.cos)
    )
    return [
        [cp * cy, cy * sp * sr - cr * sy, -cr * cy * sp - sr * sy],
        [cp * sy, sy * sp * sr + cr * cy, -cr * sy * sp + sr * cy],
        [sp, -cp * sr, cp * cr],
    ]
