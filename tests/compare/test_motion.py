"""A wrong column or unit is refused by name, before anything is compared."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rlgym_bridge.compare.clock_fit import fit_timeline
from rlgym_bridge.compare.motion_check import check_motion
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.recording.rotations import from_euler, from_quaternions, to_quaternions
from rlgym_bridge.state import MatchState
from tests.support.fault_matches import clean
from tests.support.fault_scenes import Form
from tests.support.planted_gaps import as_replay, rows_of
from tests.support.simulators import needs_native

pytestmark = needs_native


@cache
def table(fast: float = 0.0) -> Recording:
    return clean(2, Form(table=True, fast=fast)).recording


def _metres(state: MatchState) -> None:
    state.ball_position[:] /= 100


def _swapped(state: MatchState) -> None:
    state.ball_position[:] = state.ball_position[:, [1, 0, 2]]


def _all_metres(state: MatchState) -> None:
    for name in ("ball_position", "ball_linear_velocity", "car_position", "car_linear_velocity"):
        getattr(state, name)[:] /= 100


def _cars_in_metres(state: MatchState) -> None:
    state.car_position[:] /= 100
    state.car_linear_velocity[:] /= 100


def _ten_times(state: MatchState) -> None:
    for name in ("ball_position", "ball_linear_velocity"):
        getattr(state, name)[:] *= 10


def _spin_in_degrees(state: MatchState) -> None:
    state.car_angular_velocity[:] = np.degrees(state.car_angular_velocity)


def _euler_in_degrees(state: MatchState) -> None:
    turns = state.car_rotation
    pitch = np.arcsin(turns[..., 2, 0].clip(-1, 1))
    yaw, roll = (
        np.arctan2(turns[..., 1, 0], turns[..., 0, 0]),
        np.arctan2(-turns[..., 2, 1], turns[..., 2, 2]),
    )
    for car in range(turns.shape[1]):
        angles = np.stack([pitch[:, car], yaw[:, car], roll[:, car]], axis=-1)
        turns[:, car] = from_euler(np.degrees(angles))


def _spin_of_the_car(state: MatchState) -> None:
    """As seen from the car."""
    state.car_angular_velocity[:] = np.einsum("ncij,nci->ncj", state.car_rotation, state.car_angular_velocity)


def _spin_in_hundreds(state: MatchState) -> None:
    state.car_angular_velocity[:] /= 57.3


def _mirrored(state: MatchState) -> None:
    for name in ("ball_position", "ball_linear_velocity", "car_position", "car_linear_velocity"):
        getattr(state, name)[..., 1] *= -1


def _quaternion_from_x(state: MatchState) -> None:
    """With a quaternion of x, y, z, w read as w, x, y, z, of a car whose spin is not known."""
    for car in range(state.car_rotation.shape[1]):
        shuffled = np.roll(to_quaternions(state.car_rotation[:, car].reshape(-1, 3, 3)), -1, axis=1)
        state.car_rotation[:, car] = from_quaternions(shuffled)
    state.car_angular_velocity[:] = 0


def _no_speed(state: MatchState) -> None:
    state.ball_linear_velocity[:] = 0


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_metres, r"the ball is at \(.*\) in the median, .* where no field is; .* scale = 100"),
        (_swapped, r"the ball moves otherwise than its velocity says"),
        (_all_metres, r"car 0 is at \(.*\) in the median, .* where no field is; .* scale = 100"),
        (_cars_in_metres, r"car 0 is at \(.*\) in the median, .* where no field is; .* scale = 100"),
        (_ten_times, r"the ball is at \(.*\) in the median, .* where no field is"),
        (_spin_in_degrees, r"car 0 turns at .* rad/s in the median, .* Degrees need scale = 0.0174533"),
        (_euler_in_degrees, r"car 0 turns otherwise than its angular velocity says, .*half_turn = 180"),
        (_spin_of_the_car, r"car 0 turns otherwise than its angular velocity says, .* axes of the car"),
        (_spin_in_hundreds, r"car 0 turns otherwise than its angular velocity says, by 98 %"),
        (_mirrored, r"car 1 drives \d+ degrees off its nose in the median, .*scale = -1"),
        (_quaternion_from_x, r"car 0 is as low as on its wheels, 17.* w, x, y, z"),
        (_no_speed, r"the ball moves and its velocity is 0"),
    ],
)
def test_a_wrong_column_or_unit_is_told_from_a_wrong_clock(
    damage: Callable[[MatchState], None], said: str
) -> None:
    whole = table(0.01)
    check_motion(whole, fit_timeline(whole))
    part = replace(whole, state=whole.state.copy())
    damage(part.state)
    with pytest.raises(ValueError, match=said):
        check_motion(part, fit_timeline(part))


@pytest.mark.parametrize("scale", [1000, -1])
def test_times_in_another_unit_or_that_fall_are_refused(scale: int) -> None:
    recording = rows_of(table(0.01), np.arange(1500))
    alone = np.arange(len(recording.tick), dtype=np.int32)  # as tables are read where times leap or fall
    part = replace(recording, seconds=scale * recording.seconds, segment=alone)
    with pytest.raises(ValueError, match=r"rows are .* s apart in the median, .* scale = 0.001"):
        check_motion(part, fit_timeline(part))


def test_replays_and_bodies_at_rest_move_as_they_say() -> None:
    for recording in (as_replay(clean(2, Form()).recording), table()):
        check_motion(recording, fit_timeline(recording))
    still = replace(table(), state=table().state.copy())
    for name in ("ball_position", "ball_linear_velocity", "car_position", "car_linear_velocity"):
        getattr(still.state, name)[:] = getattr(still.state, name)[:1]
    still.state.ball_linear_velocity[:] = still.state.car_linear_velocity[:] = 0
    check_motion(still, fit_timeline(still))
