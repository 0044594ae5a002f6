"""Make the report of a field test: dialect, timing, errors of the simulators by scene, and a conclusion."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final

import msgspec
import numpy as np

from rlgym_bridge.compare.clock_fit import fit_timeline
from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.comparison_result import Comparison, short
from rlgym_bridge.compare.detection import judge_windows, ratios_of, sizes_of
from rlgym_bridge.compare.input_lag import fit_lag
from rlgym_bridge.compare.noise import measure_noise
from rlgym_bridge.compare.timed_recording import TimedRecording, check_playable
from rlgym_bridge.compare.tracks import BALL, Track
from rlgym_bridge.compare.window_simulation import Bench, recorded, residuals, simulate
from rlgym_bridge.compare.windows import HORIZONS, Window, leads_of, targets
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.protocol_variant import POINTS
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, ROCKETSIM2, ROCKETSIM3, SIMULATORS, is_installed
from rlgym_bridge.trials.diagnostic_pack import PARTS, AboutPack, FieldPack, ScenesPart
from rlgym_bridge.trials.scripted_scenes import Body, PlayedScene, ScriptedScene
from rlgym_bridge.user_input.arguments import count_of

SCENE_HORIZONS: Final = (60, 120, 240)  # ticks after a scene's beginning at which errors are measured
_LAG_WINDOWS: Final = 30  # of each car, by which its lag is fitted

_BODIES: Final[dict[Body, int]] = {"car": 0, "other": 1, "ball": BALL}


@dataclass(frozen=True)
class _SceneError:
    scene: str
    kind: str
    body: Body
    horizon_ticks: int  # ticks after the first controls
    error: float  # position error, uu
    beyond: bool  # whether position, velocity, rotation or spin is off by more than the recording leaves open


_Followed = tuple[ScriptedScene, Window]
"""A scene, and its window from the moment on that was answered with its first controls."""


def _find_scenes(timed: TimedRecording, part: ScenesPart) -> Iterator[_Followed]:
    """Yield the scenes that can be followed in their recording, which `_cut_at_set_states` has cut."""
    tick = timed.recording.tick
    for one in part.played:
        if one.scene >= len(part.scenes):
            continue
        scripted = part.scenes[one.scene]
        bodies = tuple(body for name, body in _BODIES.items() if name in scripted.measured)
        for track in timed.tracks(bodies):
            frames = tick[track.rows]
            start = int(np.searchsorted(frames, one.began))
            last = int(np.searchsorted(frames, one.ended, side="right")) - 1
            if 0 < start < last and frames[start] == one.began and frames[0] >= one.shown:
                if (window := _window_of(timed, track, start, last)) is not None:
                    yield scripted, window
                break


def _window_of(timed: TimedRecording, track: Track, start: int, last: int) -> Window | None:
    """Return the window of a scene; None where it is too short to measure."""
    ends = targets(track, start)
    kept = [place for place, at in enumerate(HORIZONS) if at in SCENE_HORIZONS and 0 <= ends[place] <= last]
    if not kept:
        return None
    leads = leads_of(timed, track, start, int(ends[kept[-1]]))
    before = float(track.times[start] - track.times[0])
    lead = max((before if one is None else one for one in leads), default=1.0)
    return Window(timed, track, start, tuple(ends[kept].tolist()), tuple(kept), lead, len(track.bodies) > 1)


def _follow_scenes(
    timed: TimedRecording, scenes: Sequence[_Followed], simulators: Sequence[str]
) -> dict[str, list[_SceneError]]:
    """Simulate scenes; return how far bodies are off in each simulator, by the first one's bounds."""
    windows, found = [window for _, window in scenes], {}
    bounds: np.ndarray | None = None
    for simulator in simulators:
        bench = Bench(simulator)
        timed.lag = 0.0
        # In each by itself: RocketSim 2.2.1 lets the throttle act a tick later than the game.
        timed.lag = fit_lag(timed, _LAG_WINDOWS, bench=bench).of_rows(len(timed.recording.tick))
        if bounds is None:
            judged = judge_windows(windows, measure_noise(timed), bench)
            off, bounds = judged.off, judged.bounds
        else:
            off = residuals(recorded(windows), simulate(windows, bench=bench).values)
        found[simulator] = _errors_of(scenes, off, bounds)
    return found


