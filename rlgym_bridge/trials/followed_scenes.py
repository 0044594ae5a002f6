"""Follow recorded scenes in RocketSim, and measure how far the simulation is off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rlgym_bridge.compare.clock_fit import fit_timeline
from rlgym_bridge.compare.detection import judge_windows, ratios_of, sizes_of
from rlgym_bridge.compare.input_lag import fit_lag
from rlgym_bridge.compare.noise import measure_noise
from rlgym_bridge.compare.playable import check_playable
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.tracks import BALL, Track
from rlgym_bridge.compare.window_simulation import Bench, recorded, residuals, simulate
from rlgym_bridge.compare.windows import HORIZONS, Window, cars_of, lead_of, targets
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.trials.scripted_scene import Body, PlayedScene, ScriptedScene

SCENE_HORIZONS: Final = (60, 120, 240)
"""Ticks after a scene's beginning at which errors are measured."""

_LAG_WINDOWS: Final = 30  # of each car, by which its lag is fitted

_BODIES: Final[dict[Body, int]] = {"car": 0, "other": 1, "ball": BALL}


@dataclass(frozen=True)
class SceneError:
    """The error of one body in one scene.

    Attributes:
        scene: Name of the scene.
        kind: Its kind.
        body: Which body.
        horizon_ticks: Ticks after the first controls.
        error: Position error, uu.
        beyond: Whether position, velocity, rotation or spin is off by more than the recording leaves open.
    """

    scene: str
    kind: str
    body: Body
    horizon_ticks: int
    error: float
    beyond: bool


@dataclass(frozen=True)
class FollowedScene:
    """A scene in a recording.

    Attributes:
        scripted: Its definition.
        window: From the moment that was answered with the first controls on.
    """

    scripted: ScriptedScene
    window: Window


class SceneFollower:
    """The recording of played scenes, ready to be simulated.

    Args:
        recording: The recording, cut by `cut_at_set_states`.
        scenes: The definitions.
        played: The frames of those that were played.

    Attributes:
        scenes: The scenes that can be followed.

    Raises:
        ValueError: RocketSim does not play such matches.
    """

    def __init__(
        self, recording: Recording, scenes: Sequence[ScriptedScene], played: Sequence[PlayedScene]
    ) -> None:
        check_playable(recording)
        if recording.state.layout.cars != 2:
            raise ValueError(f"the scenes have {recording.state.layout.cars} cars, expected 2")
        self._timed = TimedRecording(recording, fit_timeline(recording))
        self._rows = len(recording.tick)
        self.scenes = list(self._find(scenes, played))

    def _find(
        self, scenes: Sequence[ScriptedScene], played: Sequence[PlayedScene]
    ) -> Iterator[FollowedScene]:
        tick = self._timed.recording.tick
        for one in played:
            if one.scene >= len(scenes):
                continue
            scripted = scenes[one.scene]
            bodies = tuple(body for name, body in _BODIES.items() if name in scripted.measured)
            for track in self._timed.tracks(bodies):
                frames = tick[track.rows]
                start = int(np.searchsorted(frames, one.began))
                last = int(np.searchsorted(frames, one.ended, side="right")) - 1
                if 0 < start < last and frames[start] == one.began and frames[0] >= one.shown:
                    window = self._window(track, start, last)
                    if window is not None:
                        yield FollowedScene(scripted, window)
                    break

    def _window(self, track: Track, start: int, last: int) -> Window | None:
        """Return the window of a scene; None where it is too short to measure."""
        ends = targets(track, start)
        kept = [
            place for place, at in enumerate(HORIZONS) if at in SCENE_HORIZONS and 0 <= ends[place] <= last
        ]
        if not kept:
            return None
        final = int(ends[kept[-1]])
        leads = [lead_of(self._timed, track, start, place, final) for place in range(cars_of(track.bodies))]
        before = float(track.times[start] - track.times[0])
        lead = max((before if one is None else one for one in leads), default=1.0)
        return Window(
            self._timed, track, start, tuple(ends[kept].tolist()), tuple(kept), lead, len(track.bodies) > 1
        )

    def errors(self, simulators: Sequence[str]) -> dict[str, list[SceneError]]:
        """Simulate all scenes from their beginning, and return how far each body is off in each simulator.

        Args:
            simulators: Their names; the bounds of all are those of the first.

        Raises:
            FileNotFoundError: The collision meshes are not installed.
        """
        windows, found = [one.window for one in self.scenes], {}
        bounds: np.ndarray | None = None
        for simulator in simulators:
            bench = Bench(simulator)
            self._timed.lag = 0.0
            # In each by itself: RocketSim 2.2.1 lets the throttle act a tick later than the game.
            self._timed.lag = fit_lag(self._timed, _LAG_WINDOWS, bench=bench).of_rows(self._rows)
            if bounds is None:
                judged = judge_windows(windows, measure_noise(self._timed), bench)
                off, bounds = judged.off, judged.bounds
            else:
                off = residuals(recorded(windows), simulate(windows, bench=bench).values)
            found[simulator] = self._told(off, bounds)
        return found

    def _told(self, off: np.ndarray, bounds: np.ndarray) -> list[SceneError]:
        """Return the errors of all scenes.

        Args:
            off: Residuals, `(scenes, ends, bodies, 12)`.
            bounds: Of their sizes, `(scenes, ends, bodies, 4)`.
        """
        names = {number: name for name, number in _BODIES.items()}
        sizes, ratios = sizes_of(off), ratios_of(off, bounds)
        return [
            SceneError(
                one.scripted.name, one.scripted.kind, names[body], HORIZONS[column],
                float(sizes[number, end, place, 0]), bool(ratios[number, end, place] > 1),
            )
            for number, one in enumerate(self.scenes)
            for end, column in enumerate(one.window.horizons)
            for place, body in enumerate(one.window.bodies)
        ]  # fmt: skip


def cut_at_set_states(recording: Recording, played: Sequence[PlayedScene]) -> Recording:
    """Return a recording whose segments end where a state was set: no body gets there by itself."""
    begins = np.diff(recording.segment, prepend=recording.segment[:1]) != 0
    for one in played:
        begins |= (recording.tick > one.asked) & (recording.tick <= one.shown)
    return replace(recording, segment=np.cumsum(begins).astype(np.int32))
