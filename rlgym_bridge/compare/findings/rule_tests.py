"""Tests of the game's rules on a recording: what it shows of each, at a stated level."""

import enum
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from rlgym_bridge.compare.findings.phrases import name_rules
from rlgym_bridge.compare.findings.significance import LEVEL, flip_test
from rlgym_bridge.sim.game_rules import ROCKETSIM, RULES, describe_rules

CUT_LEVEL: Final = LEVEL / 2
"""Chance of a false claim on the cut of velocities, which tells the game of autumn 2018 and later."""

RULE_LEVEL: Final = LEVEL / 2 / (len(RULES) - 1)
"""Chance of a false claim on another rule: all of them together have the level of a comparison."""

_TIE: Final = 0.01  # of the larger error: windows that differ by less tell nothing
LEAST_GAIN: Final = float(np.log(2.0))
"""Median of the log of a rule's gain from which on it is shown: half of the windows come twice as near. Where
something else is wrong, as an input that is too small, a rule may help a little in every window."""

_EXACT: Final = 1e-4  # uu and uu/s: errors below it are none


class Shown(enum.Enum):
    """The answer of a recording on one rule."""

    SHOWN = "shown"
    ABSENT = "absent"
    UNTOLD = "not told"


@dataclass(frozen=True)
class RuleTest:
    """The test of one rule on a recording.

    Attributes:
        rule: Its name, a key of `game_rules.RULES`.
        shown: What came out.
        text: The numbers behind that, for people.
    """

    rule: str
    shown: Shown
    text: str


@dataclass
class RulesFit:
    """The rules that a recording is simulated with.

    Attributes:
        rules: Their names; none is RocketSim alone.
        given: Whether they were asked for; otherwise the recording says them.
        tests: What the recording shows of each rule; none where rules were asked for or written down.
        recorded: Whether the recording has them written down, as those of the match server have.
    """

    rules: frozenset[str] = ROCKETSIM
    given: bool = False
    tests: list[RuleTest] = field(default_factory=list)
    recorded: bool = False

    def of(self, rule: str) -> Shown:
        """Return what the recording shows of a rule; nothing where it was not tested."""
        return next((test.shown for test in self.tests if test.rule == rule), Shown.UNTOLD)

    def told(self) -> str:
        """Return which rules are used, and why; of rules that nothing tells of their names alone."""
        used = f"simulated by {name_rules(self.rules)}"
        if self.given:
            return f"{used}, as asked for"
        if self.recorded:
            return f"{used}, as the recording says"
        alike: dict[tuple[Shown, str], list[str]] = {}
        untold: dict[bool, list[str]] = {}
        for test in self.tests:
            if test.shown is Shown.UNTOLD:
                untold.setdefault(test.rule in self.rules, []).append(test.rule)
            else:
                alike.setdefault((test.shown, test.text), []).append(test.rule)
        tests = [f"{', '.join(names)} {shown.value} ({text})" for (shown, text), names in alike.items()]
        if True in untold:
            tests.append(f"not told, but used where velocities are cut: {', '.join(untold[True])}")
        if False in untold:
            tests.append(f"not told, and left out: {', '.join(untold[False])}")
        return "; ".join([used, *tests])

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        tests = [{"rule": test.rule, "shown": test.shown.value, "text": test.text} for test in self.tests]
        used = {"used": describe_rules(self.rules), "asked_for": self.given, "recorded": self.recorded}
        return used | {"tests": tests}


def judge_windows(
    rule: str, without: np.ndarray, with_rule: np.ndarray, level: float, least_gain: float = LEAST_GAIN
) -> RuleTest:
    """Test whether a rule brings windows nearer to what was recorded, half of them to half their error.

    Args:
        rule: Its name.
        without: `(windows,)` errors without it, uu, of windows that do not overlap.
        with_rule: The same with it.
        level: Chance of a false claim.
        least_gain: Median of the log of the gain from which on a rule is shown.
    """
    differs = np.abs(without - with_rule) > _TIE * np.maximum(without, with_rule) + _EXACT
    before, after = without[differs], with_rule[differs]
    if not len(before):
        return RuleTest(rule, Shown.UNTOLD, "no window depends on it")
    gain = np.log((before + _EXACT) / (after + _EXACT))
    text = (
        f"nearer to the recording in {int((gain > 0).sum())} of {len(gain)} windows, farther off in the "
        f"others; median error {_written(np.median(before))} uu without, "
        f"{_written(np.median(after))} uu with it"
    )
    if np.median(gain) >= least_gain and flip_test(gain) < level:
        return RuleTest(rule, Shown.SHOWN, text)
    return RuleTest(rule, Shown.ABSENT if flip_test(-gain) < level else Shown.UNTOLD, text)


def _written(error: float) -> str:
    """Return an error in uu with two digits; what is below 0.01 as such."""
    return f"{error:.2g}" if error >= 0.01 else "<0.01"
