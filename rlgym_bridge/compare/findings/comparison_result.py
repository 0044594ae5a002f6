"""The result of a comparison: what was fitted, measured and found."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlgym_bridge.compare.findings.fitted_constants import Size
from rlgym_bridge.compare.findings.gaps import Gap
from rlgym_bridge.compare.findings.height_offset import HeightOffset
from rlgym_bridge.compare.findings.mechanisms import Mechanism
from rlgym_bridge.compare.findings.missing_inputs import Missing, Worth
from rlgym_bridge.compare.findings.rule_tests import RulesFit
from rlgym_bridge.compare.findings.sentences import explain_difference
from rlgym_bridge.compare.findings.untold_controls import UntoldControls
from rlgym_bridge.compare.findings.verdict import GapVerdict, Situation
from rlgym_bridge.compare.findings.worst_windows import WorstWindow
from rlgym_bridge.compare.fit.action_delay import ActionDelay
from rlgym_bridge.compare.fit.clock_fit import ClockFit
from rlgym_bridge.compare.fit.input_lag import SURE, LagFit
from rlgym_bridge.compare.fit.state_age import OffsetFit

_BODIES = ("ball", "car")  # rows of all situations of a body together
_DIFFER = {GapVerdict.PHYSICS, GapVerdict.MISSING, GapVerdict.WRONG, GapVerdict.OFFSET}


@dataclass
class Fit:
    """The fitted clock, tick offset and input latency of one recording.

    Attributes:
        source: Its name.
        clock, offset: Of its time.
        lag: How late its inputs act; where they are what the game applied, how much later than that.
        delay: How late actions act; None where it is not told.
        applied: Whether its inputs are what the game applied.
        unseen: Ticks between its rows of which nothing is known.
        rules: The game's rules that it was simulated with, and what it shows of each.
        driven: Whether it has inputs that drive cars.
        heights: Bodies whose heights are off by a constant, which was taken out.
        written_rules: The rules that the recording says it was played by, as those of the match server do; ""
            where it says none, or some that are unknown here.
    """

    source: str
    clock: ClockFit
    offset: OffsetFit
    lag: LagFit
    delay: ActionDelay | None
    applied: bool
    unseen: int
    rules: RulesFit = field(default_factory=RulesFit)
    driven: bool = True
    heights: list[HeightOffset] = field(default_factory=list)
    written_rules: str = ""

    @property
    def late(self) -> ActionDelay | None:
        """The delay, where what was sent stands beside what was applied, and acts late."""
        return self.delay if self.applied and self.delay and self.delay.input_latency else None

    @property
    def input_latency_ticks(self) -> int:
        """Ticks by which what was sent acts late; what was applied, where nothing else is known."""
        return self.lag.ticks + (self.late.input_latency if self.late else 0)


@dataclass(frozen=True)
class RefusedFile:
    """A recording that could not be compared.

    Attributes:
        source: Its name, or its file where it could not be read.
        reason: A sentence: what came, what was expected, and what to do.
    """

    source: str
    reason: str

    def describe(self) -> str:
        """Return the reason, with the name before it where it does not begin with that."""
        return self.reason if self.reason.startswith(self.source) else f"{self.source}: {self.reason}"


@dataclass
class Comparison:
    """The differences between RocketSim and recordings.

    Attributes:
        fits: The time and the lag of each recording.
        situations: Errors and verdicts.
        gaps: What was found to differ.
        sizes: The constants of the physics that could be fitted, whether they differ or not.
        missing: Controls that are absent throughout.
        worth: What the other controls explain.
        notes: What people should know besides.
        worst: Where recording and simulator part most.
        refused: Recordings that could not be compared beside those that were.
        mechanisms: What explains how the cars' motion differs.
        untold: Controls of each car of a table that its map could mix up without any effect.
    """

    fits: list[Fit]
    situations: list[Situation]
    gaps: list[Gap]
    sizes: list[Size]
    missing: list[Missing]
    worth: list[Worth]
    notes: list[str] = field(default_factory=list)
    worst: list[WorstWindow] = field(default_factory=list)
    refused: list[RefusedFile] = field(default_factory=list)
    mechanisms: list[Mechanism] = field(default_factory=list)
    untold: list[UntoldControls] = field(default_factory=list)

    @property
    def input_latency_ticks(self) -> int | None:
        """Ticks by which inputs act late, median of the recordings that tell; None where none does."""
        told = [fit.input_latency_ticks for fit in self.fits if fit.lag.sure >= SURE or fit.late]
        told = told or [fit.input_latency_ticks for fit in self.fits if fit.lag.fitted]
        return int(np.median(told)) if told else None

    @property
    def clock_scale(self) -> float:
        """Seconds of the game in a recorded second, median of the recordings."""
        told = [fit.clock.scale for fit in self.fits if np.isfinite(fit.clock.error)]
        return float(np.median(told)) if told else 1.0

    @property
    def tick_offset(self) -> int:
        """Ticks before the frame's time at which a shown state was, median of the recordings."""
        return int(np.median([fit.offset.ticks for fit in self.fits])) if self.fits else 0

    @property
    def lag_is_unsure(self) -> bool:
        """True if an input latency was fitted and is not certain."""
        return any(fit.lag.windows and fit.lag.sure < SURE for fit in self.fits)

    @property
    def inputs_are_off(self) -> bool:
        """True if inputs are missing, wrong or of uncertain latency: no constants are fitted to cars then."""
        lacking = any(one.shown or one.said for one in self.missing)
        lacking |= any(each.kind in ("controls", "frame") for each in self.mechanisms)
        return self.lag_is_unsure or lacking or any(one.wrong for one in self.worth)

    @property
    def agrees(self) -> bool:
        """True if nothing but timing differs: no physics gap, and no input missing."""
        kinds = {gap.kind for gap in self.gaps} | {row.verdict for row in self.situations}
        return not kinds & _DIFFER

    @property
    def unexplained(self) -> list[Situation]:
        """Situations that differ though nothing was found that does: the shortest horizon of each."""
        if {gap.kind for gap in self.gaps} & _DIFFER:
            return []
        bad = [row for row in self.situations if row.verdict in _DIFFER]
        first: dict[str, Situation] = {}
        for row in bad:
            if row.name not in _BODIES:
                first.setdefault(row.name, row)
        return list(first.values())

    @property
    def off_in_time(self) -> list[str]:
        """Situations that are off as by a wrong time, though no clock or lag was found to differ."""
        if any(gap.kind is GapVerdict.TIMING for gap in self.gaps):
            return []
        off = [row.name for row in self.situations if row.verdict is GapVerdict.TIMING]
        return [name for name in dict.fromkeys(off) if name not in _BODIES]

    @property
    def tells_nothing(self) -> bool:
        """True if no situation has enough windows to judge."""
        return all(row.verdict is GapVerdict.FEW for row in self.situations)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON's types; see the docstrings of the parts for units."""
        return {
            "explanation": explain_difference(self),
            "mechanisms": [_plain(each) | {"certain": each.certain} for each in self.mechanisms],
            "input_latency_ticks": self.input_latency_ticks,
            "clock_scale": round(self.clock_scale, 6),
            "tick_offset": self.tick_offset,
            "situations": [_plain(row) for row in self.situations],
            "gaps": [_plain(gap) for gap in self.gaps],
            "fits": [
                {
                    "source": fit.source, "clock": _plain(fit.clock), "tick_offset": _plain(fit.offset),
                    "input_lag": _plain(fit.lag) | ({} if fit.lag.fitted else {"ticks": None}),
                    "action_delay": _plain(fit.delay),
                    "heights": _plain(fit.heights),
                    "rules": fit.rules.as_json(),
                }
                for fit in self.fits
            ],
            "sizes": [_plain(size) for size in self.sizes],
            "missing": [_plain(one) | {"shown": one.shown} for one in self.missing],
            "controls": [_plain(one) for one in self.worth],
            "worst": [_plain(one) for one in self.worst],
            "untold_controls": [_plain(each) for each in self.untold],
            "notes": self.notes,
            "refused": [_plain(one) for one in self.refused],
            "agrees": self.agrees,
        }  # fmt: skip


def _plain(part: Any) -> Any:
    """Return a dataclass, and what is in it, as JSON's types; what is not finite is null."""
    if isinstance(part, GapVerdict):
        return part.value
    if hasattr(part, "__dataclass_fields__"):
        return {name: _plain(getattr(part, name)) for name in part.__dataclass_fields__}
    if isinstance(part, dict):
        return {str(key): _plain(value) for key, value in part.items()}
    if isinstance(part, Sequence) and not isinstance(part, str):
        return [_plain(one) for one in part]
    if isinstance(part, (bool, np.bool_)):
        return bool(part)
    if isinstance(part, float):
        return round(part, 6) if np.isfinite(part) else None
    return part
