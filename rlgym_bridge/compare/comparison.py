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
from rlgym_bridge.compare.attribution import Attribution, Explained, attribute, intervals
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
from rlgym_bridge.compare.gaps import gaps_of, timing_gaps
from rlgym_bridge.compare.input_lag import fit_common_lag
from rlgym_bridge.compare.motion_check import check_motion
from rlgym_bridge.compare.noise import Noise, measure_noise
from rlgym_bridge.compare.playable import check_playable
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.tracks import BALL
from rlgym_bridge.compare.unjudged import note_recording, unjudged
from rlgym_bridge.compare.window_simulation import Bench, apart, recorded, simulate
from rlgym_bridge.compare.windows import HORIZONS, SITUATIONS, make_windows, thinned
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, ROCKETSIM2, check_simulator, simulator_for

WINDOWS: Final = 240
"""Windows of each body of a recording, at most."""

_OTHER_WINDOWS: Final = 60  # windows of a recording that RocketSim 2.2.1 plays too
_WORST: Final = 12
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
    for number, recording in enumerate(recordings):
        name = simulator or simulator_for(recording.mode)[0]
        bench = benches.setdefault(name, Bench(name))
        try:
            if any(np.array_equal(recording.state.buffer, one.state.buffer) for one in recordings[:number]):
                raise ValueError(
                    f"{recording.source} was given twice, expected each recording once: it would count double"
                )
            _File(recording, windows, bench, number, progress).enter(found)
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
    if isinstance(windows, bool) or not isinstance(windows, int) or windows < 1:
        raise ValueError(f"windows is {windows!r}, expected a whole number, 1 or more")


