"""Windows are simulated as they were recorded, whatever else is in their batch; alterations act together."""

from functools import cache

import numpy as np
import pytest

from rlgym_bridge.compare.alterations import TIME, Alteration, catalogue, factors_of, time_scale
from rlgym_bridge.compare.detection import sizes_of
from rlgym_bridge.compare.noise import Draw
from rlgym_bridge.compare.tracks import BALL, POSITION, ROTATION
from rlgym_bridge.compare.window_simulation import recorded, residuals, simulate
from rlgym_bridge.compare.windows import BALL_AIR, CAR_WALL, SITUATIONS, Window
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.simulator import ROCKETSIM2
from tests.support.compared import bench, judged, noise_of, scene_of, windows_of
from tests.support.fault_matches import clean
from tests.support.fault_scenes import Form
from tests.support.simulators import needs_native

pytestmark = needs_native


@cache
def match() -> Recording:
    return clean(2, Form()).recording


@cache
def some() -> list[Window]:
    return windows_of(match(), 24)


def named(name: str, car: int | None = None) -> Alteration:
    every = catalogue(scene_of(match()))
    return next(one for one in every if one.name == name and (car is None or one.car == car))


def ends(*applied: tuple[Alteration, float]) -> np.ndarray:
    return simulate(some(), applied, bench=bench()).values


