"""Make the report of a field test: dialect, timing, errors of the simulators by scene, what explains them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

import msgspec

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.comparison_result import Comparison
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, SIMULATORS, is_installed
from rlgym_bridge.trials.field_pack import FieldPack
from rlgym_bridge.trials.followed_scenes import SceneError, SceneFollower, cut_at_set_states
from rlgym_bridge.trials.pack_parts import AboutPack, ScenesPart

_WINDOWS: Final = 60  # windows of each body, by which the scenes are compared


@dataclass(frozen=True)
class KindError:
    """Errors of a simulator over the scenes of a kind, for one body at one horizon.

    Attributes:
        simulator: Name of the simulator.
        kind: Of the scenes.
        body: car, other or ball.
        horizon_ticks: Ticks after the first controls.
        scenes: How many.
        beyond: In how many the body is off by more than the recording leaves open.
        error: Median position error, uu.
        worst: The largest, uu.
    """

    simulator: str
    kind: str
    body: str
    horizon_ticks: int
    scenes: int
    beyond: int
    error: float
    worst: float


@dataclass
class FieldReport:
    """The report of a field test.

    Attributes:
        about: What the pack is.
        parts: Its results, see `pack_parts.PARTS`.
        notes: What could not be read or measured, as sentences.
        difference: How the recorded scenes differ from `compared`, and what explains it; None where they
            could not be compared.
        scenes: Scenes that were followed.
        errors: Errors in each scene, by the names of the simulators, all in the same order.
        compared: Name of the simulator that is judged: RocketSim 3 where it is installed.
    """

    about: AboutPack
    parts: dict[str, Any]
    notes: list[str]
    difference: Comparison | None = None
    scenes: int = 0
    errors: dict[str, list[SceneError]] = field(default_factory=dict)
    compared: str = DEFAULT_SIMULATOR

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
            grouped: dict[tuple[str, str, int], list[SceneError]] = {}
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
    """Make the report of a pack; what cannot be measured is named in its notes.

    Args:
        pack: The pack, while it is open.
        progress: Called with what begins, in a few words.
    """
    found = FieldReport(pack.about, pack.parts, list(pack.notes))
    scenes: ScenesPart | None = pack.parts.get("scenes")
    if scenes is None or "scenes" not in pack.recordings:
        return found
    try:
        progress("reading the scenes")
        recording = _read_scenes(pack, scenes)
        found.notes += [f"scenes: {note}" for note in recording.notes]
        found.difference = compare_recordings(
            recording, windows=_WINDOWS, simulator=found.compared, progress=progress
        )
        follower = SceneFollower(recording, scenes.scenes, scenes.played)
        if not follower.scenes:
            raise ValueError("no scene can be found in the recording")
        found.scenes = len(follower.scenes)
        progress("following the scenes")
        others = [one for one in SIMULATORS if one != found.compared and is_installed(one)]
        found.errors = follower.errors([found.compared, *others])
    except ValueError as error:
        found.notes.append(f"the scenes cannot be compared: {error}")
    return found


def _read_scenes(pack: FieldPack, scenes: ScenesPart) -> Recording:
    return cut_at_set_states(read_match(pack.recordings["scenes"]), scenes.played)


def compare_pack(pack: FieldPack, progress: Callable[[str], None] = lambda doing: None) -> Comparison:
    """Compare the recordings of a pack with RocketSim as `compare` does.

    Args:
        pack: The pack, while it is open.
        progress: Called with what begins, in a few words.

    Raises:
        ValueError: None can be compared.
    """
    recordings: list[Recording] = []
    if "match" in pack.recordings:
        recordings.append(read_match(pack.recordings["match"]))
    if "scenes" in pack.recordings:
        scenes: ScenesPart | None = pack.parts.get("scenes")
        whole = read_match(pack.recordings["scenes"])
        recordings.append(whole if scenes is None else cut_at_set_states(whole, scenes.played))
    return compare_recordings(*recordings, progress=progress)