class _File:
    """One recording on its way through a comparison."""

    def __init__(
        self, recording: Recording, windows: int, bench: Bench, number: int, progress: Callable[[str], None]
    ) -> None:
        check_playable(recording)
        self._recording, self._bench = recording, bench
        source = recording.source
        progress(f"{source}: fitting the time and the input latency")
        timeline = fit_timeline(recording)
        check_motion(recording, timeline)
        scene = TimedRecording(recording, timeline, number=number)
        self._lag = fit_common_lag(scene, bench)
        lag = self._lag.of_rows(len(recording.tick))
        self._scene = TimedRecording(recording, timeline, lag=lag, number=number)
        chosen = make_windows(self._scene, windows)
        if not chosen:
            raise ValueError(
                f"{source}: nothing is shown for long enough to compare, expected a second or more"
            )
        self._noise: Noise = measure_noise(self._scene)
        progress(f"{source}: simulating {len(chosen):,} windows")
        self._judged: Judged = judge_windows(chosen, self._noise, bench)
        self._alterations: list[Alteration] = catalogue(self._scene)
        progress(f"{source}: trying {len(self._alterations)} alterations")
        self._causes: Attribution = attribute(self._judged, self._noise, self._alterations, bench)

    def enter(self, found: Comparison) -> None:
        """Add all that was found."""
        scene, recording = self._scene, self._recording
        judged = self._judged
        lacking = [
            name for column, name in enumerate(CONTROL_NAMES)
            if recording.inputs is not Inputs.NONE and scene.driven
            and not all(recording.inputs_recorded[car, column] for car in scene.bodies if car != BALL)
        ]  # fmt: skip
        seconds = sum(window.seconds(-1) for window in judged.windows)
        fit = Fit(
            recording.source, scene.timeline.clock, scene.timeline.offset, self._lag,
            action_delay(recording, self._lag), recording.inputs is Inputs.APPLIED, scene.unseen,
            scene.driven and scene.bodies != [BALL], self._noise.describe(), len(judged.windows), seconds,
            isinstance(recording, MatchRecording) and bool(recording.rules or recording.simulator),
            tuple(lacking),
        )  # fmt: skip
        found.fits.append(fit)
        causes = [self._cause(one) for one in self._causes.causes]
        found.causes += causes
        untried = self._untried()
        found.untried += untried
        found.gaps += timing_gaps(fit, scene)
        found.gaps += gaps_of(causes, _VERDICTS)
        found.sizes += self._sizes()
        found.situations += self._situations(causes, untried)
        found.worst += self._worst()
        found.notes += note_recording(scene)
        found.unjudged += unjudged(scene, fit, judged)

    def _cause(self, one: Explained) -> NamedCause:

        alteration = one.alteration
        cars = [car for car in (alteration.car, alteration.other) if car is not None and car != BALL]
        return NamedCause(
            alteration.name, alteration.phrase(one.value), alteration.kind, self._recording.source, cars,
            one.value if alteration.unit else float("nan"), one.low, one.high, alteration.unit, one.share,
            one.windows, list(one.alike), alteration.constant,
        )  # fmt: skip

    def _untried(self) -> list[Untried]:
        left = self._causes.left
        if not left:
            return []
        judged = self._judged
        ratios, names = judged.ratios[left], judged.names[left]
        situations = Counter(
            names[place][ratios[place] > 1].tolist()[0]
            for place in range(len(left))
            if (ratios[place] > 1).any()
        )
        sizes = sizes_of(judged.off[left])[..., 0]
        worst = np.unravel_index(int(np.nanargmax(np.where(ratios > 1, sizes, -1))), sizes.shape)
        window = judged.windows[left[int(worst[0])]]
        return [
            Untried(
                self._recording.source, [name for name, _ in situations.most_common()], len(left),
                self._causes.flagged, float(sizes[worst]), HORIZONS[window.horizons[int(worst[1])]],
                self._causes.nearest, self._causes.nearest_share,
            )
        ]  # fmt: skip

    def _sizes(self) -> list[Size]:
        applied = [(one.alteration, one.value) for one in self._causes.causes]
        own = {one.alteration.key: one for one in self._causes.causes}
        found = []
        every = intervals(self._judged, self._noise, self._alterations, applied, self._bench)
        for one in self._alterations:
            if one.key not in every:
                continue
            low, high, windows = every[one.key]
            cause = own.get(one.key)
            value = one.neutral if cause is None else cause.value
            name = one.name if one.kind != INPUTS else f"{one.name} of car {one.car}"
            found.append(
                Size(name, self._recording.source, value, low, high, one.unit, windows,
                     cause is not None and not cause.alike, one.constant)
            )  # fmt: skip
        return found

    def _situations(self, causes: Sequence[NamedCause], untried: Sequence[Untried]) -> list[Situation]:
        judged = self._judged
        sizes, ratios = judged.sizes, judged.ratios
        others = self._by_rocketsim2()
        differs = GapVerdict.UNTRIED if untried or not causes else _VERDICTS[causes[0].kind]
        horizons = np.full(judged.names.shape, -1)
        for number, window in enumerate(judged.windows):
            horizons[number, : len(window.horizons)] = np.array(window.horizons)[:, None]
        rows = []
        for name in SITUATIONS:
            for column, ticks in enumerate(HORIZONS):
                here = (judged.names == name) & (horizons == column)
                if not here.any():
                    continue
                beyond = int((ratios[here] > 1).sum())
                other = others[here]
                other = other[np.isfinite(other)]
                p50, p90 = np.percentile(sizes[here][:, 0], (50, 90)).tolist()
                velocity, angle, spin = np.median(sizes[here][:, 1:], axis=0).tolist()
                rows.append(
                    Situation(
                        self._recording.source, name, ticks, int(here.sum()), beyond, p50, p90,
                        float(sizes[here][:, 0].max()), float(np.median(judged.bounds[here][:, 0])),
                        velocity, angle, spin,
                        float(np.median(other)) if len(other) else float("nan"),
                        differs if beyond else GapVerdict.AGREES,
                    )
                )  # fmt: skip
        return rows

    def _by_rocketsim2(self) -> np.ndarray:
        """Return position errors of RocketSim 2.2.1 on some windows, `(n, ends, bodies)` uu, else nan."""
        judged = self._judged
        found = np.full(judged.names.shape, np.nan)
        if self._bench.simulator == ROCKETSIM2:
            return found
        some = thinned([*range(len(judged.windows))], _OTHER_WINDOWS)
        windows = [judged.windows[one] for one in some]
        off = apart(
            windows, recorded(windows), simulate(windows, bench=Bench(ROCKETSIM2, thrust=False)).values
        )
        sizes = sizes_of(off)[..., 0]
        found[some, : sizes.shape[1], : sizes.shape[2]] = sizes
        return found

    def _worst(self) -> list[WorstWindow]:
        judged, recording = self._judged, self._recording
        ratios = judged.ratios
        order = np.argsort(-ratios.max((1, 2)), kind="stable")[:_WORST]
        rows = []
        for number in order.tolist():
            end, place = np.unravel_index(int(ratios[number].argmax()), ratios[number].shape)
            window = judged.windows[number]
            body = window.bodies[int(place)]
            rows.append(
                WorstWindow(
                    recording.source, "ball" if body == BALL else recording.state.layout.agents[body],
                    window.row, int(recording.tick[window.row]), float(recording.seconds[window.row]),
                    str(judged.names[number, end, place]), HORIZONS[window.horizons[int(end)]],
                    float(judged.sizes[number, end, place, 0]), float(ratios[number, end, place]),
                )
            )  # fmt: skip
        return rows