def _errors_of(scenes: Sequence[_Followed], off: np.ndarray, bounds: np.ndarray) -> list[_SceneError]:
    """Return errors by residuals `(scenes, ends, bodies, 12)` and bounds `(scenes, ends, bodies, 4)`."""
    names = {number: name for name, number in _BODIES.items()}
    sizes, ratios = sizes_of(off), ratios_of(off, bounds)
    return [
        _SceneError(
            scripted.name, scripted.kind, names[body], HORIZONS[column],
            float(sizes[number, end, place, 0]), bool(ratios[number, end, place] > 1),
        )
        for number, (scripted, window) in enumerate(scenes)
        for end, column in enumerate(window.horizons)
        for place, body in enumerate(window.bodies)
    ]  # fmt: skip


def _cut_at_set_states(recording: Recording, played: Sequence[PlayedScene]) -> Recording:
    """Return a recording whose segments end where a state was set: no body gets there by itself."""
    begins = np.diff(recording.segment, prepend=recording.segment[:1]) != 0
    for one in played:
        begins |= (recording.tick > one.asked) & (recording.tick <= one.shown)
    return replace(recording, segment=np.cumsum(begins).astype(np.int32))


_WINDOWS: Final = 60  # windows of each body, by which the scenes are compared


@dataclass(frozen=True)
class KindError:
    """Errors of a simulator over the scenes of a kind, for one body at one horizon."""

    simulator: str
    kind: str
    body: str
    horizon_ticks: int  # ticks after the first controls
    scenes: int  # how many
    beyond: int  # in how many the body is off by more than the recording leaves open
    error: float  # median position error, uu
    worst: float  # the largest, uu


@dataclass
class FieldReport:
    """The report of a field test."""

    about: AboutPack
    parts: dict[str, Any]  # results, see `diagnostic_pack.PARTS`
    notes: list[str]  # what could not be read or measured, as sentences
    # how the recorded scenes differ from `compared`, and what explains it; None where they could not be
    # compared
    difference: Comparison | None = None
    scenes: int = 0  # number of scenes that were followed
    errors: dict[str, list[_SceneError]] = field(default_factory=dict)  # by simulator, in equal order
    compared: str = DEFAULT_SIMULATOR  # name of the simulator that is judged

    @property
    def whole(self) -> bool:
        """Tell whether every part is done and could be read."""
        return not self.notes and all(part.state == "done" for part in self.about.parts)

    @property
    def lag_ticks(self) -> int | None:
        """Ticks by which the inputs that packets show act late; None where it is not told."""
        if self.difference is None or not self.difference.fits[0].lag.fitted:
            return None
        return self.difference.fits[0].lag.ticks

    @property
    def kinds(self) -> list[KindError]:
        """Return the errors by simulator, kind and body, in the order of the scenes, and by horizon."""
        found = []
        for simulator, errors in self.errors.items():
            grouped: dict[tuple[str, str, int], list[_SceneError]] = {}
            order: dict[tuple[str, str], int] = {}
            for one in errors:
                order.setdefault((one.kind, one.body), len(order))
                grouped.setdefault((one.kind, one.body, one.horizon_ticks), []).append(one)
            for key, some in sorted(grouped.items(), key=lambda item: (order[item[0][:2]], item[0][2])):
                found.append(
                    KindError(
                        simulator, *key, len(some), sum(one.beyond for one in some),
                        median(one.error for one in some), max(one.error for one in some),
                    )
                )  # fmt: skip
        return found

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        probe = self.parts.get("probe")
        return {
            "about": msgspec.to_builtins(self.about),
            "dialect": None if probe is None else probe.dialect,
            "open": None if probe is None else probe.open,
            "parts": {
                name: msgspec.to_builtins(part) for name, part in self.parts.items() if name != "scenes"
            },
            "difference": None if self.difference is None else self.difference.as_json(),
            "input_lag_ticks": self.lag_ticks,
            "kinds": [vars(one) for one in self.kinds],
            "scenes": [
                {"simulator": simulator} | vars(one)
                for simulator, errors in self.errors.items()
                for one in errors
            ],
            "notes": self.notes,
        }


def read_field_test(pack: FieldPack, progress: Callable[[str], None] = lambda doing: None) -> FieldReport:
    """Make the report of an open pack; what cannot be measured is named in its notes."""
    found = FieldReport(pack.about, pack.parts, list(pack.notes))
    scenes: ScenesPart | None = pack.parts.get("scenes")
    if scenes is None or "scenes" not in pack.recordings:
        return found
    try:
        progress("reading the scenes")
        recording = _cut_at_set_states(read_match(pack.recordings["scenes"]), scenes.played)
        found.notes += [f"scenes: {note}" for note in recording.notes]
        found.difference = compare_recordings(
            recording, windows=_WINDOWS, simulator=found.compared, progress=progress
        )
        check_playable(recording)
        if recording.state.layout.cars != 2:
            raise ValueError(f"the scenes have {recording.state.layout.cars} cars, expected 2")
        timed = TimedRecording(recording, fit_timeline(recording))
        followed = list(_find_scenes(timed, scenes))
        if not followed:
            raise ValueError("no scene can be found in the recording")
        found.scenes = len(followed)
        progress("following the scenes")
        others = [one for one in SIMULATORS if one != found.compared and is_installed(one)]
        found.errors = _follow_scenes(timed, followed, [found.compared, *others])
    except ValueError as error:
        found.notes.append(f"the scenes cannot be compared: {error}")
    return found


