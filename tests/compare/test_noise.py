"""Find out what a file leaves open: its digits, its noise, its sticks, and what happens between its rows."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rlgym_bridge.compare.comparison import note_recording
from rlgym_bridge.compare.noise import Draw, rounding
from rlgym_bridge.compare.tracks import BALL, POSITION, ROTATION, VELOCITY
from rlgym_bridge.compare.windows import BALL_BOUNCED, HORIZONS
from rlgym_bridge.recording.recording import Inputs, Recording
from tests.support.compared import judged, noise_of, scene_of, scenes_of, windows_of
from tests.support.fault_matches import clean, plant
from tests.support.fault_scenes import Form
from tests.support.simulators import needs_native

pytestmark = needs_native


@cache
def table(**form: object) -> Recording:
    return clean(2, Form(table=True, **form)).recording  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("digits", "half"),
    [("2 decimals", 0.005), ("6 digits", 0.005), ("whole", 0.5), ("tenths", 0.05), ("exact", 0.0)],
)
def test_the_last_digit_of_a_file_is_found(digits: str, half: float) -> None:
    known = digits in ("2 decimals", "6 digits", "exact")
    recording = table(digits=digits) if known else table()
    if not known:
        recording = replace(recording, state=recording.state.copy())
        for part in (recording.state.ball_position, recording.state.car_position):
            part[:] = part.round(0 if digits == "whole" else 1)
    bodies = noise_of(recording).bodies
    for noise in (bodies[0], bodies[BALL]):
        assert noise.rounding["position"] == pytest.approx(half, abs=0.001)
        assert noise.deviation["position"] == pytest.approx(0, abs=0.001)


def test_numbers_of_any_size_have_their_digits() -> None:
    random = np.random.default_rng(0).uniform(-2000, 2000, 4000)
    assert rounding(random.round(3)) == pytest.approx(0.0005)
    assert rounding(np.array([float(f"{one:.5g}") for one in random])) == pytest.approx(0.05)
    assert rounding(random.astype(np.float32)) < 1e-4
    assert rounding(np.zeros(9)) == 0.0 and rounding(np.zeros(0)) == 0.0
    assert rounding(np.array([np.nan, 1.25, np.inf, -7.75])) == pytest.approx(0.005)


@pytest.mark.parametrize("digits", ["exact", "6 digits", "2 decimals"])
def test_gaussian_noise_is_measured_within_a_fifth(digits: str) -> None:
    noise = noise_of(table(digits=digits, noisy=True))
    for body in (0, 1, BALL):
        assert noise.bodies[body].of("position") == pytest.approx(0.02, rel=0.2)
        assert noise.bodies[body].of("velocity") == pytest.approx(0.1, rel=0.2)


def test_noise_does_not_come_from_what_a_simulation_gets_wrong() -> None:
    windy = noise_of(plant(2, "wind on the ball", Form(table=True)).recording)
    jumpy = noise_of(plant(2, "second jump", Form(table=True)).recording)
    assert windy.bodies[BALL].of("velocity") < 0.001 and jumpy.bodies[0].of("velocity") < 0.001


@pytest.mark.parametrize("steps", [0, 100, 128, 10])
def test_sticks_of_few_steps_are_told_from_exact_ones(steps: int) -> None:
    half = 0.5 / steps if steps else 0.0
    assert noise_of(table(sticks=steps)).sticks == pytest.approx({0: half, 1: half})


@pytest.mark.parametrize(("kind", "ticks"), [("inputs held", 2), ("inputs held for 3", 3)])
def test_inputs_that_a_recorder_holds_are_found(kind: str, ticks: int) -> None:
    noise = noise_of(plant(2, kind, Form(table=True)).recording)
    assert (noise.held, noise.slack) == (ticks, 0)
    assert noise_of(table()).held == 1


@pytest.mark.parametrize(("rate", "slack"), [(120, 0), (60, 1), (40, 2), (30, 3)])
def test_inputs_between_rows_are_open(rate: int, slack: int) -> None:
    noise = noise_of(table(rate=rate))
    assert noise.slack == slack
    assert (f"inputs up to {slack} tick" in noise.describe()) == (slack > 0)


def test_draws_stay_within_what_is_open() -> None:
    recording = table(digits="2 decimals", sticks=100, rate=30)
    scene, noise = scene_of(recording), noise_of(recording)
    window = windows_of(recording, 4)[0]
    values = window.track.values[:8]
    drawn = np.stack([Draw(noise, seed).states(values, window.bodies) for seed in range(40)]) - values
    for part in (POSITION, VELOCITY):
        assert 0.9 * 0.005 < np.abs(drawn[..., part]).max() <= 0.005
    rows = np.tile([0.5, -0.25, 1.0, -1.0, 0.0, 1, 0, 1], (30, 1))
    given = np.stack([Draw(noise, seed).controls(rows, 0) for seed in range(40)])
    assert 0.003 < np.abs(given[..., :2] - rows[:, :2]).max() <= 0.005
    np.testing.assert_array_equal(given[..., 2:], np.broadcast_to(rows[:, 2:], given[..., 2:].shape))
    assert (np.ptp(given, axis=1) == 0).all()  # a value that is held was one number in the game
    drive = scene.drive(0)
    assert drive is not None
    ends = scene.timeline.inputs[40:60]
    early = Draw(noise, 1).drive(drive, 0).during(40, ends)
    ahead, now, behind = (drive.during(40, ends + shift) for shift in (4, 0, -4))
    assert ((early == now) | (early == ahead) | (early == behind)).all()


def test_equal_seeds_draw_equally() -> None:
    noise = noise_of(table(digits="2 decimals"))
    values = np.ones((3, 1, 18))
    one, two, other = (Draw(noise, seed).states(values, (0,)) for seed in (1, 1, 2))
    assert (one == two).all() and (one != other).any()


def test_controls_change_apart_from_each_other_between_rows() -> None:
    recording = table(rate=30, held=False)
    scene, noise = scene_of(recording), noise_of(recording)
    drive = scene.drive(0)
    assert drive is not None
    ends = scene.timeline.inputs[40] + np.arange(1, 200)
    now, ahead, behind = (drive.during(40, ends + shift) for shift in (0, 3, -2))
    drawn = np.stack([Draw(noise, seed).drive(drive, 0).during(40, ends) for seed in range(12)])
    assert ((drawn == now) | (drawn == ahead) | (drawn == behind)).all()
    sticks = now[:, :5] != ahead[:, :5]
    early = (drawn[..., :5] == ahead[:, :5]) & sticks
    assert (early.any(2) & ~(early | ~sticks).all(2)).any()  # one stick has changed and another has not yet


def test_a_handbrake_pulled_before_a_table_begins_is_open() -> None:
    found = judged(scenes_of(clean(2414).recording, 4, 5), 240)  # it begins with a slide
    assert len(found.windows) > 10 and not found.beyond.any()
    scene = found.windows[0].scene
    least, most = scene.handbrakes[1].T
    assert (least[0], most[0]) == (0, 1) and (least <= most).all()
    assert (least == most)[21:].all()  # 12 ticks until it is let go, and 60 until it is up
    drawn = [Draw(noise_of(scene.recording), seed).handbrake(0.25, 0.75, 1) for seed in range(40)]
    assert 0.25 <= min(drawn) < 0.35 and 0.65 < max(drawn) <= 0.75
    for without in (table(), replace(table(), inputs=Inputs.NONE, inputs_recorded=np.zeros((2, 8), bool))):
        scene = scene_of(without)
        late = scene.timeline.inputs - scene.timeline.inputs[0] > 84
        assert np.ptp(scene.handbrakes[0], axis=1)[late & (without.segment == 0)].max() == 0


def test_a_ball_whose_spin_is_not_recorded_bounces_as_openly() -> None:
    known = clean(2, Form(table=True, cars=1)).recording
    state = known.state.copy()
    state.ball_angular_velocity[:] = 0
    unknown = replace(known, state=state)
    bounds = []
    for recording in (known, unknown):
        found = judged(ball_alone(recording), 40)
        assert not found.beyond.any()
        bounced = (found.names == BALL_BOUNCED) & (found.horizons == HORIZONS.index(60))
        bounds.append(float(np.median(found.bounds[bounced][:, 0])))
    assert bounds[1] > 10 * bounds[0]
    assert any("does not hold how the ball spins" in one for one in note_recording(scene_of(unknown)))


def ball_alone(recording: Recording) -> Recording:
    """Return a recording of the ball alone."""
    return replace(recording, inputs=Inputs.NONE, inputs_recorded=np.zeros((1, 8), bool))


def test_how_a_ball_lies_is_open_where_a_file_does_not_say() -> None:
    noise = noise_of(table())
    values = np.zeros((3, 1, 18))
    values[..., ROTATION] = np.eye(3).ravel()
    turns = [Draw(noise, seed).states(values, (BALL,))[0, 0, ROTATION].reshape(3, 3) for seed in range(9)]
    for turn in turns:
        np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-6)
        assert np.linalg.det(turn) == pytest.approx(1)
    assert np.ptp([turn[0, 0] for turn in turns]) > 0.5
    known = values.copy()
    known[..., ROTATION] = np.diag([1.0, -1.0, -1.0]).ravel()
    kept = Draw(noise, 1).states(known, (BALL,))[0, 0, ROTATION].reshape(3, 3)
    assert kept[1, 1] == pytest.approx(-1, abs=1e-3)
