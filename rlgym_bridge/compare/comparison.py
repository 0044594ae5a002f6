"""Compare recordings with RocketSim: fit the time, then the lag, then measure, then judge.

Recording -> timeline -> lag -> errors, noise floor -> sizes, missing inputs -> verdicts
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlgym_bridge.compare.findings.claims import (
    explain,
    mechanism_gaps,
    settle_inputs,
    settle_sizes,
)
from rlgym_bridge.compare.findings.comparison_result import Comparison, Fit, RefusedFile
from rlgym_bridge.compare.findings.dodge_directions import dodge_gaps
from rlgym_bridge.compare.findings.drift import WINDOWS, has_windows, measure, measure_floor
from rlgym_bridge.compare.findings.fitted_constants import fit_sizes
from rlgym_bridge.compare.findings.gaps import (
    Gap,
    input_gaps,
    latency_gap,
    lost_packets,
    physics_gaps,
    timing_gaps,
)
from rlgym_bridge.compare.findings.height_offset import (
    HeightOffset,
    correct_heights,
    fit_heights,
    height_gaps,
)
from rlgym_bridge.compare.findings.mechanisms import Mechanism
from rlgym_bridge.compare.findings.missing_inputs import Missing, Worth, find_missing
from rlgym_bridge.compare.findings.noise_limits import measure_noise
from rlgym_bridge.compare.findings.recording_notes import is_spinless, knows_rules, note_recording
from rlgym_bridge.compare.findings.rule_tests import RulesFit
from rlgym_bridge.compare.findings.shown_rules import AUTO, fit_rules
from rlgym_bridge.compare.findings.untold_controls import find_untold
from rlgym_bridge.compare.findings.verdict import Doubts, judge
from rlgym_bridge.compare.findings.worst_windows import worst_windows
from rlgym_bridge.compare.fit.action_delay import action_delay
from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.input_lag import LagFit
from rlgym_bridge.compare.fit.motion_check import check_motion
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.playable import check_playable
from rlgym_bridge.compare.simulate.tracks import BALL
from rlgym_bridge.compare.simulate.window_errors import Errors
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.sim.game_rules import parse_rules


def compare_recordings(
    *recordings: Recording,
    windows: int = WINDOWS,
    rules: str | Sequence[str] = AUTO,
    progress: Callable[[str], None] = lambda doing: None,
) -> Comparison:
    """Measure how simulation error grows from recorded states, and judge what differs.

    Every recording gets its own clock and lag; the errors of all are put together. One that cannot be
    compared is left out and named in the result, as long as another can be.

    Args:
        recordings: One or more.
        windows: About how many windows of each body to simulate, shared among the recordings, but at least 40
            in each; fewer are quicker and less certain. Fits use a part of them.
        rules: The game's rules to simulate with: `"auto"` for those that each recording shows,
            `"rocketsim"` for none, `"default"` for those of training and matches, `"game"` for all, or names
            of `game_rules.RULES`.
        progress: Is called with what begins, in a few words.

    Returns:
        The fitted clock, tick offset and input latency of each recording, and the rules that were used and
        why; the errors of position (uu) by situation and horizon with their verdicts; the gaps, fitted
        constants and missing inputs; and the recordings that were refused.

    Raises:
        ValueError: None was given, or none can be compared: too little is shown, bodies do not move as their
            velocities say, or RocketSim does not play their game. Or a rule is unknown.
        FileNotFoundError: The collision meshes are not installed.
    """
    _check(recordings, windows)
    given = None if rules == AUTO else parse_rules(rules)
    prepared, refused = _prepare(recordings, windows, given, progress)
    if not prepared:
        raise ValueError("; ".join(one.reason for one in refused))
    scenes = [each.scene for each in prepared]
    fits = [_fit(each) for each in prepared]
    notes = [note for scene in scenes for note in note_recording(scene)]
    progress("simulating windows")
    together, floor = _measure(scenes, windows)
    progress("fitting constants of the physics")
    sizes = fit_sizes(scenes, together, any(scene.driven and scene.unseen for scene in scenes))
    gaps = _judge_timing(scenes, fits)
    progress("trying mechanisms")
    mechanisms = explain(scenes, windows)
    progress("trying inputs")
    missing, worth, input_claims = _judge_inputs(scenes, windows, mechanisms)
    gaps += input_claims
    sizes = settle_sizes(sizes, mechanisms)
    found = Comparison(fits, [], gaps, sizes, missing, worth, notes, [], refused, mechanisms)
    found.untold = [each for scene in scenes for each in find_untold(scene)]
    if found.inputs_are_off:  # what inputs did would be taken for the physics
        found.sizes = [replace(size, gap=False) if size.body == "car" else size for size in sizes]
    gaps += [*mechanism_gaps(mechanisms, found.sizes), *physics_gaps(found.sizes)]
    doubts = _doubts(scenes, found)
    found.situations = judge(together, floor, found.sizes, missing, worth, doubts, measure_noise(scenes))
    found.worst = worst_windows(together, scenes, found.situations)
    return found


def _doubts(scenes: Sequence[TimedRecording], found: Comparison) -> Doubts:
    """Return what nobody knows of recordings, and what was found wrong in them."""
    fits = found.fits
    return Doubts(
        lag=found.lag_is_unsure,
        lag_untold=any(fit.driven and fit.lag.windows and not fit.lag.curve for fit in fits),
        lag_unknown=any(fit.lag.windows and fit.lag.curve and not fit.lag.sure for fit in fits),
        clock=any(fit.clock.wavers and not fit.clock.on_ticks for fit in fits),
        spin=any(map(is_spinless, scenes)),
        inputs=any(scene.driven and scene.unseen for scene in scenes),
        wrong=any(each.kind in ("controls", "frame") for each in found.mechanisms)
        or any(one.shown and one.rivals for one in found.missing),
    )


def _measure(scenes: Sequence[TimedRecording], windows: int) -> tuple[Errors, Errors]:
    """Return the errors of all recordings, and those of RocketSim against itself."""
    share = len(scenes)
    together = Errors.join([measure(scene, max(windows // share, 40)) for scene in scenes])
    return together, Errors.join([measure_floor(scene, max(windows // 4 // share, 12)) for scene in scenes])


def _check(recordings: Sequence[Recording], windows: int) -> None:
    if not recordings:
        raise ValueError("got no recording, expected one or more to compare")
    for one in recordings:
        if not isinstance(one, Recording):
            raise TypeError(f"got {one!r:.80}, expected a recording: open_recording reads one from its file")
    if isinstance(windows, bool) or not isinstance(windows, int) or windows < 1:
        raise ValueError(f"windows is {windows!r}, expected a whole number, 1 or more")


def _judge_timing(scenes: Sequence[TimedRecording], fits: Sequence[Fit]) -> list[Gap]:
    """Return the gaps of clocks, ticks, lags, packets, and heights."""
    gaps = timing_gaps(scenes, [fit.lag for fit in fits])
    gaps += [latency_gap(fit.source, fit.late) for fit in fits if fit.late]
    gaps += [gap for fit in fits for gap in height_gaps(fit.source, fit.heights)]
    return gaps + [gap for scene in scenes for gap in lost_packets(scene.recording)]


def _judge_inputs(
    scenes: Sequence[TimedRecording], windows: int, mechanisms: Sequence[Mechanism]
) -> tuple[list[Missing], list[Worth], list[Gap]]:
    """Return the controls that are absent, what the others explain, and the gaps that these make."""
    missing: list[Missing] = []
    worth: list[Worth] = []
    gaps: list[Gap] = []
    for scene in scenes:
        source = scene.recording.source
        turned = any(each.source == source and each.kind != "physics" for each in mechanisms)
        tried = find_missing(scene, windows // 2 if turned else 2 * windows)  # then it says little more
        absent, present = settle_inputs(source, *tried, mechanisms)
        missing += absent
        worth += present
        gaps += [*input_gaps(source, absent, present), *_dodge_claims(scene, mechanisms)]
    return missing, worth, gaps


def _dodge_claims(scene: TimedRecording, mechanisms: Sequence[Mechanism]) -> list[Gap]:
    """Return dodges that the sticks do not explain, of cars whose sticks are as recorded otherwise."""
    turned = {car for each in mechanisms if each.source == scene.recording.source for car in each.cars}
    return dodge_gaps(scene, [body for body in scene.bodies if body != BALL and body not in turned])


class _Prepared(NamedTuple):
    """A recording with its fitted time, lag, rules and heights."""

    scene: TimedRecording
    lag: LagFit
    rules: RulesFit
    heights: list[HeightOffset]


def _prepare(
    recordings: Sequence[Recording],
    windows: int,
    given: frozenset[str] | None,
    progress: Callable[[str], None],
) -> tuple[list[_Prepared], list[RefusedFile]]:
    """Fit clock, heights, rules and lag of each recording; return those to compare, and the others."""
    prepared: list[_Prepared] = []
    refused = []
    for number, recording in enumerate(recordings):
        progress(f"fitting the time, the input latency and the rules of {recording.source}")
        try:
            if any(np.array_equal(recording.state.buffer, one.state.buffer) for one in recordings[:number]):
                raise ValueError(
                    f"{recording.source} was given twice, expected each recording once: it would count double"
                )
            check_playable(recording)
            timeline = fit_timeline(recording)
            check_motion(recording, timeline)
            scene = TimedRecording(recording, timeline, number=len(prepared))
            if not has_windows(scene):
                raise ValueError(
                    f"{recording.source}: nothing is shown for long enough to compare, expected a second or "
                    "more"
                )
        except ValueError as error:
            refused.append(RefusedFile(recording.source, str(error)))
            continue
        prepared.append(_fit_all(scene, windows, given))
    return prepared, refused


def _fit_all(scene: TimedRecording, windows: int, given: frozenset[str] | None) -> _Prepared:
    """Fit heights, lag and rules of a recording; heights that are off are corrected first."""
    heights = fit_heights(scene)
    if not heights:
        return _Prepared(scene, *fit_rules(scene, windows // 2, given), heights)
    level = correct_heights(scene, heights)
    level.timeline = fit_timeline(level.recording)
    lag, rules = fit_rules(level, windows // 2, given)
    # By the rules of the game a car stands a little lower than by RocketSim alone.
    heights = fit_heights(replace(scene, rules=level.rules)) or heights
    recording = correct_heights(scene, heights).recording
    return _Prepared(replace(level, recording=recording), lag, rules, heights)


def _fit(prepared: _Prepared) -> Fit:
    scene, lag, rules, heights = prepared
    recording, time = scene.recording, scene.timeline
    return Fit(
        recording.source, time.clock, time.offset, lag, action_delay(recording, lag),
        recording.inputs is Inputs.APPLIED, scene.unseen, rules, scene.driven and scene.bodies != [BALL],
        heights, recording.rules if knows_rules(recording.rules) else "",
    )  # fmt: skip
