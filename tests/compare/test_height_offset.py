"""Heights that are off by a constant are named with their size, taken out, and not looked for elsewhere."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.findings.comparison_result import Comparison
from rlgym_bridge.compare.findings.height_offset import HeightOffset, fit_heights
from rlgym_bridge.compare.findings.sentences import begin_with
from rlgym_bridge.compare.findings.verdict import GapVerdict
from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.motion_check import check_motion
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.output.report import report
from rlgym_bridge.recording.recording import Recording
from tests.support.capture_files import read_capture
from tests.support.planted_gaps import as_replay, as_table, draggier, heavier, play, timed
from tests.support.real_data import real
from tests.support.short_captures import capture


def raised(recording: Recording, ball: float, cars: float) -> Recording:
    state = recording.state.copy()
    state.ball_position[:, 2] += ball
    state.car_position[..., 2] += cars
    return replace(recording, state=state)


def heights(recording: Recording) -> dict[int, HeightOffset]:
    found = fit_heights(TimedRecording(recording, fit_timeline(recording)))
    return {one.car: one for one in found}


@cache
def table() -> Recording:
    return timed(as_table(play(2, 40.0)), 0.002, 60)


@cache
def compared() -> Comparison:
    return compare_recordings(raised(capture(), 10.0, 10.0), windows=60)


@pytest.mark.parametrize(("ball", "cars"), [(10.0, 10.0), (0.0, 3.0), (2.0, 0.0), (-17.0, -17.0)])
def test_offsets_come_out_with_their_size(ball: float, cars: float) -> None:
    found = heights(raised(table(), ball, cars))
    for body, size in ((-1, ball), (0, cars), (1, cars)):
        assert (body in found) is (size != 0)
        assert not size or found[body].size == pytest.approx(size, abs=0.02)
        assert not size or found[body].low < size < found[body].high


@pytest.mark.parametrize("mutate", [None, heavier, draggier])
def test_other_faults_are_no_offset(mutate: object) -> None:
    assert not heights(as_table(play(3, 24.0, mutate)))  # type: ignore[arg-type]


def test_heights_of_a_replay_are_its_own() -> None:
    assert not heights(raised(as_replay(play(2, 40.0)), 10.0, 10.0))


def test_verdict_and_first_sentence_name_the_offset() -> None:
    found = compared()
    gaps = [gap for gap in found.gaps if gap.kind is GapVerdict.OFFSET]
    assert [gap.name for gap in gaps] == ["offset in height of car 0"]
    assert gaps[0].size == pytest.approx(10.0, abs=0.02) and "lower `add` at its height" in gaps[0].text
    assert not found.agrees and found.as_json()["fits"][0]["heights"][0]["car"] == 0
    assert begin_with(found)[0] == (
        "Recording and RocketSim differ by an offset in height (car 0 is 10.0 uu too high in the recording)."
    )
    assert "offset in height" in report(found)


def test_all_else_is_measured_with_the_heights_corrected() -> None:
    cars = {row.horizon_ticks: row for row in compared().situations if row.name == "car on the ground"}
    assert cars[30].p50 < 0.05 and cars[30].verdict is GapVerdict.AGREES
    assert "With the heights corrected, RocketSim" in " ".join(begin_with(compared()))


def test_a_higher_hitbox_is_named_beside_a_small_offset() -> None:
    assert HeightOffset(0, 1.64, 1.6, 1.7, 1.0, 9, 9).may_be_hitbox
    assert not HeightOffset(-1, 1.64, 1.6, 1.7, 1.0, 9, 9).may_be_hitbox
    assert not HeightOffset(0, 10.0, 9.9, 10.1, 1.0, 9, 9).may_be_hitbox


def test_captures_of_the_game_have_no_offset_until_raised(tmp_path: Path) -> None:
    recording = read_capture(real("game-2026/throttle-jump.csv"), tmp_path)
    assert not heights(recording)
    found = heights(raised(recording, 10.0, 10.0))
    assert sorted(found) == [-1, 0] and all(abs(one.size - 10) < 0.06 for one in found.values())


def test_an_offset_along_the_floor_shows_nowhere() -> None:
    recording = table()
    state = recording.state.copy()
    state.car_position[..., :2] += (25.0, 40.0)
    state.ball_position[..., :2] += (25.0, 40.0)
    moved = replace(recording, state=state)
    assert not heights(moved) and np.ptp(state.car_position[..., 2]) > 0


def test_a_ball_at_height_0_is_refused_with_advice() -> None:
    lying = raised(timed(as_table(play(2, 40.0))), 0.0, 0.0)
    lying.state.ball_position[:, 2] = 0.0
    with pytest.raises(ValueError, match=r"the ball is at .* it needs add = 93\.15 in the map"):
        check_motion(lying, fit_timeline(lying))


def test_velocities_in_km_an_hour_are_refused_for_slow_cars() -> None:
    recording = as_table(capture())
    recording.state.car_linear_velocity[:] *= 0.036
    with pytest.raises(ValueError, match="car 0 moves otherwise than its velocity says, by 96 %"):
        check_motion(recording, fit_timeline(recording))
