"""One window beyond its bounds suffices, in each file by itself: other files hide nothing and add nothing."""

from functools import cache

import numpy as np
import pytest

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.comparison_result import Comparison
from rlgym_bridge.compare.tracks import BALL
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.state import MatchState
from tests.support.compared import judged, named, pushed, scenes_of
from tests.support.fault_matches import clean, plant
from tests.support.fault_scenes import Form, Push
from tests.support.real_data import COLUMNS, REAL_DATA, real
from tests.support.simulators import needs_native

pytestmark = needs_native

_ALONE = Form(table=True, cars=1)
_WINDOWS = 12
_CAPTURES = ("wall_ride", "half_flip", "probe_powerslide", "landing")


def kick_once(match: int, tick: int, speed: float) -> Push:
    """Return a push that kicks the ball of one match once, sideways."""
    ticks = iter(range(1 << 20))

    def push(before: MatchState, after: MatchState) -> None:
        if next(ticks) == tick:
            after.ball_linear_velocity[match, 0] += speed

    return push


@pytest.mark.parametrize("digits", [pytest.param("exact", marks=pytest.mark.slow), "6 digits"])
def test_one_kick_in_a_clean_recording_is_found(digits: str) -> None:
    form = Form(table=True, cars=1, digits=digits)
    plain, kicked = (judged(pushed("kick", kick_once(3, 200, speed), 2, form), 60) for speed in (0.0, 8.0))
    assert not plain.beyond.any()
    found = np.flatnonzero(kicked.beyond)
    assert 1 <= len(found) <= 4
    segments = {kicked.windows[one].scene.recording.segment[kicked.windows[one].row] for one in found}
    assert segments == {3} and {kicked.windows[one].bodies for one in found} == {(BALL,)}


def test_a_single_window_beyond_its_bounds_is_in_the_report() -> None:
    recording = pushed("kick", kick_once(3, 200, 30.0), 2, _ALONE)
    found = compare_recordings(recording, windows=60)
    assert not found.agrees and found.untried and not found.causes
    assert found.untried[0].windows <= 4 and all(
        name.startswith("ball") for name in found.untried[0].situations
    )
    assert sum(row.beyond for row in found.situations if row.name.startswith("car")) == 0


@cache
def small(source: str) -> Recording:
    """Return a planted or clean table of three scenes."""
    kind, _, seed = source.partition(" seed ")
    made = clean(int(seed), _ALONE) if kind == "clean" else plant(int(seed), kind, _ALONE)
    return named(scenes_of(made.recording, 0, 3), source)


PLANTED = (
    "gravity seed 4", "mirrored axis seed 5", "wind on the ball seed 7", "gain seed 4", "clean seed 2",
    "clean seed 3",
)  # fmt: skip


@cache
def capture(name: str) -> Recording:
    return open_recording(real(f"game-2026/{name}.csv"), COLUMNS / "capture.toml")


def gaps_of(found: Comparison, source: str) -> set[str]:
    """Return what a report says of a file."""
    told = {f"{cause.name} {cause.value:.6f}" for cause in found.causes if cause.source == source}
    told |= {gap.text for gap in found.gaps if gap.source == source}
    told |= {f"untried {one}" for one in found.untried if one.source == source}
    return told | {str(row) for row in found.situations if row.source == source and row.beyond}


@cache
def alone(source: str, simulator: str = "rocketsim3") -> Comparison:
    recording = small(source) if " seed " in source else capture(source)
    return compare_recordings(recording, windows=_WINDOWS, simulator=simulator)


def shown_alone(source: str, simulator: str) -> tuple[set[str], list[str]]:
    found = alone(source, simulator)
    return gaps_of(found, found.fits[0].source), [str(row) for row in found.situations]


def check_subsets(sources: tuple[str, ...], simulator: str, sets: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(sets):
        chosen = random.permutation(sources)[: int(random.integers(2, 5))].tolist()
        recordings = [small(one) if " seed " in one else capture(one) for one in chosen]
        found = compare_recordings(*recordings, windows=_WINDOWS, simulator=simulator)
        assert not found.refused
        for one, recording in zip(chosen, recordings, strict=True):
            gaps, rows = shown_alone(one, simulator)
            assert gaps <= gaps_of(found, recording.source), (one, chosen)
            assert rows == [str(row) for row in found.situations if row.source == recording.source]
        assert found.agrees == all(not shown_alone(one, simulator)[0] for one in chosen)


@pytest.mark.slow
def test_a_gap_of_one_file_is_in_the_report_of_every_set() -> None:
    assert shown_alone("gravity seed 4", "rocketsim3")[0] and not shown_alone("clean seed 2", "rocketsim3")[0]
    check_subsets((PLANTED[0], PLANTED[4]), "rocketsim3", 1, 1)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("simulator", ["rocketsim3", "rocketsim2"])
def test_no_subset_of_ten_files_hides_a_gap(simulator: str) -> None:
    there = tuple(one for one in _CAPTURES if (REAL_DATA / f"game-2026/{one}.csv").is_file())
    check_subsets(there + PLANTED, simulator, 8, 2)


def test_a_file_that_is_refused_leaves_the_others_as_they_are() -> None:
    short = named(scenes_of(small("clean seed 3"), 0, 0), "short")
    found = compare_recordings(small("clean seed 2"), short, windows=_WINDOWS)
    assert [one.source for one in found.refused] == ["short"] and found.agrees
    assert [str(row) for row in found.situations] == [str(row) for row in alone("clean seed 2").situations]


def test_a_recording_that_is_given_twice_counts_once() -> None:
    found = compare_recordings(small("clean seed 2"), small("clean seed 2"), windows=_WINDOWS)
    assert len(found.fits) == 1 and "was given twice" in found.refused[0].reason


def test_no_gap_says_how_small_a_gap_would_have_shown() -> None:
    said = str(alone("clean seed 2").as_json()["explanation"])
    assert said.startswith("No gap was found. ")
    assert "would have shown" in said and "uu of the ball" in said and "uu of a car" in said
