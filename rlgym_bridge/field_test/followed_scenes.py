"""Follow recorded scenes in RocketSim, and measure how far the simulation is off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from rlgym_bridge.compare.findings.car_rules import WINDOW_TICKS, Window
from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.motion_check import check_motion
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.playable import check_playable
from rlgym_bridge.compare.simulate.rollout import RolloutArena
from rlgym_bridge.compare.simulate.tracks import BALL, POSITION, Track
from rlgym_bridge.compare.simulate.window_errors import between
from rlgym_bridge.compare.simulate.windows import HORIZONS, lead_ticks, targets
from rlgym_bridge.field_test.scripted_scene import Body, PlayedScene, ScriptedScene
from rlgym_bridge.recording.recording import Recording

SCENE_HORIZONS: Final = (60, 120, 240)
"""Ticks after a scene's beginning at which errors are measured."""

_BODIES: Final[dict[Body, int]] = {"car": 0, "other": 1, "ball": BALL}
_APART: Final = (
    120  # ticks between windows of a scene: what is hidden at the start of one is over in the next
)
_BESIDE: Final = 2  # ticks simulated beyond the last moment: a packet may lie there


@dataclass(frozen=True)
class SceneError:
    """The error of one body in one scene.

    Attributes:
        scene: Name of the scene.
        kind: Its kind.
        body: Which body.
        horizon_ticks: Ticks after the first controls.
        error: Position error, uu.
    """

    scene: str
    kind: str
    body: Body
    horizon_ticks: int
    error: float


class FollowedScene(NamedTuple):
    """A scene in a recording.

    Attributes:
        scripted: Its definition.
        track: The moments of the bodies that are measured.
        start: The moment that was answered with the first controls.
        last: The last moment of the scene.
    """

    scripted: ScriptedScene
    track: Track
    start: int
    last: int


class SceneFollower:
    """The recording of played scenes, ready to be simulated.

    Args:
        recording: The recording.
        scenes: The definitions.
        played: The frames of those that were played.

    Attributes:
        timed: The recording with its times; its rules and lag are those of the simulation.
        scenes: The scenes that can be followed.

    Raises:
        ValueError: RocketSim does not play such matches, or bodies do not move as their velocities say.
        FileNotFoundError: The collision meshes are not installed.
    """

    def __init__(
        self, recording: Recording, scenes: Sequence[ScriptedScene], played: Sequence[PlayedScene]
    ) -> None:
        check_playable(recording)
        if recording.state.layout.cars != 2:
            raise ValueError(f"the scenes have {recording.state.layout.cars} cars, expected 2")
        cut = _cut_at_set_states(recording, played)
        timeline = fit_timeline(cut)
        check_motion(cut, timeline)
        self.timed = TimedRecording(cut, timeline)
        self.scenes = list(self._find(scenes, played))
        self._arenas: dict[tuple[tuple[int, ...], frozenset[str]], RolloutArena] = {}

    def _find(
        self, scenes: Sequence[ScriptedScene], played: Sequence[PlayedScene]
    ) -> Iterator[FollowedScene]:
        tick = self.timed.recording.tick
        for one in played:
            if one.scene >= len(scenes):
                continue
            scripted = scenes[one.scene]
            bodies = tuple(_BODIES[name] for name in dict.fromkeys(scripted.measured))
            for track in self.timed.tracks(bodies):
                frames = tick[track.rows]
                start = int(np.searchsorted(frames, one.began))
                last = int(np.searchsorted(frames, one.ended, side="right")) - 1
                if 0 < start < last and frames[start] == one.began and frames[0] >= one.shown:
                    yield FollowedScene(scripted, track, start, last)
                    break

    def car_windows(self) -> list[Window]:
        """Return windows of half a second in which the first car touches neither ball nor car."""
        found: list[Window] = []
        for _, track, start, last in self.scenes:
            if track.bodies != (_BODIES["car"],):
                continue
            times = track.times
            for begin in np.arange(times[start], times[last] - WINDOW_TICKS + 1, _APART):
                first, end = (int(track.nearest(np.array(at))) for at in (begin, begin + WINDOW_TICKS))
                if 0 < first < end and abs(times[end] - times[first] - WINDOW_TICKS) < WINDOW_TICKS / 10:
                    found.append((_BODIES["car"], track, first, end))
        return found

    def errors(self, rules: frozenset[str], kind: str | None = None) -> list[SceneError]:
        """Simulate scenes from their beginning, and return how far each body is off.

        Args:
            rules: Names of the game's rules to simulate with.
            kind: Which scenes; None for all.
        """
        chosen = [one for one in self.scenes if kind is None or one.scripted.kind == kind]
        return [error for one in chosen for error in self._follow(one, rules)]

    def _follow(self, scene: FollowedScene, rules: frozenset[str]) -> Iterator[SceneError]:
        scripted, track, start, last = scene
        ends = dict(zip(HORIZONS, targets(track, start).tolist(), strict=True))
        wanted = {ticks: ends[ticks] for ticks in SCENE_HORIZONS if 0 <= ends[ticks] <= last}
        if not wanted:
            return
        key = track.bodies, rules
        if key not in self._arenas:
            self._arenas[key] = RolloutArena(self.timed.recording, track.bodies, rules=rules)
        lead = max(lead_ticks(track, start, place) for place in range(len(track.bodies)))
        drives = [self.timed.drive(body) for body in track.bodies]
        ticks = int(np.ceil(track.times[max(wanted.values())] - track.times[start])) + _BESIDE
        path = self._arenas[key].roll(track, start, ticks, lead, drives)
        names = {number: name for name, number in _BODIES.items()}
        for horizon, end in wanted.items():
            after = float(track.times[end] - track.times[start])
            for place, body in enumerate(track.bodies):
                off = track.values[end, place] - between(path.values[:, place], after)
                error = float(np.linalg.norm(off[POSITION]))
                yield SceneError(scripted.name, scripted.kind, names[body], horizon, error)


def _cut_at_set_states(recording: Recording, played: Sequence[PlayedScene]) -> Recording:
    """Return a recording whose segments end where a state was set: no body gets there by itself."""
    begins = np.diff(recording.segment, prepend=recording.segment[:1]) != 0
    for one in played:
        begins |= (recording.tick > one.asked) & (recording.tick <= one.shown)
    return replace(recording, segment=np.cumsum(begins).astype(np.int32))
