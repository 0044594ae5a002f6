"""Compare recordings with a simulator: fit the time, judge windows against bounds, find what explains them.

    Recording -> timeline, input lag -> noise -> windows -> judged -> causes -> Comparison

Each recording is judged by itself, so that another can neither hide nor make a gap.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from rlgym_bridge.compare.alterations import CONSTANT, INPUTS, OFFSET, PHYSICS, TIME, Alteration, catalogue
from rlgym_bridge.compare.attribution import Attribution, Explained, attribute
from rlgym_bridge.compare.clock_fit import OLDEST, check_motion, fit_timeline
from rlgym_bridge.compare.comparison_result import (
    Comparison,
    Fit,
    Gap,
    GapVerdict,
    NamedCause,
    RefusedFile,
    Situation,
    Size,
    Untried,
    WorstWindow,
    listed,
)
from rlgym_bridge.compare.detection import Judged, judge_windows, sizes_of
from rlgym_bridge.compare.input_lag import SURE, LagFit, action_delay, fit_common_lag
from rlgym_bridge.compare.noise import measure_noise
from rlgym_bridge.compare.timed_recording import TimedRecording, check_playable
from rlgym_bridge.compare.tracks import BALL, POSITION, TRIAL, body_values
from rlgym_bridge.compare.window_simulation import Bench, apart, recorded, simulate
from rlgym_bridge.compare.windows import HORIZONS, SITUATIONS, make_windows, thinned
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, ROCKETSIM2, check_simulator, simulator_for
from rlgym_bridge.user_input.arguments import check_whole, count_of

WINDOWS: Final = 240
"""Windows of each body of a recording, at most."""

_OTHER_WINDOWS: Final = 48  # windows of a recording that RocketSim 2.2.1 plays too
_WORST: Final = 12
_LEAST_SECONDS: Final = 1.0  # of a recording's windows together: less judges nothing
_CLOCK_SCALE: Final = 0.0002  # a clock's error that is worth a sentence: 2 uu in 10,000
_CLOCKS_RUN: Final = 0.02  # beyond which a clock explains poorly; real ones were within 0.0022 [measured]
_WAVERS: Final = 0.01  # share of rows nearer than usual from which on a frame rate wavers
_LOST_LEAST: Final = 3  # rows; one or two may be a recorder's beginning
_BOOST: Final = CONTROL_NAMES.index("boost")
_WIDE: Final = 10.0  # uu: a bound after half a second by which a situation shows next to nothing
_HALF_SECOND: Final = HORIZONS.index(60)
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
    if not recordings:
        raise ValueError("got no recording, expected one or more to compare")
    for one in recordings:
        if not isinstance(one, Recording):
            raise TypeError(f"got {one!r:.80}, expected a recording: open_recording reads one from its file")
    check_whole("windows", windows, 1)
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
    found.gaps += _timing_gaps(fit, scene) + _gaps_of(causes)
    found.sizes += _sizes(source, tried, explained)
    differs = GapVerdict.UNTRIED if untried or not causes else _VERDICTS[causes[0].kind]
    found.situations += _situations(source, judged, differs, _by_rocketsim2(judged, bench, as_rlgym))
    found.worst += _worst(recording, judged)
    found.notes += note_recording(scene)
    found.unjudged += _unjudged(scene, fit, judged)


def _fit(scene: TimedRecording, lag: LagFit, noise: str, judged: Judged) -> Fit:
    recording, cars = scene.recording, scene.cars
    lacking = [
        name for column, name in enumerate(CONTROL_NAMES)
        if scene.driven and not all(recording.inputs_recorded[car, column] for car in cars)
    ]  # fmt: skip
    return Fit(
        recording.source, scene.timeline.clock, scene.timeline.offset, lag, action_delay(scene, lag),
        recording.inputs is Inputs.APPLIED, 0 if lag.at_rows else scene.unseen, scene.driven and bool(cars),
        noise, len(judged.windows), sum(window.seconds(-1) for window in judged.windows),
        isinstance(recording, MatchRecording) and bool(recording.simulator),
        tuple(lacking),
    )  # fmt: skip


def _cause(source: str, one: Explained) -> NamedCause:
    alteration = one.alteration
    cars = [car for car in (alteration.car, alteration.other) if car is not None and car != BALL]
    return NamedCause(
        alteration.name, alteration.phrase(one.value), alteration.kind, source, cars,
        one.value if alteration.unit else float("nan"), one.low, one.high, alteration.unit, one.share,
        len(one.explained), list(one.alike), alteration.constant,
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


# --- what differs ---------------------------------------------------------------------------------


def _timing_gaps(fit: Fit, scene: TimedRecording) -> list[Gap]:
    """Return what is wrong with the time of a recording."""
    gaps, clock = [], fit.clock
    if abs(clock.scale - 1) > max(_CLOCK_SCALE, 4 * clock.error):
        pace = f"{100 * abs(clock.scale - 1):.2f} % {'slow' if clock.scale > 1 else 'fast'}"
        doubt = "; or its velocities are in another unit" if abs(clock.scale - 1) > _CLOCKS_RUN else ""
        gaps.append(Gap(
            GapVerdict.TIMING, "clock", fit.source, clock.scale, clock.scale - 2 * clock.error,
            clock.scale + 2 * clock.error, "seconds of the game in a second of the recording",
            f"the clock of {fit.source} runs {pace}{doubt}; the fitted one is used, so this is no physics "
            "gap",
        ))  # fmt: skip
    if any(fit.offset.ages[1:]):
        gaps.append(Gap(
            GapVerdict.TIMING, "tick offset", fit.source, fit.offset.ticks, 0, OLDEST, "ticks",
            f"frames of {fit.source} show states of up to {OLDEST} ticks before, {fit.offset.ticks} in the "
            "median; the fitted ages are used, so this is no physics gap",
        ))  # fmt: skip
    gaps += [*_lag_gaps(fit), *_packet_gap(scene.recording)]
    lost, rows = _lost_rows(scene)
    if lost >= _LOST_LEAST:
        gaps.append(Gap(
            GapVerdict.TIMING, "lost rows", fit.source, lost, lost, lost, "rows",
            f"{fit.source} lacks {lost} of {rows + lost} rows between others: packets were lost, or not "
            "written down",
        ))  # fmt: skip
    return gaps


def _lag_gaps(fit: Fit) -> list[Gap]:
    gaps = []
    if delay := fit.late:  # told by what was sent and what was applied
        latency, same = delay.input_latency, delay.low == delay.high
        spread = count_of(delay.low, "tick") if same else f"{delay.low} to {delay.high} ticks"
        gaps.append(Gap(
            GapVerdict.TIMING, "input latency", fit.source, latency, latency, latency, "ticks",
            f"what bots sent in {fit.source} was applied {count_of(latency, 'tick')} late ({delay.inputs:,} "
            f"inputs): an action acts {spread} after the state it was decided on at the soonest; train with "
            "that delay (--fit). What was applied drives the simulation, so this is no physics gap",
        ))  # fmt: skip
    lag, ticks = fit.lag, [piece.ticks for piece in fit.lag.pieces]
    if not any(ticks) or lag.sure < SURE:
        return gaps
    said = ", although they are called applied" if fit.applied else ""
    more = f", or up to {fit.unseen} more, as rows leave ticks out" if fit.unseen else ""
    changes = "".join(f", {piece.ticks} from {piece.seconds:.1f} s on" for piece in lag.pieces[1:])
    late = f"{count_of(abs(lag.ticks), 'tick')} {'early' if lag.ticks < 0 else 'late'}"
    if lag.ticks < 0:
        said += (
            '; no input acts before it is there: is this what the game applied (inputs = "applied" in the '
            f"map), or are rows of inputs {count_of(-lag.ticks, 'tick')} late in the table?"
        )
    gaps.append(Gap(
        GapVerdict.TIMING, "input latency", fit.source, lag.ticks, min(ticks), max(ticks) + fit.unseen,
        "ticks", f"inputs of {fit.source} act {late}{changes}{more}{said}",
    ))  # fmt: skip
    return gaps


def _packet_gap(recording: Recording) -> list[Gap]:
    """Return that packets did not reach bots."""
    if not isinstance(recording, MatchRecording):
        return []
    missed = [(track, recording.missed(track)) for track in recording.agents.values()]
    most = max((count for _, count in missed), default=0)
    if most < _LOST_LEAST:
        return []
    sent = [(track.agent_id, count, count + len(track.frame)) for track, count in missed if count]
    told = ", ".join(f"{who} lacks {n:,} of {all_:,} ({100 * n / all_:.1f} %)" for who, n, all_ in sent)
    return [Gap(
        GapVerdict.TIMING, "lost packets", recording.source, most, min(count for _, count in missed), most,
        "packets",
        f"packets of {recording.source} were lost on their way to bots, {told}: a decision waits for the "
        "next one, and the game holds the last input until then. What was applied drives the simulation, so "
        "this is no physics gap; training loses none, rlgym-bridge match --drop does",
    )]  # fmt: skip


def _lost_rows(scene: TimedRecording) -> tuple[int, int]:
    """Return how many rows are missing between others, and how many there are.

    Frames that a renderer leaves out are not lost: rows have to be a whole number of their usual step apart,
    and most of them one.
    """
    recording, rows = scene.recording, len(scene.recording.tick)
    together = np.diff(recording.segment) == 0
    steps = np.diff(scene.timeline.inputs)[together]
    if recording.clock is TimeBase.FRAMES or not scene.timeline.clock.on_ticks or not len(steps):
        return 0, rows
    usual = float(np.median(steps))
    if (steps < usual).mean() > _WAVERS:
        return 0, rows
    # While nothing moves, rows that repeat the one before may have been left out.
    places = np.stack([body_values(recording, body, np.arange(rows))[:, POSITION] for body in scene.bodies])
    moved = (np.abs(np.diff(places, axis=1)) > 0).any((0, 2))[together]
    return int((np.round(steps / usual) - 1).clip(0)[moved].sum()), rows


def _gaps_of(causes: Sequence[NamedCause]) -> list[Gap]:
    """Return the causes as gaps."""
    gaps = []
    for one in causes:
        whose = f" of car {one.cars[0]}" if one.kind == "inputs" and len(one.cars) == 1 else ""
        wide = np.isfinite(one.low) and one.low != one.high
        span = f" ({one.low:.5g} to {one.high:.5g})" if wide else ""
        others = f"; the data do not tell it apart from {listed(one.alike)}" if one.alike else ""
        gaps.append(Gap(
            _VERDICTS[one.kind], one.name, one.source, one.value, one.low, one.high, one.unit,
            f"{one.phrase}{whose} in {one.source}{span}: with it {100 * one.share:.0f} % of the windows "
            f"beyond their bounds are within them ({count_of(one.windows, 'window')}){others}",
        ))  # fmt: skip
    return gaps


# --- what is left open ----------------------------------------------------------------------------


def note_recording(scene: TimedRecording) -> list[str]:
    """Return sentences on what a recording does not hold."""
    recording = scene.recording
    notes = [f"{recording.source}: {note}" for note in recording.notes]
    if scene.timeline.clock.wavers:
        notes.append(f"the clock of {recording.source} wavers from row to row: fast bodies tell the time")
    if scene.spinless:
        notes.append(f"{recording.source} does not hold how the ball spins: bounces may differ")
    burning = scene.driven and recording.state.car_controls[:, scene.cars, _BOOST].any()
    if burning and not recording.state.car_boost_amount[:, scene.cars].any():
        notes.append(f"{recording.source} does not hold how much boost there is: taken as enough")
    return [*notes, *filter(None, (_mixed_up(scene, car) for car in scene.cars))]


def _unjudged(scene: TimedRecording, fit: Fit, judged: Judged) -> list[str]:
    """Return sentences on what could not be judged in a recording, and which data would tell."""
    source, found, cars = fit.source, [], scene.cars
    if cars and not scene.driven:
        found.append(f"cars of {source}: it has no inputs; a recording of inputs and states would tell")
    elif cars and scene.recording.clock is TimeBase.FRAMES:
        found.append(
            f"cars of {source}: a replay's inputs come with its frames, some ticks off, and lack pitch, "
            "yaw and roll; a recording of the inputs of every tick would tell"
        )
    elif fit.lacking:
        share = np.mean([scene.unknown_inputs[car].mean() for car in cars])
        found.append(
            f"cars of {source} in {100 * share:.0f} % of the rows: {listed(list(fit.lacking))} could act "
            "there and are not recorded; a recording of all eight controls would tell"
        )
    if fit.driven and not fit.lag.curve and fit.delay is None:
        found.append(
            f"how late inputs act in {source}: {count_of(fit.lag.windows, 'window')} could tell, 6 are "
            "needed; none is assumed. More changes of inputs would tell"
        )
    names = np.where(judged.horizons == _HALF_SECOND, judged.names, "")
    bounds = {
        name: float(np.median(judged.bounds[names == name][:, 0]))
        for name in dict.fromkeys(judged.names.ravel().tolist()) if name and (names == name).any()
    }  # fmt: skip
    if wide := [f"{name} ({bound:.0f} uu)" for name, bound in bounds.items() if bound > _WIDE]:
        found.append(
            f"small gaps in {source} after half a second: its digits, noise and inputs leave open "
            f"{listed(wide)}; states and inputs of every tick would show more"
        )
    return found


def _mixed_up(scene: TimedRecording, car: int) -> str:
    """Return which columns of a table's controls a map could mix up unseen: never used, or always equal."""
    recording = scene.recording
    if scene.knows_memory or recording.clock is TimeBase.FRAMES or not scene.driven:
        return ""
    if all(len(track.times) <= TRIAL for track in scene.tracks((car,))):
        return ""  # what is held in trials is named by the map
    controls, equal = recording.state.car_controls[:, car], dict[bytes, list[str]]()
    for column in np.flatnonzero(recording.inputs_recorded[car]).tolist():
        equal.setdefault(controls[:, column].tobytes(), []).append(CONTROL_NAMES[column])
    groups = [
        f"{listed(names)} ({'equal' if any(values) else '0'} in every row)"
        for values, names in equal.items() if len(names) > 1
    ]  # fmt: skip
    if not groups:
        return ""
    return (
        f"if the map of {recording.source} mixed up {' or '.join(groups)} of car {car}, nothing would show it"
    )
