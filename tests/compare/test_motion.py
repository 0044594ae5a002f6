"""A wrong column or unit is refused by name, before anything is compared."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rlgym_bridge.compare.clock_fit import check_motion, fit_timeline
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.rotations import from_euler, from_quaternions, to_quaternions
from rlgym_bridge.state import MatchState
from tests.support.fault_matches import clean
from tests.support.fault_scenes import Form
from tests.support.planted_gaps import as_replay, rows_of
from tests.support.simulators import needs_native

pytestmark = needs_native
Damage = Callable[[MatchState], None]


@cache
def whole(fast: float) -> Recording:
    return clean(2, Form(table=True, fast=fast)).recording


def table(fast: float = 0.0) -> Recording:
    return replace(whole(fast), state=whole(fast).state.copy())


def scaled(factor: float, *names: str) -> Damage:
    """Return a damage that has some parts of the states in another unit."""

    def damage(state: MatchState) -> None:
        for name in names:
            getattr(state, name)[:] *= factor

    return damage


BALL, CARS = ("ball_position", "ball_linear_velocity"), ("car_position", "car_linear_velocity")


def _swapped(state: MatchState) -> None:
    state.ball_position[:] = state.ball_position[:, [1, 0, 2]]


def _euler_in_degrees(state: MatchState) -> None:
    turns = state.car_rotation
    angles = np.stack([
        np.arcsin(turns[..., 2, 0].clip(-1, 1)), np.arctan2(turns[..., 1, 0], turns[..., 0, 0]),
        np.arctan2(-turns[..., 2, 1], turns[..., 2, 2]),
    ], axis=-1)  # fmt: skip
    turns[:] = from_euler(np.degrees(angles).reshape(-1, 3)).reshape(turns.shape)


def _spin_of_the_car(state: MatchState) -> None:
    """As seen from the car."""
    state.car_angular_velocity[:] = np.einsum("ncij,nci->ncj", state.car_rotation, state.car_angular_velocity)


def _mirrored(state: MatchState) -> None:
    for name in (*BALL, *CARS):
        getattr(state, name)[..., 1] *= -1


def _quaternion_from_x(state: MatchState) -> None:
    """With a quaternion of x, y, z, w read as w, x, y, z, of a car whose spin is not known."""
    shuffled = np.roll(to_quaternions(state.car_rotation.reshape(-1, 3, 3)), -1, axis=1)
    state.car_rotation[:] = from_quaternions(shuffled).reshape(state.car_rotation.shape)
    state.car_angular_velocity[:] = 0


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            scaled(0.01, "ball_position"),
            r"the ball is at \(.*\) in the median, .* where no field is; .* scale = 100",
        ),
        (_swapped, r"the ball moves otherwise than its velocity says"),
        (
            scaled(0.01, *BALL, *CARS),
            r"car 0 is at \(.*\) in the median, .* where no field is; .* scale = 100",
        ),
        (scaled(0.01, *CARS), r"car 0 is at \(.*\) in the median, .* where no field is; .* scale = 100"),
        (scaled(10, *BALL), r"the ball is at \(.*\) in the median, .* where no field is"),
        (
            scaled(57.3, "car_angular_velocity"),
            r"car 0 turns at .* rad/s in the median, .* Degrees need scale = 0.0174533",
        ),
        (_euler_in_degrees, r"car 0 turns otherwise than its angular velocity says, .*half_turn = 180"),
        (_spin_of_the_car, r"car 0 turns otherwise than its angular velocity says, .* axes of the car"),
        (
            scaled(1 / 57.3, "car_angular_velocity"),
            r"car 0 turns otherwise than its angular velocity says, by 98 %",
        ),
        (_mirrored, r"car 1 drives \d+ degrees off its nose in the median, .*scale = -1"),
        (_quaternion_from_x, r"car 0 is as low as on its wheels, 17.* w, x, y, z"),
        (scaled(0, "ball_linear_velocity"), r"the ball moves and its velocity is 0"),
    ],
)
def test_a_wrong_column_or_unit_is_told_from_a_wrong_clock(damage: Damage, said: str) -> None:
    part = table(0.01)
    check_motion(part, fit_timeline(part))
    damage(part.state)
    with pytest.raises(ValueError, match=said):
        check_motion(part, fit_timeline(part))


@pytest.mark.parametrize("scale", [1000, -1])
def test_times_in_another_unit_or_that_fall_are_refused(scale: int) -> None:
    recording = rows_of(table(0.01), np.arange(60))
    alone = np.arange(len(recording.tick), dtype=np.int32)  # as tables are read where times leap or fall
    part = replace(recording, seconds=scale * recording.seconds, segment=alone)
    with pytest.raises(ValueError, match=r"rows are .* s apart in the median, .* scale = 0.001"):
        check_motion(part, fit_timeline(part))


def test_replays_and_bodies_at_rest_move_as_they_say() -> None:
    for recording in (as_replay(clean(2, Form()).recording), table()):
        check_motion(recording, fit_timeline(recording))
    still = table()
    for name in (*BALL, *CARS):
        getattr(still.state, name)[:] = getattr(still.state, name)[:1]
    still.state.ball_linear_velocity[:] = still.state.car_linear_velocity[:] = 0
    check_motion(still, fit_timeline(still))
