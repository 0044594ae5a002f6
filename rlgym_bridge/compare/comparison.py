"""Compare recordings with a simulator: fit the time, judge windows against bounds, find what explains them.

    Recording -> timeline, input lag -> noise -> windows -> judged -> causes -> Comparison

Each recording is judged by itself, so that another can neither hide nor make a gap.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from rlgym_bridge.compare.action_delay import action_delay
from rlgym_bridge.compare.alterations import CONSTANT, INPUTS, OFFSET, PHYSICS, TIME, Alteration, catalogue
from rlgym_bridge.compare.attribution import Attribution, Explained, attribute
from rlgym_bridge.compare.clock_fit import fit_timeline
from rlgym_bridge.compare.comparison_result import (
    Comparison,
    Fit,
    GapVerdict,
    NamedCause,
    RefusedFile,
    Situation,
    Size,
    Untried,
    WorstWindow,
)
from rlgym_bridge.compare.detection import Judged, judge_windows, sizes_of
from rlgym_bridge.compare.input_lag import LagFit, fit_common_lag
from rlgym_bridge.compare.motion_check import check_motion
from rlgym_bridge.compare.noise import measure_noise
from rlgym_bridge.compare.sentences import gaps_of, note_recording, timing_gaps, unjudged
from rlgym_bridge.compare.timed_recording import TimedRecording, check_playable
from rlgym_bridge.compare.tracks import BALL
from rlgym_bridge.compare.window_simulation import Bench, apart, recorded, simulate
from rlgym_bridge.compare.windows import HORIZONS, SITUATIONS, make_windows, thinned
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, ROCKETSIM2, check_simulator, simulator_for
from rlgym_bridge.user_input.arguments import check_whole, count_of

WINDOWS: Final = 240
"""Windows of each body of a recording, at most."""

_OTHER_WINDOWS: Final = 48  # windows of a recording that RocketSim 2.2.1 plays too
_WORST: Final = 12
_LEAST_SECONDS: Final = 1.0  # of a recording's windows together: less judges nothing
_VERDICTS: Final = {
    INPUTS: GapVerdict.WRONG, TIME: GapVerdict.TIMING, CONSTANT: GapVerdict.PHYSICS,
    PHYSICS: GapVerdict.PHYSICS, OFFSET: GapVerdict.OFFSET,
}  # fmt: skip


def compare_recordings(
    *recordings: Recording,
    windows: int = WINDOWS,
    simulator: str | None = None,
    progress: Callable[[str], None] = lambda doing: None,
) -> Comparison:
    """Measure how far a simulator and recordings are apart, and find out why.

    Args:
        recordings: One or more.
        windows: About how many windows of each body to simulate, of each recording; fewer are quicker and
            show less.
        simulator: `"rocketsim3"` or `"rocketsim2"`; None for RocketSim 3 where it is installed and plays the
            mode, else RocketSim 2.2.1.
        progress: Is called with what begins, in a few words.

    Returns:
        The fitted clock, tick offset and input latency of each recording; its errors (uu) by situation and
        horizon with their bounds; what differs, what explains it and what nothing explains; intervals of all
        parameters; and the recordings that were refused.

    Raises:
        ValueError: None was given, or none can be compared: too little is shown, bodies do not move as their
            velocities say, or RocketSim does not play their game. Or the simulator is unknown.
        FileNotFoundError: The collision meshes are not installed.
    """
    _check(recordings, windows)
    if simulator is not None:
        check_simulator(simulator)
    found = Comparison(simulator or DEFAULT_SIMULATOR)
    benches: dict[str, Bench] = {}
    as_rlgym = Bench(ROCKETSIM2, thrust=False)
    for number, recording in enumerate(recordings):
        name = simulator or simulator_for(recording.mode)[0]
        bench = benches.setdefault(name, Bench(name))
        try:
            if any(np.array_equal(recording.state.buffer, one.state.buffer) for one in recordings[:number]):
                raise ValueError(
                    f"{recording.source} was given twice, expected each recording once: it would count double"
                )
            _compare(found, recording, windows, (bench, as_rlgym), progress)
        except ValueError as error:
            found.refused.append(RefusedFile(recording.source, str(error)))
    if not found.fits:
        raise ValueError("; ".join(one.reason for one in found.refused))
    found.worst = sorted(found.worst, key=lambda one: -one.tolerances)[:_WORST]
    return found


def _check(recordings: Sequence[Recording], windows: int) -> None:
    if not recordings:
        raise ValueError("got no recording, expected one or more to compare")
    for one in recordings:
        if not isinstance(one, Recording):
            raise TypeError(f"got {one!r:.80}, expected a recording: open_recording reads one from its file")
    check_whole("windows", windows, 1)


def _compare(
    found: Comparison,
    recording: Recording,
    most: int,
    benches: tuple[Bench, Bench],
    progress: Callable[[str], None],
) -> None:
    """Compare one recording by a simulator, and add all that is found; the second one is RLGym's."""
    bench, as_rlgym = benches
    check_playable(recording)
    source = recording.source
    progress(f"{source}: fitting the time and the input latency")
    timeline = fit_timeline(recording)
    check_motion(recording, timeline)
    lag = fit_common_lag(TimedRecording(recording, timeline), bench)
    scene = TimedRecording(recording, timeline, lag.of_rows(len(recording.tick)), lag.at_rows)
    windows = make_windows(scene, most)
    seconds = sum(window.seconds(-1) for window in windows)
    if seconds < _LEAST_SECONDS:
        raise ValueError(
            f"{source}: of {count_of(len(recording.tick), 'row')} {seconds:.2g} s can be compared, expected "
            f"{_LEAST_SECONDS:g} s or more in which a body moves and its inputs are known"
        )
    noise = measure_noise(scene)
    progress(f"{source}: simulating {len(windows):,} windows")
    judged = judge_windows(windows, noise, bench)
    tried = catalogue(scene, bench.simulator)
    progress(f"{source}: trying {len(tried)} alterations")
    explained = attribute(judged, noise, tried, bench)
    fit = _fit(scene, lag, noise.describe(), judged)
    causes = [_cause(source, one) for one in explained.causes]
    untried = _untried(source, judged, explained) if explained.left else []
    found.fits.append(fit)
    found.causes += causes
    found.untried += untried
    found.gaps += timing_gaps(fit, scene) + gaps_of(causes, _VERDICTS)
    found.sizes += _sizes(source, tried, explained)
    differs = GapVerdict.UNTRIED if untried or not causes else _VERDICTS[causes[0].kind]
    found.situations += _situations(source, judged, differs, _by_rocketsim2(judged, bench, as_rlgym))
    found.worst += _worst(recording, judged)
    found.notes += note_recording(scene)
    found.unjudged += unjudged(scene, fit, judged)


