"""Make the report of a field test: dialect, timing, rules of the game that hold, errors by scene."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

import msgspec
import numpy as np

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.findings.comparison_result import Comparison
from rlgym_bridge.compare.findings.rule_tests import RULE_LEVEL, RulesFit, RuleTest, Shown, judge_windows
from rlgym_bridge.compare.findings.shown_rules import fit_rules
from rlgym_bridge.field_test.field_pack import FieldPack
from rlgym_bridge.field_test.followed_scenes import SceneError, SceneFollower
from rlgym_bridge.field_test.pack_parts import AboutPack, ScenesPart
from rlgym_bridge.field_test.scripted_scene import Row
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.sim.game_rules import GAME, ROCKETSIM, RULES

_LAG_WINDOWS: Final = 60
_BUMP: Final = "bump"
_PITCH, _YAW, _JUMP, _BOOST = (CONTROL_NAMES.index(name) for name in ("pitch", "yaw", "jump", "boost"))
_ACTS: Final[dict[str, Callable[[Row], bool]]] = {
    "thrust": lambda row: row[_BOOST] > 0,
    "jump": lambda row: row[_JUMP] > 0,
    "dodge": lambda row: row[_JUMP] > 0 and abs(row[_PITCH]) + abs(row[_YAW]) > 0,
}
"""Controls without which nothing is seen of a rule."""

_BUMP_TICKS: Final = 60  # after a scene's beginning: the cars have met by then


@dataclass(frozen=True)
class KindError:
    """Errors of RocketSim over the scenes of a kind, for one body at one horizon.

    Attributes:
        kind: Of the scenes.
        body: car, other or ball.
        horizon_ticks: Ticks after the first controls.
        scenes: How many.
        rocketsim: Median position error of RocketSim alone, uu.
        rocketsim_worst: The largest, uu.
        game: Median with all rules of the game, uu.
        game_worst: The largest, uu.
    """

    kind: str
    body: str
    horizon_ticks: int
    scenes: int
    rocketsim: float
    rocketsim_worst: float
    game: float
    game_worst: float


@dataclass
class FieldReport:
    """The report of a field test.

    Attributes:
        about: What the pack is.
        parts: Its results, see `pack_parts.PARTS`.
        notes: What could not be read or measured, as sentences.
        rules: What the scenes show of the game's rules; None where they could not be compared.
        lag_ticks: Ticks by which the inputs that packets show act late; None where it is not told.
        scenes: Scenes that were followed.
        without: Errors of RocketSim alone.
        with_rules: Errors with all rules of the game, in the same order.
    """

    about: AboutPack
    parts: dict[str, Any]
    notes: list[str]
    rules: RulesFit | None = None
    lag_ticks: int | None = None
    scenes: int = 0
    without: list[SceneError] = field(default_factory=list)
    with_rules: list[SceneError] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Tell whether every part is done and could be read."""
        return not self.notes and all(part.state == "done" for part in self.about.parts)

    @property
    def kinds(self) -> list[KindError]:
        """Return the errors by kind and body, in the order of the scenes, and by horizon."""
        grouped: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
        order: dict[tuple[str, str], int] = {}
        for one, other in zip(self.without, self.with_rules, strict=True):
            order.setdefault((one.kind, one.body), len(order))
            key = one.kind, one.body, one.horizon_ticks
            grouped.setdefault(key, []).append((one.error, other.error))
        grouped = dict(sorted(grouped.items(), key=lambda item: (order[item[0][:2]], item[0][2])))
        return [
            KindError(
                *key, len(pairs), median(a for a, _ in pairs), max(a for a, _ in pairs),
                median(b for _, b in pairs), max(b for _, b in pairs),
            )
            for key, pairs in grouped.items()
        ]  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        probe = self.parts.get("probe")
        rules = None if self.rules is None else self.rules.as_json()
        return {
            "about": msgspec.to_builtins(self.about),
            "dialect": None if probe is None else probe.dialect,
            "open": None if probe is None else probe.open,
            "parts": {
                name: msgspec.to_builtins(part) for name, part in self.parts.items() if name != "scenes"
            },
            "rules": rules,
            "input_lag_ticks": self.lag_ticks,
            "kinds": [vars(one) for one in self.kinds],
            "scenes": [
                vars(one) | {"error_with_rules": other.error}
                for one, other in zip(self.without, self.with_rules, strict=True)
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
        recording = read_match(pack.recordings["scenes"])
        follower = SceneFollower(recording, scenes.scenes, scenes.played)
        found.notes += [f"scenes: {note}" for note in recording.notes]
        if not follower.scenes:
            raise ValueError("no scene can be found in the recording")
        progress("testing the rules of the game")
        found.rules = _find_rules(follower, found)
        progress("following the scenes with RocketSim")
        found.scenes = len(follower.scenes)
        found.without, found.with_rules = follower.errors(ROCKETSIM), follower.errors(GAME)
    except ValueError as error:
        found.notes.append(f"the scenes cannot be compared: {error}")
    return found


def _find_rules(follower: SceneFollower, found: FieldReport) -> RulesFit:
    """Tell which rules of the game the scenes show, bumps among them."""
    timed = follower.timed
    lag, rules = fit_rules(timed, _LAG_WINDOWS, car_windows=follower.car_windows())
    found.lag_ticks = lag.ticks if lag.fitted else None
    base = rules.rules - {_BUMP}
    without, with_bump = (_ends(follower.errors(each, _BUMP)) for each in (base, base | {_BUMP}))
    test = judge_windows(_BUMP, without, with_bump, RULE_LEVEL)
    rules.tests = [*(_known(one, follower) for one in rules.tests), test]
    if test.shown is not Shown.UNTOLD:
        rules.rules = base | {_BUMP} if test.shown is Shown.SHOWN else base
    rules.tests.sort(key=lambda one: list(RULES).index(one.rule))
    return rules


def _known(test: RuleTest, follower: SceneFollower) -> RuleTest:
    """Return the test of a rule; not told where no scene acts it out, whatever all rules together say."""
    acts = _ACTS.get(test.rule)
    steps = [step for one in follower.scenes for step in one.scripted.steps]
    if test.shown is Shown.ABSENT and acts is not None and not any(acts(step.car) for step in steps):
        return RuleTest(test.rule, Shown.UNTOLD, "no scene that was played shows it")
    return test


def _ends(errors: Sequence[SceneError]) -> np.ndarray:
    """Return `(scenes,)` uu: how far the victims of bumps are off at the end."""
    return np.array([
        one.error for one in errors if one.body == "other" and one.horizon_ticks == _BUMP_TICKS
    ])  # fmt: skip


def compare_pack(
    pack: FieldPack, found: FieldReport, progress: Callable[[str], None] = lambda doing: None
) -> Comparison:
    """Compare the recordings of a pack with RocketSim as `compare` does.

    Args:
        pack: The pack, while it is open.
        found: Its report: the rules that it names are used.
        progress: Called with what begins, in a few words.

    Raises:
        ValueError: None can be compared.
    """
    recordings = [
        read_match(pack.recordings[name]) for name in ("match", "scenes") if name in pack.recordings
    ]
    rules = "auto" if found.rules is None else sorted(found.rules.rules)
    return compare_recordings(*recordings, rules=rules, progress=progress)
