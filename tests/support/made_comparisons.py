"""Results of comparisons made by hand, to see what is said of them."""

from rlgym_bridge.compare.findings.comparison_result import Comparison, Fit
from rlgym_bridge.compare.findings.gaps import Gap
from rlgym_bridge.compare.findings.rule_tests import RulesFit
from rlgym_bridge.compare.findings.verdict import GapVerdict, Situation
from rlgym_bridge.compare.fit.clock_fit import ClockFit
from rlgym_bridge.compare.fit.input_lag import LagFit
from rlgym_bridge.compare.fit.state_age import OffsetFit


def row(name: str, ticks: int, p50: float, verdict: GapVerdict = GapVerdict.AGREES) -> Situation:
    """Return a situation with the same error in all percentiles, uu."""
    errors = (p50, p50, p50, p50, p50, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0)
    return Situation(name, ticks, 61, 20, 20, *errors, verdict)


def fit(rules: RulesFit | None = None, lag: LagFit | None = None, clock: float = 1.0) -> Fit:
    """Return the fit of a recording with the given rules, lag and clock."""
    lag = lag or LagFit(0, 0.0, 3, {})
    rules = rules or RulesFit()
    return Fit("a.csv", ClockFit(clock, 1e-5, 99), OffsetFit(), lag, None, False, 0, rules)


def comparison(*rows: Situation, rules: RulesFit | None = None, gaps: tuple[Gap, ...] = ()) -> Comparison:
    """Return a comparison of one recording with the given situations and gaps."""
    return Comparison([fit(rules)], list(rows), list(gaps), [], [], [])