def _fit(scene: TimedRecording, lag: LagFit, noise: str, judged: Judged) -> Fit:
    recording, cars = scene.recording, [body for body in scene.bodies if body != BALL]
    lacking = [
        name for column, name in enumerate(CONTROL_NAMES)
        if scene.driven and not all(recording.inputs_recorded[car, column] for car in cars)
    ]  # fmt: skip
    return Fit(
        recording.source, scene.timeline.clock, scene.timeline.offset, lag, action_delay(recording, lag),
        recording.inputs is Inputs.APPLIED, 0 if lag.at_rows else scene.unseen, scene.driven and bool(cars),
        noise, len(judged.windows), sum(window.seconds(-1) for window in judged.windows),
        isinstance(recording, MatchRecording) and bool(recording.rules or recording.simulator),
        tuple(lacking),
    )  # fmt: skip


def _cause(source: str, one: Explained) -> NamedCause:
    alteration = one.alteration
    cars = [car for car in (alteration.car, alteration.other) if car is not None and car != BALL]
    return NamedCause(
        alteration.name, alteration.phrase(one.value), alteration.kind, source, cars,
        one.value if alteration.unit else float("nan"), one.low, one.high, alteration.unit, one.share,
        one.windows, list(one.alike), alteration.constant,
    )  # fmt: skip


