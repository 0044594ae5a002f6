"""The first sentences of a comparison say what differs, what was measured, and who recorded it."""

from dataclasses import replace

import pytest

from rlgym_bridge.compare.comparison_result import (
    GapVerdict,
    begin_with,
    row_to_tell,
    said_once,
    sources_to_show,
    told_fit,
    told_untried,
)
from rlgym_bridge.compare.input_lag import LagFit
from tests.support.made_comparisons import cause, comparison, fit, gap, row, untried


def test_no_gap_says_how_small_a_gap_would_have_shown() -> None:
    rows = (
        row("car on a wall", 60, 0.01),
        row("car on a wall", 120, 0.012),
        row("ball in the air", 120, 0.001),
    )
    assert begin_with(comparison(*rows)) == [
        "No gap was found.",
        "Measured: 61 windows of 61 s together, in 1 recording. A gap of 0.05 uu of the ball after a second "
        "and 0.05 uu of a car after a second would have shown.",
    ]


def test_an_old_simulator_is_a_difference_of_the_physics() -> None:
    found = comparison(row("car on a wall", 120, 9.0, GapVerdict.PHYSICS))
    found.causes = [replace(cause("RocketSim 2.2.1"), kind="physics", phrase="RocketSim 2.2.1")]
    assert begin_with(found)[0] == (
        "Recording and RocketSim 3 differ by the physics, which are those of RocketSim 2.2.1."
    )


def test_an_uncertain_cause_stands_beside_its_likes() -> None:
    found = comparison(row("car on the ground", 120, 9.0, GapVerdict.WRONG))
    found.causes = [cause("gain of steer"), cause("gain of yaw", "yaw inverted")]
    assert begin_with(found)[0] == (
        "Recording and RocketSim 3 differ by gain of steer 1.20; one of these, which it does not tell apart: "
        "gain of yaw 1.20 or yaw inverted."
    )


def test_what_nothing_explains_is_said_to_be_untried() -> None:
    found = comparison(row("car on a wall", 60, 3.5, GapVerdict.UNTRIED))
    found.untried = [untried("car on a wall")]
    assert begin_with(found)[0] == (
        "Recording and RocketSim 3 differ by something that is not tried here (car on a wall)."
    )
    assert not found.agrees
    assert "9 windows of a.csv (car on a wall) stay beyond their bounds, up to 3.50 uu after 60 ticks" in (
        told_untried(found.untried[0])
    )
    assert "would have shown" not in found.explanation


def test_gaps_of_timing_alone_are_no_gap_of_physics() -> None:
    found = comparison(row("car in the air", 120, 0.0), gaps=(gap("input latency", GapVerdict.TIMING),))
    assert begin_with(found)[0] == ("No gap of physics was found; the recorded time differs: late inputs.")
    assert found.agrees


def test_a_match_of_the_match_server_is_said_to_be_rocketsim() -> None:
    found = comparison(row("car in the air", 120, 0.0))
    assert "match server" not in found.explanation
    found.fits[0] = replace(found.fits[0], own=True)
    assert begin_with(found)[-1] == (
        "The recording is of the match server, which plays in RocketSim: nothing here measures Rocket League."
    )
    found.fits.append(fit(source="b.csv"))
    assert begin_with(found)[-1].startswith("a.csv is of the match server, which plays in RocketSim")


@pytest.mark.parametrize(
    ("scale", "said"),
    [(1.0, "its clock is right to 0.002 %"), (1.0022, "its clock runs 0.22 % slow (± 0.002 %)")],
)
def test_a_clock_is_told_in_percent(scale: float, said: str) -> None:
    assert told_fit(fit(clock=scale)).startswith(said)


def test_a_lag_is_told_with_its_certainty() -> None:
    lag = LagFit(2, 0.7, 44, {2: 1.0})
    assert "inputs act 2 ticks late, which is not sure (in 70 % of resampled sets of 44 windows)" in told_fit(
        fit(lag=lag)
    )
    assert "inputs" not in told_fit(fit())


def test_a_situation_is_told_where_most_windows_are_beyond() -> None:
    every = {ticks: row("x", ticks, 1.0) for ticks in (1, 60, 120, 240)}
    assert row_to_tell(every).horizon_ticks == 120
    every[60] = replace(every[60], beyond=3)
    every[240] = replace(every[240], beyond=2)
    assert row_to_tell(every).horizon_ticks == 60


def test_of_many_recordings_those_that_differ_are_shown() -> None:
    found = comparison()
    names = ["a.csv", "b.csv", "c.csv", "d.csv"]
    found.fits = [fit(source=name) for name in names]
    assert sources_to_show(found) == names
    found.fits.append(fit(source="e.csv"))
    found.gaps = [gap("clock", GapVerdict.TIMING, source="b.csv")]
    found.untried = [untried("car on a wall", source="e.csv")]
    assert sources_to_show(found) == ["b.csv", "e.csv"]


def test_what_many_recordings_have_alike_is_said_once() -> None:
    names = [f"{letter}.csv" for letter in "abcde"]
    clocks = [f"the clock of {name} runs 0.2{place} % slow" for place, name in enumerate(names)]
    notes = ["c.csv does not hold how the ball spins", "of car 0 in b.csv", "of car 1 in b.csv"]
    assert said_once([*clocks, *notes], names) == [
        "the clock of a.csv runs 0.20 % slow (and 4 other recordings alike)", *notes,
    ]  # fmt: skip
    assert said_once(clocks[:4], names[:4]) == clocks[:4]