@pytest.mark.parametrize(
    "form",
    [
        Form(),
        pytest.param(Form(table=True), marks=pytest.mark.slow),
        pytest.param(Form(table=True, rate=60, digits="6 digits"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_match_of_ours_replays_within_its_bounds(form: Form) -> None:
    found = judged(clean(2, form).recording, 50)
    assert len(found.windows) > 100 and not found.beyond.any()
    known = {name for name in found.names.ravel().tolist() if name}
    assert known <= set(SITUATIONS) and len(known) >= 8
    assert np.isnan(found.off[found.names == ""]).all()
    for number, end, place in np.argwhere(found.names == CAR_WALL).tolist():
        window = found.windows[number]
        path = window.track.values[window.start : window.ends[end] + 1, place]
        flat = (path[:, ROTATION][:, 8] > 0.99).all()
        assert not (flat and (np.abs(path[:, :2]) < 2500).all()), window  # a jump that has just begun


def test_a_match_of_ours_replays_to_the_digit() -> None:
    found = judged(match(), 60)
    flying = found.sizes[found.names == BALL_AIR]
    assert len(flying) > 50 and np.percentile(flying[:, 0], 95) < 0.03


def test_results_depend_neither_on_the_batch_nor_on_the_order() -> None:
    whole = simulate(some(), bench=bench())
    back = simulate(some()[::-1], bench=bench())
    np.testing.assert_array_equal(whole.values, back.values[::-1])
    for number in (0, len(some()) // 2, len(some()) - 1):
        one = simulate([some()[number]], bench=bench())
        count, bodies = len(some()[number].ends), len(some()[number].bodies)
        np.testing.assert_array_equal(whole.values[number, :count, :bodies], one.values[0])
        np.testing.assert_array_equal(whole.wheels[number, :count, :bodies], one.wheels[0])


def test_a_second_run_gives_the_same_to_the_bit() -> None:
    np.testing.assert_array_equal(ends(), ends())


def test_rocketsim2_plays_the_same_windows() -> None:
    windows = [window for window in some() if window.bodies == (BALL,)]
    off = residuals(recorded(windows), simulate(windows, bench=bench(ROCKETSIM2)).values)
    told = np.isfinite(off[..., 0])
    assert (told == np.isfinite(recorded(windows)[..., 0])).all()
    after_a_second = np.linalg.norm(off[:, 4, 0, :3], axis=1)
    assert np.nanmedian(after_a_second) < 2.0  # 2.2.1 keeps digits that RocketSim 3 cuts


def test_factors_of_one_constant_multiply() -> None:
    gravity, drag = named("gravity"), named("ball drag")
    factors, down = factors_of([(gravity, 1.1), (drag, 0.5), (gravity, 2.0), (drag, 3.0)])
    assert down == pytest.approx(2.2) and factors == {"ball_drag": pytest.approx(1.5)}
    assert time_scale([(named("clock"), 0.9), (gravity, 7.0), (named("clock"), 1.1)]) == pytest.approx(0.99)
    np.testing.assert_allclose(
        ends((gravity, 1.1), (gravity, 1 / 1.1))[..., POSITION], ends()[..., POSITION], atol=0.02
    )


@pytest.mark.parametrize(
    "name", ["steer inverted", "pitch and yaw swapped", "inputs of cars 0 and 1 swapped"]
)
def test_what_is_turned_twice_is_as_it_was(name: str) -> None:
    one = named(name)
    assert np.nanmax(np.abs(ends((one, 1.0)) - ends())) > 10
    twice = ends((one, 1.0), (one, 1.0))
    if name.startswith("inputs of cars"):
        pytest.skip("a swap of cars is one lookup: the last one counts")
    np.testing.assert_array_equal(twice, ends())


def test_delays_of_all_inputs_add_up() -> None:
    late = Alteration("input latency", TIME, unit="ticks", lagged=8)
    np.testing.assert_array_equal(ends((late, 1.0), (late, 2.0)), ends((late, 3.0)))
    assert np.nanmax(np.abs(ends((late, 3.0)) - ends())) > 10


def test_an_alteration_of_a_car_leaves_other_bodies() -> None:
    changed, plain = ends((named("gain of throttle", 0), 0.5)), ends()
    for number, window in enumerate(some()):
        same = np.array_equal(changed[number], plain[number], equal_nan=True)
        if 0 not in window.bodies:
            assert same, window
    assert any(
        not np.array_equal(changed[number], plain[number], equal_nan=True)
        for number, window in enumerate(some()) if 0 in window.bodies
    )  # fmt: skip


@pytest.mark.parametrize("degrees", [0.01, 30.0, 120.0, 179.0])
@pytest.mark.parametrize("axis", [(1.0, 0, 0), (0, 0.6, -0.8)])
def test_a_turn_is_told_by_its_axis_and_its_angle(degrees: float, axis: tuple[float, ...]) -> None:
    angle, x, y, z = np.radians(degrees), *axis
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turn = np.eye(3) + np.sin(angle) * skew + (1 - np.cos(angle)) * skew @ skew
    theirs, ours = np.zeros((2, 18))
    theirs[ROTATION], ours[ROTATION] = turn.ravel(), np.eye(3).ravel()
    theirs[:9] = np.arange(9)
    off = residuals(theirs, ours)
    expected = angle if degrees > 90 else np.sin(angle)
    np.testing.assert_allclose(off[6:9], expected * np.array(axis), atol=1e-6)
    np.testing.assert_array_equal(off[[*range(6), 9, 10, 11]], np.arange(9))


def test_bodies_far_away_can_decide_a_contact_and_nothing_else() -> None:
    recording = clean(332).recording  # RocketSim 3 solves all contacts of an arena in one order
    windows = [one for one in windows_of(recording, 240) if one.bodies == (0,) and one.row == 4950]
    noise = noise_of(recording)

    def off(number: int | None) -> np.ndarray:
        draw = None if number is None else Draw(noise, number, 0.0, others=True)
        found = simulate(windows, bench=bench(), draw=draw).values
        return np.asarray(sizes_of(residuals(recorded(windows), found))[0, :, 0, 1])

    alone, there = off(None), np.stack([off(number) for number in range(4)])
    assert alone[:-1].max() < 0.05 and alone[-1] > 30  # uu/s: the last end alone is behind the contact
    assert there[:, :-1].max() < 0.05 and there[:, -1].min() < 0.05
