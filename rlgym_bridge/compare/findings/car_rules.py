"""Test which of the game's rules for cars a recording shows, by half a second of driving and flying."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.rule_tests import RULE_LEVEL, RuleTest, Shown, judge_windows
from rlgym_bridge.compare.findings.significance import BLOCK
from rlgym_bridge.compare.fit.input_lag import SURE, LagFit, fit_lag
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.rollout import RolloutArena
from rlgym_bridge.compare.simulate.tracks import BALL, POSITION, TRIAL, Track
from rlgym_bridge.compare.simulate.window_errors import simulate_end
from rlgym_bridge.compare.simulate.windows import spaced, thinned
from rlgym_bridge.recording.recording import Inputs
from rlgym_bridge.sim.game_rules import DEFAULT

CAR_RULES: Final = ("thrust", "wheels", "jump", "dodge")
"""Rules that change a car which touches nothing; each is tested by what is lost without it."""

WINDOW_TICKS: Final = 60
"""Ticks of a window: a tick of lag of the wheels is 3 uu by then."""

_LEAD: Final = 60.0  # ticks followed before
_MOST: Final = 60  # windows of all cars
_LEAST_GAIN_ALONE: Final = float(np.log(4.0))  # of `thrust`: 5 % less boost brings it 3.9 times as near
_LAG_WINDOWS: Final = 60  # of each car, to fit the lag anew
_LATER: Final = (-1, 0, 1, 2)  # ticks by which the lag may be another with the rules

Window = tuple[int, Track, int, int]
"""A car, its track, and the first and the last moment of a window."""


def judge_car_rules(
    scene: TimedRecording, lag: LagFit, windows: Sequence[Window] | None = None
) -> tuple[list[RuleTest], frozenset[str], LagFit]:
    """Test the rules for cars, first all together, then each by leaving it out.

    Wheels that act a tick sooner look like inputs that act a tick sooner. So the lag is fitted anew with the
    rules, unless these make things worse by far.

    Args:
        scene: The recording; its lag is the one of `lag`, and its rules are those of the ball.
        lag: Fitted without rules for cars.
        windows: Windows without contact that do not overlap; None to choose some.

    Returns:
        The tests, the rules for cars to use, and the lag that belongs to them.
    """
    windows = _windows(scene) if windows is None else windows
    if not windows:
        return [], frozenset(), lag
    every = scene.rules | frozenset(CAR_RULES)
    plain, full = _errors(scene, windows, scene.rules), _errors(scene, windows, every)
    first, later = judge_windows("wheels", plain, full, RULE_LEVEL), lag
    if scene.recording.inputs is Inputs.SENT and first.shown is not Shown.SHOWN and lag.windows:
        known, later = scene.lag, _fit_again(scene, every, lag)
        if later.ticks != lag.ticks and later.sure >= SURE:
            scene.lag = later.of_rows(len(scene.recording.tick))
            full = _errors(scene, windows, every)
            first = judge_windows("wheels", plain, full, RULE_LEVEL)
        if first.shown is not Shown.SHOWN:
            scene.lag, later = known, lag
    if first.shown is Shown.ABSENT and not scene.rules:  # RocketSim's own: one by one would cost seconds
        text = f"tested with all rules for cars together: {first.text}"
        tests = [RuleTest(rule, Shown.ABSENT, text) for rule in CAR_RULES if rule not in DEFAULT]
        tests += [_judge_default(scene, windows, plain)]
    elif first.shown is Shown.SHOWN:
        tests = [
            judge_windows(rule, _errors(scene, windows, every - {rule}), full, RULE_LEVEL)
            for rule in CAR_RULES
        ]
    else:
        tests = [
            judge_windows(rule, plain, _errors(scene, windows, scene.rules | {rule}), RULE_LEVEL)
            for rule in CAR_RULES
        ]
    return tests, frozenset(test.rule for test in tests if test.shown is Shown.SHOWN), later


def _judge_default(scene: TimedRecording, windows: Sequence[Window], plain: np.ndarray) -> RuleTest:
    """Test the default rules of matches alone, by which most matches of our own server are played.

    A boost that is weaker looks alike, so windows have to come four times as near.
    """
    (rule,) = DEFAULT
    alone = _errors(scene, windows, scene.rules | DEFAULT)
    return judge_windows(rule, plain, alone, RULE_LEVEL, _LEAST_GAIN_ALONE)


def _fit_again(scene: TimedRecording, rules: frozenset[str], lag: LagFit) -> LagFit:
    known, scene.rules = scene.rules, rules
    try:
        later = fit_lag(scene, _LAG_WINDOWS, [lag.ticks + later for later in _LATER])
    finally:
        scene.rules = known
    return later if later.windows else replace(lag)


def _windows(scene: TimedRecording) -> list[Window]:
    """Return windows without contact, each in a block of its own: (car, track, first, last moment)."""
    found: list[Window] = []
    for car in scene.bodies:
        if car == BALL or not scene.recording.inputs_recorded[car].any():
            continue
        touched = np.concatenate([[0], np.cumsum(scene.near[:, car])])
        for track in scene.tracks((car,)):
            if len(track.times) == TRIAL:
                continue
            ends = track.nearest(track.times + WINDOW_TICKS)
            fits = np.abs(track.times[ends] - track.times - WINDOW_TICKS) < WINDOW_TICKS / 10
            fits &= touched[track.rows[ends]] == touched[track.rows]
            fits[[0, -1]] = False
            found += [(car, track, start, int(ends[start])) for start in spaced(track.times, fits, BLOCK)]
    return thinned(found, _MOST)


def _errors(scene: TimedRecording, windows: Sequence[Window], rules: frozenset[str]) -> np.ndarray:
    """Return `(windows,)` uu: how far the end of each window is off."""
    stages = {car: RolloutArena(scene.recording, (car,), rules=rules) for car in {one[0] for one in windows}}
    drives = {car: scene.drive(car) for car in stages}
    found = []
    for car, track, start, end in windows:
        simulated = simulate_end(stages[car], track, start, end, _LEAD, [drives[car]])[0]
        found.append(float(np.linalg.norm((track.values[end, 0] - simulated)[POSITION])))
    return np.array(found)
