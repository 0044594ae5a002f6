"""Find out which of the game's rules a recording shows: by digits, by the ball's flights, by its cars."""

from collections.abc import Sequence
from typing import Final

from rlgym_bridge.compare.findings.car_rules import CAR_RULES, Window, judge_car_rules
from rlgym_bridge.compare.findings.flight_rules import judge_flights
from rlgym_bridge.compare.findings.rule_tests import CUT_LEVEL, RulesFit, RuleTest, Shown
from rlgym_bridge.compare.findings.significance import binomial_tail
from rlgym_bridge.compare.findings.velocity_digits import CHANCE, Digits, read_digits
from rlgym_bridge.compare.fit.input_lag import LagFit, fit_lag
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.recording.recording import TimeBase
from rlgym_bridge.sim.game_rules import parse_rules

_MOSTLY: Final = 0.5  # share of components that end as the cut has it
_SELDOM: Final = 0.25  # share below which there is no cut, where enough components are known
_ENOUGH: Final = 40  # components, so that a share of a half is told from chance


AUTO: Final = "auto"
"""Asks for the rules that the recording shows."""


def fit_rules(
    scene: TimedRecording,
    windows: int,
    given: frozenset[str] | None = None,
    car_windows: Sequence[Window] | None = None,
) -> tuple[LagFit, RulesFit]:
    """Fit the input latency and the rules of a recording together, and put both into the scene.

    Args:
        scene: The recording, with its times.
        windows: Of each car, to fit the lag.
        given: Rules to use; None for those that it has written down, else for those that it shows.
        car_windows: Windows to test the rules for cars in, see `judge_car_rules`; None to choose some.
    """
    found = RulesFit(given, True) if given is not None else _recorded_rules(scene) or _find_ball_rules(scene)
    scene.rules = found.rules
    lag = fit_lag(scene, windows)
    scene.lag = lag.of_rows(len(scene.recording.tick))
    if not found.given and not found.recorded:
        lag = _find_car_rules(scene, found, lag, car_windows)
    return lag, found


def _recorded_rules(scene: TimedRecording) -> RulesFit | None:
    """Return the rules that a recording has written down, if they are known."""
    if not scene.recording.rules:
        return None
    try:
        return RulesFit(parse_rules(scene.recording.rules), recorded=True)
    except ValueError:  # of a later version: it is tested as all others
        return None


def _find_ball_rules(scene: TimedRecording) -> RulesFit:
    """Tell whether velocities are cut and positions rounded."""
    tests = _by_digits(read_digits(scene.recording)) or judge_flights(scene)
    found = RulesFit(tests=tests)
    if found.of("velocity_cut") is Shown.SHOWN:  # what is not told is used beside it
        found.rules = frozenset(test.rule for test in tests if test.shown is not Shown.ABSENT)
    return found


def _find_car_rules(
    scene: TimedRecording, found: RulesFit, lag: LagFit, windows: Sequence[Window] | None
) -> LagFit:
    """Tell which rules for cars a recording shows, and put them into the scene; return the lag with them.

    What is not told is used beside a cut of velocities, by which the game since 2018 is known. In replays,
    whose inputs are known of some ticks alone, it is left out.
    """
    if not scene.driven:
        return lag
    sparse = scene.recording.clock is TimeBase.FRAMES
    if sparse:
        note = "a replay holds the inputs of some ticks only"
        found.tests += [RuleTest(rule, Shown.UNTOLD, note) for rule in CAR_RULES]
        return lag
    tests, shown, later = judge_car_rules(scene, lag, windows)
    found.tests += tests
    found.rules |= shown
    if found.of("velocity_cut") is Shown.SHOWN:
        found.rules |= {rule for rule in CAR_RULES if found.of(rule) is Shown.UNTOLD}
    if "wheels" in found.rules:
        found.rules |= {"bump"}  # bumps are too few to be tested; those of the game go with its wheels
    scene.rules = found.rules
    return later


def _by_digits(digits: Digits) -> list[RuleTest]:
    """Return what the digits of velocities and positions say; nothing where they were rounded off."""
    if digits.coarse or not digits.velocities:
        return []
    share = digits.cut / digits.velocities
    chance = binomial_tail(digits.cut, digits.velocities, CHANCE)
    text = (
        f"{share:.0%} of {digits.velocities:,} components of velocity have the last digit that the game's "
        f"cut leaves; by chance up to {CHANCE:.0%} have it"
    )
    if share > _MOSTLY and chance < CUT_LEVEL:
        shown = Shown.SHOWN
    elif share < _SELDOM and digits.velocities >= _ENOUGH:
        shown = Shown.ABSENT
    else:
        return []
    places = (
        f"{digits.rounded / max(1, digits.positions):.0%} of {digits.positions:,} coordinates are whole "
        "hundredths of a uu"
    )
    rounded = Shown.ABSENT
    if shown is Shown.SHOWN and digits.rounded > _MOSTLY * digits.positions:
        rounded = Shown.SHOWN
    elif digits.rounded > _MOSTLY * digits.positions:
        rounded, places = Shown.UNTOLD, f"{places}, but velocities are not cut: they may be printed so"
    return [RuleTest("velocity_cut", shown, text), RuleTest("position_rounding", rounded, places)]
