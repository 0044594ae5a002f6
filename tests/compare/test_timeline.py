"""Times of rows: the clock from positions against velocities, the ages of what replays show."""

from dataclasses import replace

import numpy as np
import pytest

from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.motion_check import check_motion
from rlgym_bridge.game import GRAVITY, TICK_SECONDS, TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from rlgym_bridge.recording.rotations import from_euler, from_quaternions, to_quaternions
from rlgym_bridge.state import MatchState
from tests.support.planted_gaps import as_replay, as_table, heavier, play, timed


def _steps(times: np.ndarray, recording: Recording) -> np.ndarray:
    return np.diff(times)[np.diff(recording.segment) == 0]


@pytest.mark.parametrize("rate", [120, 60])
@pytest.mark.parametrize("fast", [0.003, -0.003, 0.0])
def test_a_clock_that_runs_fast_is_measured(rate, fast):
    recording = timed(as_table(play(seconds=16)), fast, rate)
    timeline = fit_timeline(recording)
    assert timeline.clock.scale == pytest.approx(1 / (1 + fast), abs=2e-5)
    np.testing.assert_array_equal(_steps(timeline.inputs, recording), TICKS_PER_SECOND / rate)


@pytest.mark.parametrize("waver", ["rounded", "jittered"])
def test_a_wavering_clock_is_told_by_what_moves(waver):
    recording = timed(as_table(play(seconds=16)), 0.003)
    seconds = recording.seconds.copy()
    if waver == "rounded":
        seconds = np.round(seconds, 3)
    else:
        seconds += np.random.default_rng(0).normal(0, 5e-4, len(seconds))
    timeline = fit_timeline(replace(recording, seconds=seconds))
    assert timeline.clock.wavers
    assert timeline.clock.scale == pytest.approx(1 / 1.003, abs=5e-4)
    np.testing.assert_array_equal(_steps(timeline.inputs, recording), 1)
    assert not fit_timeline(recording).clock.wavers


def test_rows_between_ticks_are_measured_by_what_moved_alone():
    ticks = np.arange(100) * 1.967  # 61 rows a second
    seconds = ticks / TICKS_PER_SECOND
    state = MatchState(0, 0, len(ticks))
    state.ball_linear_velocity[:] = np.array([900, 300, 400]) - GRAVITY * np.outer(seconds, [0, 0, 1])
    # RocketSim and the game move by the speed after the tick: half a tick more of gravity.
    fall = GRAVITY * (seconds**2 / 2 + seconds * TICK_SECONDS / 2)
    state.ball_position[:] = np.outer(seconds, [900, 300, 400]) - np.outer(fall, [0, 0, 1]) + [0, 0, 800]
    there = np.ones(len(ticks), bool)
    recording = Recording(
        "ball", state, np.round(ticks).astype(np.int64), seconds / 1.002, np.zeros(len(ticks), np.int32),
        there, np.zeros((len(ticks), 0), bool), TimeBase.SECONDS, Inputs.NONE,
    )  # fmt: skip
    timeline = fit_timeline(recording)
    assert not timeline.clock.on_ticks
    assert timeline.clock.scale == pytest.approx(1.002, abs=2e-5)
    np.testing.assert_allclose(timeline.inputs, ticks, atol=0.01)


def test_a_gap_of_the_physics_is_not_taken_for_one_of_the_clock():
    clock = fit_timeline(timed(as_table(play(seconds=16, mutate=heavier)))).clock
    assert clock.scale == pytest.approx(1, abs=2e-5)


def test_ages_of_what_a_replay_shows_are_found():
    match = play(seconds=16)
    recording = as_replay(match)
    timeline = fit_timeline(recording)
    rows = np.flatnonzero(recording.ball_shown)
    truth = {tuple(place): tick for place, tick in zip(match.state.ball_position, match.tick, strict=True)}
    real = np.array([truth[tuple(place)] for place in recording.state.ball_position[rows]])
    together = np.diff(recording.segment[rows]) == 0
    wrong = (np.diff(timeline.times[rows, -1]) != np.diff(real))[together]
    assert timeline.offset.ticks == 2
    assert wrong.mean() < 0.05  # a ball at rest tells nothing


def test_a_body_that_hardly_moves_tells_no_clock():
    recording = timed(as_table(play(seconds=16)), 0.003)
    state = recording.state.copy()
    for name in ("ball", "car"):
        getattr(state, f"{name}_linear_velocity")[:] = 0
    fit = fit_timeline(replace(recording, state=state)).clock
    assert fit.samples == 0
    assert recording.clock is TimeBase.SECONDS


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
        (_mirrored, r"car 0 drives \d+ degrees off its nose in the median, .*scale = -1"),
        (_quaternion_from_x, r"car 0 is as low as on its wheels, 17.* w, x, y, z"),
        (_no_speed, r"the ball moves and its velocity is 0"),
    ],
)
def test_a_wrong_column_or_unit_is_told_from_a_wrong_clock(damage, said):
    whole = timed(as_table(play(seconds=16)), 0.01)
    check_motion(whole, fit_timeline(whole))
    part = replace(whole, state=whole.state.copy())
    damage(part.state)
    with pytest.raises(ValueError, match=said):
        check_motion(part, fit_timeline(part))


@pytest.mark.parametrize("scale", [1000, -1])
def test_times_in_another_unit_or_that_fall_are_refused(scale):
    recording = timed(as_table(play(seconds=16)), 0.01)
    alone = np.arange(len(recording.tick), dtype=np.int32)  # as tables are read where times leap or fall
    part = replace(recording, seconds=scale * recording.seconds, segment=alone)
    with pytest.raises(ValueError, match=r"rows are .* s apart in the median, .* scale = 0.001"):
        check_motion(part, fit_timeline(part))


def test_replays_and_bodies_at_rest_move_as_they_say():
    for recording in (as_replay(play(seconds=16)), as_table(play(seconds=16))):
        check_motion(recording, fit_timeline(recording))
    still = as_table(play(seconds=16))
    for name in ("ball_position", "ball_linear_velocity", "car_position", "car_linear_velocity"):
        getattr(still.state, name)[:] = getattr(still.state, name)[:1]
    still.state.ball_linear_velocity[:] = still.state.car_linear_velocity[:] = 0
    check_motion(still, fit_timeline(still))
