"""Windows hold one body that touches no other, or all bodies of one meeting, and nothing that is unknown."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rlgym_bridge.compare.tracks import BALL, POSITION, ROTATION, body_values
from rlgym_bridge.compare.windows import CAR_GROUND, CAR_WALL, HORIZONS, Window, make_windows
from rlgym_bridge.game import CONTROL_NAMES, STANDING_LEAST_UP, STANDING_MOST_Z
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from rlgym_bridge.sim.simulator import ROCKETSIM3
from tests.support.compared import judged, scene_of, scenes_of, windows_of
from tests.support.fault_matches import clean, plant
from tests.support.fault_scenes import Form
from tests.support.planted_gaps import rows_of
from tests.support.simulated_windows import measure_windows
from tests.support.simulators import needs_native

pytestmark = needs_native

_BALL_AND_CAR, _TWO_CARS = 185.0, 190.0  # uu between centres: nearer ones may touch


@cache
def table(rate: int = 120) -> Recording:
    return clean(2, Form(table=True, rate=rate)).recording


def places(recording: Recording, body: int) -> np.ndarray:
    return body_values(recording, body, np.arange(len(recording.tick)))[:, POSITION]


def together(recording: Recording, one: int, other: int) -> np.ndarray:
    """Return `(rows,)` whether two bodies are so near that they may touch."""
    apart = np.linalg.norm(places(recording, one) - places(recording, other), axis=1)
    return np.asarray(apart < (_BALL_AND_CAR if BALL in (one, other) else _TWO_CARS))


def alone(windows: list[Window], body: int) -> list[Window]:
    return [window for window in windows if window.bodies == (body,)]


def rows_in(window: Window) -> slice:
    return slice(window.row, int(window.track.rows[window.ends[-1]]) + 1)


@pytest.mark.parametrize("body", [0, 1, BALL])
@pytest.mark.parametrize("rate", [120, 30])
def test_a_window_ends_before_its_body_meets_another(body: int, rate: int) -> None:
    recording = table(rate)
    windows = alone(windows_of(recording), body)
    others = [other for other in (0, 1, BALL) if other != body]
    touch = np.logical_or.reduce([together(recording, body, other) for other in others])
    assert len(windows) > 20 and touch.any()
    assert not any(touch[rows_in(window)].any() for window in windows)


def test_a_window_stays_within_its_scene_and_near_its_horizons() -> None:
    recording = table()
    for window in windows_of(recording):
        assert len(set(recording.segment[rows_in(window)].tolist())) == 1
        for end, column in zip(window.ends, window.horizons, strict=True):
            assert abs(window.track.times[end] - window.track.times[window.start] - HORIZONS[column]) <= 24
        assert window.seconds(-1) <= 2.2


def test_a_car_in_the_air_is_followed_since_it_left_the_floor() -> None:
    recording = table()
    values = body_values(recording, 0, np.arange(len(recording.tick)))
    floor = (values[:, 2] < STANDING_MOST_Z) & (values[:, ROTATION][:, 8] > STANDING_LEAST_UP)
    jump = recording.state.car_controls[:, 0, CONTROL_NAMES.index("jump")] > 0
    jumped = 0
    for window in alone(windows_of(recording, 120), 0):
        rows = window.track.rows[: window.start + 1]
        if floor[window.row] or not jump[rows[0] : rows_in(window).stop].any():
            continue
        (left,) = (rows[floor[rows]][-1:] or [None]) if not floor[rows].any() else [rows[floor[rows]][-1]]
        assert left is not None, "nobody knows whether it has its dodge"
        followed = window.track.times[window.start] - window.lead
        assert followed <= window.track.times[np.searchsorted(window.track.rows, left)]
        jumped += 1
    assert jumped > 5


@pytest.mark.parametrize(
    ("lacking", "grounded"), [("pitch", True), ("steer", False), ("boost", None), ("jump", None)]
)
def test_a_window_ends_where_an_input_that_acts_is_not_recorded(lacking: str, grounded: bool | None) -> None:
    recorded = np.ones((2, 8), bool)
    recorded[0, CONTROL_NAMES.index(lacking)] = False
    recording = replace(table(), inputs_recorded=recorded)
    windows = windows_of(recording)
    found = alone(windows, 0)
    if grounded is None:
        assert not found
    else:
        values = body_values(recording, 0, np.arange(len(recording.tick)))
        floor = (values[:, 2] < STANDING_MOST_Z) & (values[:, ROTATION][:, 8] > STANDING_LEAST_UP)
        assert found and all((floor[rows_in(window)] == grounded).all() for window in found)
    assert len(alone(windows, 1)) > 20 and len(alone(windows, BALL)) > 20  # they have all they need


def test_meetings_hold_all_bodies_that_are_near() -> None:
    recording = clean(6, Form(table=True)).recording
    meetings = [window for window in windows_of(recording, 200) if window.meeting]
    assert {window.bodies for window in meetings} >= {(0, BALL), (0, 1)}
    touched = 0
    for window in meetings:
        last = rows_in(window).stop
        for one, other in ((0, 1), (0, BALL), (1, BALL)):
            if together(recording, one, other)[window.row : min(window.row + 12, last)].any():
                assert {one, other} <= set(window.bodies)
                touched += 1
    assert touched > 5


def test_replays_hold_no_meetings_and_bare_balls_no_cars() -> None:
    recording = replace(table(30), clock=TimeBase.FRAMES)
    assert not any(window.meeting for window in windows_of(recording))
    undriven = replace(table(), inputs=Inputs.NONE, inputs_recorded=np.zeros((2, 8), bool))
    assert {window.bodies for window in windows_of(undriven)} == {(BALL,)}


def test_windows_overlap_in_a_short_recording_alone() -> None:
    scene = scene_of(table())
    few = make_windows(scene, 20)
    assert all(len(alone(few, body)) <= 20 for body in (0, 1, BALL))
    short = windows_of(rows_of(table(), np.flatnonzero(table().segment == table().segment[0])[:100]))
    starts = [window.row for window in alone(short, BALL)]
    assert len(starts) > 8 and np.diff(starts).max() <= 8


@pytest.mark.parametrize("rows", [0, 1])
def test_what_shows_nothing_gives_no_window(rows: int) -> None:
    assert windows_of(rows_of(table(), np.arange(rows))) == []


@pytest.mark.parametrize("rate", [120, 30])
def test_a_lead_begins_on_a_floor_on_which_the_car_had_rested(rate: int) -> None:
    windows = [one for one in windows_of(table(rate), 120) if one.bodies[0] != BALL and not one.meeting]
    longer = 0
    for window in windows:
        track, car = window.track, window.bodies[0]
        pressed = window.scene.presses(car)[track.rows[0] : track.rows[window.ends[-1]] + 1].any()
        before = track.times[window.start] - track.times[: window.start + 1]
        low = (track.values[: window.start + 1, 0, 2] < window.scene.standing_height[car]) & (
            track.values[: window.start + 1, 0, ROTATION][:, 8] > STANDING_LEAST_UP
        )
        followed = before <= window.lead
        rested = [low[(before >= ago) & (before < ago + 36)].all() for ago in before[followed]]
        assert any(rested) or not pressed, window
        longer += bool(low[-1] and window.lead > 96)
    assert longer > 3  # after a landing the flight before it counts


def test_a_press_that_lost_rows_may_hold_ends_a_window() -> None:
    recording = clean(2, Form(table=True, rate=30, lost=0.03)).recording
    scene = scene_of(recording)
    gap = np.diff(scene.timeline.inputs, prepend=scene.timeline.inputs[:1])
    lost = (gap > 5) & (np.diff(recording.segment, prepend=-1) == 0)
    assert lost.sum() > 10
    for window in windows_of(recording):
        rows = rows_in(window)
        assert window.bodies == (BALL,) or not lost[rows].any(), window


def test_no_window_follows_a_dodge_that_lost_rows_may_hold() -> None:
    found = judged(scenes_of(clean(2412).recording, 11, 12), 240)  # both rows of a press are lost
    assert alone(found.windows, 0) and not found.beyond.any()
    scene = found.windows[0].scene
    for window in alone(found.windows, 0):
        first = np.searchsorted(window.track.times, window.track.times[window.start] - window.lead)
        if window.track.values[window.start, 0, 2] > 100:
            assert not scene.lost_presses[0][window.track.rows[first] + 1 : window.row + 1].any(), window


def test_a_car_that_is_recorded_too_high_drives_on_the_ground() -> None:
    scene = scene_of(plant(2, "car too high", Form(table=True, cars=1)).recording)
    driving = [one.bodies == (0,) and one.lead == 96 for one in make_windows(scene, 60) if not one.meeting]
    names = measure_windows(scene, 60, ROCKETSIM3).names[driving, 0]
    assert len(names) > 10 and CAR_GROUND in names and CAR_WALL not in names


def test_boost_that_no_row_shows_ends_a_window() -> None:
    recording = table()
    recording = replace(recording, state=recording.state.copy())
    row = next(
        one for one in range(400, 3000)
        if not recording.state.car_controls[one - 60 : one + 60, 0, CONTROL_NAMES.index("boost")].any()
        and len(set(recording.segment[one - 60 : one + 60].tolist())) == 1
    )  # fmt: skip
    assert not scene_of(recording).unknown_inputs[0][row - 5 : row + 5].any()
    recording.state.car_boost_amount[row:, 0] -= 3
    unknown = scene_of(recording).unknown_inputs[0]
    assert unknown[row - 5 : row + 1].all() and not unknown[row + 1 : row + 20].any()
    recording.state.car_boost_amount[row : row + 60, 0] = 80 - 0.28 * np.arange(60)
    long = scene_of(recording).unknown_inputs[0][row - 5 : row + 60]
    assert not long.any()  # no press between rows burns for so long
