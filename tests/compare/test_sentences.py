"""The first sentences of a comparison say what differs, what was recorded, and how far RocketSim is off."""

from dataclasses import replace

import numpy as np
import pytest

from rlgym_bridge.compare.findings.block_bootstrap import median_interval
from rlgym_bridge.compare.findings.gaps import Gap
from rlgym_bridge.compare.findings.missing_inputs import Missing
from rlgym_bridge.compare.findings.rule_tests import RulesFit, RuleTest, Shown
from rlgym_bridge.compare.findings.sentences import begin_with, explain_difference, told_fit
from rlgym_bridge.compare.findings.verdict import GapVerdict
from rlgym_bridge.compare.fit.input_lag import LagFit
from rlgym_bridge.compare.output.report import report
from rlgym_bridge.sim.game_rules import DEFAULT, GAME
from tests.support.made_comparisons import comparison, fit, row


def cut(shown: Shown, used: frozenset[str] = frozenset()) -> RulesFit:
    return RulesFit(used, tests=[RuleTest("velocity_cut", shown, "9 of 9")])


def test_a_capture_of_the_game_is_named_with_its_age_and_errors() -> None:
    rows = row("car", 120, 0.012), row("ball", 120, 0.001), row("car on a wall", 1, 0.1, GapVerdict.FEW)
    assert begin_with(comparison(*rows, rules=cut(Shown.SHOWN, GAME))) == [
        "No gap was found.",
        "Velocities are cut every tick, as in recordings of Rocket League since September 2018.",
        "RocketSim with all rules of the game is 0.01 uu off the cars after a second and less than 0.01 uu "
        "off the ball after a second (medians).",
        "Too little to judge: car on a wall, how late inputs act.",
    ]


def test_a_match_of_the_match_server_is_said_to_be_rocketsim() -> None:
    found = comparison(row("car", 120, 0.0))
    assert "match server" not in explain_difference(found)
    found.fits[0].written_rules = "default"
    found.fits[0].rules = RulesFit(DEFAULT, recorded=True)
    assert begin_with(found)[1] == (
        "The recording is of the match server, which plays in RocketSim: nothing here measures Rocket League."
    )
    found.fits[0].rules = RulesFit(GAME, given=True)
    assert begin_with(found)[1].endswith(
        "a.csv was played by RocketSim with the default rules of matches (thrust), and is simulated by "
        "RocketSim with all rules of the game, as asked for."
    )
    found.fits.append(fit())
    assert begin_with(found)[1].startswith("a.csv is of the match server, which plays in RocketSim")


def test_cars_that_differ_beside_a_gap_of_the_ball_are_said_to() -> None:
    drag = Gap(GapVerdict.PHYSICS, "ball drag", 2, 1, 3, "%", "ball drag +2 %")
    cars = row("car", 120, 9.0, GapVerdict.PHYSICS), row("car on the ground", 120, 9.0, GapVerdict.PHYSICS)
    assert begin_with(comparison(*cars, gaps=(drag,)))[1] == (
        "Cars differ as well (car on the ground); nothing that was tried explains it."
    )
    assert "as well" not in explain_difference(comparison(row("car", 120, 0.0), gaps=(drag,)))
    gravity = replace(drag, name="gravity")
    assert "as well" not in explain_difference(comparison(*cars, gaps=(drag, gravity)))
    boost = replace(drag, name="boost")
    ball = row("ball in the air", 120, 9.0, GapVerdict.PHYSICS)
    assert begin_with(comparison(*cars, ball, gaps=(boost,)))[1].startswith(
        "The ball differs as well (ball in"
    )


def test_a_median_does_not_hide_a_tail_that_is_far_off() -> None:
    late = replace(row("car after a jump", 120, 0.0), p90=3.86, floor_p90=0.95, tolerance=0.01)
    assert (
        "One window in ten is further off: more than 3.86 uu for car after a jump (61 windows; RocketSim "
        "against itself: 0.95)."
    ) in begin_with(comparison(row("car", 120, 0.0), late))
    usual = replace(late, p90=20.0, tolerance=8.0)
    assert "One window" not in explain_difference(comparison(row("car", 120, 0.0), usual))


def test_what_has_no_cut_is_not_called_the_game_of_today() -> None:
    said = explain_difference(comparison(row("ball", 60, 0.3), rules=cut(Shown.ABSENT)))
    assert "not cut" in said and "since September" not in said
    assert "RocketSim alone is 0.30 uu off the ball after 60 ticks (0.5 s)" in said
    assert "cut" not in explain_difference(comparison(row("ball", 60, 0.3), rules=cut(Shown.UNTOLD)))


def test_cars_that_are_off_where_inputs_lack_are_no_gap() -> None:
    found = comparison(*(row(name, 60, 9.0, GapVerdict.MISSING) for name in ("car", "car on the ground")))
    found.missing = [Missing(car, "roll", True, 0, 9, 9) for car in (0, 1)]
    first, *_ = begin_with(found)
    assert "uu off" not in explain_difference(found)
    assert first == (
        "No gap was found, but the recording lacks inputs (roll), which may be why cars are off (car on the "
        "ground)."
    )
    found.missing = []
    assert begin_with(found)[0].startswith("Recording and RocketSim differ (car on the ground)")


def test_an_input_that_is_missing_is_named_as_missing() -> None:
    gap = Gap(GapVerdict.MISSING, "roll", 9, 9, 20, "windows", "it explains 9")
    first, *_ = begin_with(comparison(row("car", 120, 9.0), gaps=(gap, gap)))  # of two cars
    assert first == "Recording and RocketSim differ by roll, which is missing."


def test_gaps_of_timing_alone_are_no_gap_of_physics() -> None:
    gap = Gap(GapVerdict.TIMING, "input latency", 2, 2, 2, "ticks", "late")
    assert begin_with(comparison(row("car", 120, 0.0), gaps=(gap,)))[0] == (
        "No gap of physics was found; the recording's time differs: late inputs."
    )


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
    assert "inputs" not in told_fit(replace(fit(), driven=False))


def test_the_page_begins_with_the_sentences() -> None:
    rows = row("car", 120, 0.012), replace(row("car on a wall", 1, 0.75), blocks=2, low=0.81, high=0.81)
    page = report(comparison(*rows, rules=cut(Shown.SHOWN, GAME)))
    assert "<h1>No gap was found.</h1><p>Velocities are cut every tick" in page
    assert "0.81" not in page.split("<script")[0] and "<td>-</td>" in page
    assert "<td>velocity_cut</td><td>shown</td><td>used</td><td>9 of 9</td>" in page


def test_the_interval_of_a_median_holds_it() -> None:
    errors, blocks = np.array([1.0, 3.0]), np.array([0, 0])
    assert median_interval(errors, blocks) == (2.0, 2.0)