def compare_pack(pack: FieldPack, progress: Callable[[str], None] = lambda doing: None) -> Comparison:
    """Compare the recordings of an open pack as `compare` does; a ValueError says that none can be."""
    there = [name for name in ("match", "scenes") if name in pack.recordings]
    recordings: list[Recording] = [read_match(pack.recordings[name]) for name in there]
    scenes: ScenesPart | None = pack.parts.get("scenes")
    if scenes is not None and "scenes" in pack.recordings:
        recordings[-1] = _cut_at_set_states(recordings[-1], scenes.played)
    return compare_recordings(*recordings, progress=progress)


SIMULATOR_NAMES = {ROCKETSIM3: "RocketSim 3", ROCKETSIM2: "RocketSim 2.2.1"}
"""Names of the simulators for people."""


def conclude_field_test(found: FieldReport) -> list[str]:
    """Return the conclusion of a report, as sentences."""
    difference = "" if found.difference is None else f"The scenes: {found.difference.explanation}"
    sentences = [_wholeness(found), _dialect(found), _lateness(found), difference, _errors(found)]
    return [*filter(None, sentences), _next_step(found)]


def parts_left_out(found: FieldReport) -> list[str]:
    """Return the parts that `--parts` left out of a pack."""
    played = {part.name for part in found.about.parts}
    return [name for name in PARTS if name not in played]


def _wholeness(found: FieldReport) -> str:
    broken = [f"{part.name} {part.state}" for part in found.about.parts if part.state != "done"]
    broken += [count_of(len(found.notes), "note") + " below"] if found.notes else []
    if broken:
        return f"The test is not whole: {', '.join(broken)}."
    if left := parts_left_out(found):
        done = ", ".join(part.name for part in found.about.parts)
        return (
            f"The test is whole as far as it was asked for: {done}; left out by --parts: {', '.join(left)}."
        )
    return "The test is whole."


def _dialect(found: FieldReport) -> str:
    probe = found.parts.get("probe")
    if probe is None:
        return ""
    others = [
        f"{name}={value}" for name, value in probe.dialect.items()
        if name in POINTS and value != POINTS[name].values[0]
    ]  # fmt: skip
    unsettled = [name for name in POINTS if name not in probe.dialect]
    said = "No point of the dialect differs from the standard"
    if others:
        said = f"The dialect differs from the standard in {', '.join(others)}"
    return f"{said}{'; not settled: ' + ', '.join(unsettled) if unsettled else ''}."


def _lateness(found: FieldReport) -> str:
    timing, probe = found.parts.get("timing"), found.parts.get("probe")
    latency = timing.input_latency_ticks if timing is not None else None
    if latency is None and probe is not None:
        latency = probe.timing.input_latency
    if latency is None:
        return "" if timing is None and probe is None else "How late inputs act is not told."
    return f"Inputs act {count_of(latency, 'tick')} late." if latency else "Inputs act without delay."


def _errors(found: FieldReport) -> str:
    after = {
        simulator: [one.error for one in errors if one.horizon_ticks == TICKS_PER_SECOND]
        for simulator, errors in found.errors.items()
    }
    told = [
        f"{SIMULATOR_NAMES[simulator]} is off by {short(median(errors))} uu"
        for simulator, errors in after.items()
        if errors
    ]
    if not told:
        return ""
    judged = found.errors[found.compared]
    scenes = {one.scene for one in judged}
    beyond = {one.scene for one in judged if one.beyond}
    return (
        f"After a second {' and '.join(told)} (median of {count_of(len(after[found.compared]), 'path')}); "
        f"{len(beyond)} of {count_of(len(scenes), 'scene')} go beyond what the recording leaves open."
    )


def _next_step(found: FieldReport) -> str:
    broken = [part.name for part in found.about.parts if part.state != "done"]
    if broken:
        return f"Next: play these parts again, with --parts {' '.join(broken)}."
    if found.about.server == "sim":
        return "Next: play it in the real game, with --server rlbot; this one says nothing about that."
    return "Next: give the file to whoever gave you this project, so that its defaults can follow the game."
