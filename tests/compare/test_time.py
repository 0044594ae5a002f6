"""Time comes first: a clock, lost rows, ages and late inputs are named as such, and no constant for them."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.compare.clock_fit import fit_timeline
from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.comparison_result import Comparison, GapVerdict
from rlgym_bridge.compare.input_lag import ActionDelay, LagFit, action_delay, fit_common_lag, fit_lag
from rlgym_bridge.compare.noise import measure_noise
from rlgym_bridge.compare.tracks import Drive
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from tests.support.compared import bench, scene_of
from tests.support.fault_matches import clean, plant
from tests.support.fault_scenes import Form
from tests.support.planted_gaps import as_replay, sent, without
from tests.support.real_data import COLUMNS, real
from tests.support.recorded_matches import record
from tests.support.simulators import needs_native

pytestmark = needs_native

_LOBOT = 0.01667 / 0.01640 - 1  # what its table says of rows that are 0.01640 s apart


@cache
def match() -> Recording:
    return clean(2, Form()).recording


def table(seed: int = 4, **form: object) -> Recording:
    return clean(seed, Form(table=True, cars=1, **form)).recording  # type: ignore[arg-type]


def compared(recording: Recording) -> Comparison:
    return compare_recordings(recording, windows=16)


def lag_of(recording: Recording, windows: int = 40) -> LagFit:
    return fit_lag(scene_of(recording), windows, bench=bench())


def claimed(found: Comparison) -> list[str]:
    return [gap.name for gap in found.gaps if gap.kind is not GapVerdict.TIMING]


# --- clocks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "fast"), [(120, _LOBOT), (60, 0.003), (30, -0.003), (60, 0.0)])
def test_a_clock_is_told_by_how_bodies_move(fast: float, rate: int) -> None:
    recording = table(3, rate=rate, fast=fast)
    timeline = fit_timeline(recording)
    assert timeline.clock.scale == pytest.approx(1 / (1 + fast), abs=1e-6)
    steps = np.diff(timeline.inputs)[np.diff(recording.segment) == 0]
    assert (steps == 120 / rate).mean() > 0.99


@pytest.mark.parametrize("waver", ["ms", "jittered"])
def test_a_wavering_clock_is_told_by_what_moves(waver: str) -> None:
    recording = table(3, fast=0.003, clock="ms" if waver == "ms" else "exact")
    if waver == "jittered":
        off = np.random.default_rng(0).normal(0, 5e-4, len(recording.seconds))
        recording = replace(recording, seconds=recording.seconds + off)
    timeline = fit_timeline(recording)
    assert timeline.clock.wavers and not fit_timeline(table(3)).clock.wavers
    assert timeline.clock.scale == pytest.approx(1 / 1.003, abs=5e-4)
    steps = np.diff(timeline.inputs)[np.diff(recording.segment) == 0]
    assert (steps == 1).mean() > 0.95 and steps.max() <= 2


@pytest.mark.parametrize("seed", [2036, 2406])  # segments of 3.983 s, in truth a third of a ms longer each
def test_times_rounded_to_ms_make_no_clock(seed: int) -> None:
    clock = fit_timeline(clean(seed).recording).clock
    assert clock.on_ticks and 0 < clock.scale - 1 < 4 * clock.error < 0.0005


@pytest.mark.parametrize("kind", ["gravity", "drag on cars"])
def test_a_gap_of_the_physics_is_not_taken_for_one_of_the_clock(kind: str) -> None:
    recording = plant(4, kind, Form(table=True)).recording
    assert fit_timeline(recording).clock.scale == pytest.approx(1, abs=2e-6)


def test_a_wrong_row_time_is_the_clock_and_no_gravity() -> None:
    found = compared(table(rate=60, fast=_LOBOT))
    assert [gap.name for gap in found.gaps] == ["clock"] and not found.causes and not found.untried
    assert found.clock_scale == pytest.approx(0.01640 / 0.01667, abs=1e-5) and found.agrees
    assert "this is no physics gap" in found.gaps[0].text
    said = str(found.as_json()["explanation"])
    assert said.startswith("No gap of physics was found; the recorded time differs: its clock.")


# --- rows and frames -------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [pytest.param(0.01, marks=pytest.mark.slow), 0.05])
def test_rows_that_are_lost_are_counted_and_blame_nothing(lost: float) -> None:
    recording = clean(2, Form(table=True, cars=1, lost=lost)).recording
    found = compared(recording)
    (gap,) = found.gaps
    whole = len(clean(2, Form(table=True, cars=1)).recording.tick)
    assert gap.name == "lost rows" and not claimed(found) and not found.untried
    assert gap.size == pytest.approx(whole - len(recording.tick), rel=0.25)


def test_the_ages_of_what_a_replay_shows_are_found() -> None:
    recording = as_replay(match())
    timeline = fit_timeline(recording)
    truth = {tuple(at): tick for at, tick in zip(match().state.ball_position, match().tick, strict=True)}
    rows = np.flatnonzero(recording.ball_shown)
    real_ticks = np.array([truth[tuple(at)] for at in recording.state.ball_position[rows]])
    together = np.diff(recording.segment[rows]) == 0
    wrong = (np.diff(timeline.times[rows, -1]) != np.diff(real_ticks))[together]
    assert recording.clock is TimeBase.FRAMES and timeline.offset.ticks == 2
    assert wrong.mean() < 0.06  # a ball at rest tells nothing


def test_a_replay_has_a_tick_offset_and_a_ball_alone() -> None:
    found = compared(as_replay(match()))
    assert [gap.name for gap in found.gaps] == ["tick offset"] and found.tick_offset == 2
    assert {row.name.split()[0] for row in found.situations} == {"ball"}
    assert any("it has no inputs" in one for one in found.unjudged)


# --- late inputs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("lag", [0, 3])
def test_the_lag_of_what_was_sent_is_found(lag: int) -> None:
    fit = lag_of(table(3, sent=True, lag=lag))
    assert (fit.ticks, [piece.ticks for piece in fit.pieces]) == (lag, [lag]) and fit.sure > 0.9


@pytest.mark.parametrize("lag", [11, -5])
def test_a_long_lag_is_looked_for_further_off(lag: int) -> None:
    assert lag_of(sent(match(), lag)).ticks == lag


def test_inputs_that_are_called_applied_and_are_not_are_late() -> None:
    assert lag_of(match()).ticks == 0
    assert lag_of(replace(sent(match(), 1), inputs=Inputs.APPLIED)).ticks == 2


def test_a_lag_is_found_beside_a_clock_and_a_missing_control() -> None:
    recording = without(table(3, sent=True, lag=3, rate=60, fast=0.003), "handbrake")
    assert lag_of(recording).ticks == 3
    assert lag_of(as_replay(match())).windows == 0


@pytest.mark.parametrize(
    ("form", "early"),
    [(Form(True, 30, cars=1), 3), (Form(True, 60, sent=True, lag=2, cars=1), 0),
     (Form(True, 40, held=False, cars=1), None)],
)  # fmt: skip
def test_inputs_that_change_at_rows_alone_leave_nothing_open(form: Form, early: int | None) -> None:
    recording = clean(3, form).recording
    scene = scene_of(recording)
    fit = fit_common_lag(scene, bench())
    assert (fit.ticks, fit.at_rows) == (form.lag, early is not None) and fit.early == (early or 0)
    timed = replace(scene, lag=fit.of_rows(len(recording.tick)), at_rows=fit.at_rows)
    assert (timed.lag == form.lag - (early or 0)).all()
    assert measure_noise(timed).slack == (0 if fit.at_rows else scene.unseen)


def test_cars_that_act_unequally_late_are_aligned_each() -> None:
    late = plant(689, "car late")  # one of two by 2 ticks, in 60 rows
    fit = fit_common_lag(scene_of(late.recording), bench())
    assert (fit.ticks, fit.early, fit.at_rows) == (0, 1, True)
    assert late.outcome(compare_recordings(late.recording))[0] == "right"


def test_a_lag_that_fits_no_better_than_none_is_none() -> None:
    swapped = plant(3, "cars swapped", Form()).recording
    assert fit_common_lag(scene_of(swapped), bench()).ticks == 0


def _changing(early: int, late: int, row: int) -> Recording:
    one, other = sent(match(), early), sent(match(), late)
    one.state.car_controls[row:] = other.state.car_controls[row:]
    return one


def test_a_lag_that_changes_for_good_has_pieces_of_its_own() -> None:
    row = 4000
    fit = lag_of(_changing(3, 1, row), 120)
    assert [piece.ticks for piece in fit.pieces] == [3, 1]
    assert fit.pieces[1].row == pytest.approx(row, abs=150)
    delay = action_delay(scene_of(_changing(3, 1, row)), fit)
    assert delay is not None and (delay.low, delay.high, delay.noise) == (1, 3, 0.0)
    times = fit_timeline(match()).inputs
    lag = np.where(np.arange(len(times)) < row, 3.0, 1.0)
    rows = slice(row - 30, row + 60)
    assert len(set(match().segment[rows].tolist())) == 1
    given = Drive(_changing(3, 1, row), 0, times, lag).during(row, times[rows])
    np.testing.assert_array_equal(given[:, :5], match().state.car_controls[rows, 0, :5])


def test_a_real_flight_has_a_lag_that_changes() -> None:
    recording = open_recording(real("car/aerial_120hz.txt"), COLUMNS / "lobot-car.toml")
    fit = lag_of(recording, 120)
    assert [piece.ticks for piece in fit.pieces] == [2, 1] and fit.sure > 0.9
    assert fit.pieces[1].seconds == pytest.approx(54.17, abs=1.0)


@pytest.mark.slow
@pytest.mark.xfail(strict=True, reason="windows of 2018 are beyond their bounds so far")
def test_a_real_flight_is_late_and_shows_no_gap_of_physics() -> None:
    found = compare_recordings(open_recording(real("car/aerial_120hz.txt"), COLUMNS / "lobot-car.toml"))
    assert found.input_latency_ticks == 2 and not claimed(found) and not found.untried
    (gap,) = [one for one in found.gaps if one.name == "input latency"]
    assert "act 2 ticks late, 1 from 54.2 s on" in gap.text


@pytest.mark.slow
@pytest.mark.xfail(strict=True, reason="a bounce is beyond its bounds so far")
def test_free_balls_differ_by_their_clock_and_by_nothing_else() -> None:
    files = sorted(real("ball/episode_000000.csv").parent.glob("*.csv"))
    found = compare_recordings(
        *(open_recording(one, COLUMNS / "lobot-ball.toml") for one in files), windows=24
    )
    assert found.clock_scale == pytest.approx(1.0022, abs=1e-4)
    assert {gap.name for gap in found.gaps} == {"clock"} and found.agrees


@pytest.mark.usefixtures("short_countdowns")
@pytest.mark.parametrize("latency", [4, pytest.param(16, marks=pytest.mark.slow)])
def test_a_match_tells_how_late_its_inputs_act(latency: int, tmp_path: Path) -> None:
    file = record(tmp_path / "match.mcap", "--latency", str(latency), seconds=3)
    found = action_delay(scene_of(read_match(file, shadow=False)), LagFit(0, 0.0, 0, {}))
    assert found is not None and found.inputs > 30
    assert found == ActionDelay(latency, latency, 0.0, latency, found.inputs)