def _untried(source: str, judged: Judged, explained: Attribution) -> list[Untried]:
    left = explained.left
    ratios, names = judged.ratios[left], judged.names[left]
    situations = Counter(str(own[beyond > 1][0]) for own, beyond in zip(names, ratios, strict=True)
                         if (beyond > 1).any())  # fmt: skip
    sizes = sizes_of(judged.off[left])[..., 0]
    worst = np.unravel_index(int(np.nanargmax(np.where(ratios > 1, sizes, -1))), sizes.shape)
    window = judged.windows[left[int(worst[0])]]
    return [Untried(
        source, [name for name, _ in situations.most_common()], len(left), explained.flagged,
        float(sizes[worst]), HORIZONS[window.horizons[int(worst[1])]], explained.nearest,
        explained.nearest_share,
    )]  # fmt: skip


def _sizes(source: str, tried: Sequence[Alteration], explained: Attribution) -> list[Size]:
    own = {one.alteration.key: one for one in explained.causes}
    found = []
    for one in tried:
        if one.key in explained.intervals:
            low, high, windows = explained.intervals[one.key]
            cause = own.get(one.key)
            name = one.name if one.kind != INPUTS else f"{one.name} of car {one.car}"
            value = one.neutral if cause is None else cause.value
            gap = cause is not None and not cause.alike
            found.append(Size(name, source, value, low, high, one.unit, windows, gap, one.constant))
    return found


def _situations(source: str, judged: Judged, differs: GapVerdict, others: np.ndarray) -> list[Situation]:
    sizes, ratios, horizons, rows = judged.sizes, judged.ratios, judged.horizons, []
    for name in SITUATIONS:
        for column, ticks in enumerate(HORIZONS):
            here = (judged.names == name) & (horizons == column)
            if not here.any():
                continue
            beyond, other = int((ratios[here] > 1).sum()), others[here]
            other = other[np.isfinite(other)]
            p50, p90 = np.percentile(sizes[here][:, 0], (50, 90)).tolist()
            velocity, angle, spin = np.median(sizes[here][:, 1:], axis=0).tolist()
            rows.append(Situation(
                source, name, ticks, int(here.sum()), beyond, p50, p90, float(sizes[here][:, 0].max()),
                float(np.median(judged.bounds[here][:, 0])), velocity, angle, spin,
                float(np.median(other)) if len(other) else float("nan"),
                differs if beyond else GapVerdict.AGREES,
            ))  # fmt: skip
    return rows


def _by_rocketsim2(judged: Judged, bench: Bench, as_rlgym: Bench) -> np.ndarray:
    """Return position errors of RocketSim 2.2.1 on some windows, `(n, ends, bodies)` uu, else nan."""
    found = np.full(judged.names.shape, np.nan)
    if bench.simulator == ROCKETSIM2:
        return found
    some = thinned([*range(len(judged.windows))], _OTHER_WINDOWS)
    windows = [judged.windows[one] for one in some]
    off = apart(windows, recorded(windows), simulate(windows, bench=as_rlgym).values)
    found[some, : off.shape[1], : off.shape[2]] = sizes_of(off)[..., 0]
    return found


def _worst(recording: Recording, judged: Judged) -> list[WorstWindow]:
    ratios, rows = judged.ratios, []
    for number in np.argsort(-ratios.max((1, 2)), kind="stable")[:_WORST].tolist():
        end, place = map(int, np.unravel_index(int(ratios[number].argmax()), ratios[number].shape))
        window = judged.windows[number]
        body = window.bodies[place]
        rows.append(WorstWindow(
            recording.source, "ball" if body == BALL else recording.state.layout.agents[body], window.row,
            int(recording.tick[window.row]), float(recording.seconds[window.row]),
            str(judged.names[number, end, place]), HORIZONS[window.horizons[end]],
            float(judged.sizes[number, end, place, 0]), float(ratios[number, end, place]),
        ))  # fmt: skip
    return rows
