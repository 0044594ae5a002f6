"""Results of comparisons made by hand, to see what is said of them."""

from rlgym_bridge.compare.clock_fit import ClockFit, OffsetFit
from rlgym_bridge.compare.comparison_result import (
    Comparison,
    Fit,
    Gap,
    GapVerdict,
    NamedCause,
    Situation,
    Size,
    Untried,
)
from rlgym_bridge.compare.input_lag import LagFit

SOURCE = "a.csv"
NAN = float("nan")


def row(
    name: str, ticks: int, p50: float, verdict: GapVerdict = GapVerdict.AGREES, source: str = SOURCE,
    rocketsim2: float = NAN,
) -> Situation:  # fmt: skip
    """Return a situation with the same error in all percentiles, uu, and a bound of 0.05 uu."""
    beyond = 0 if verdict is GapVerdict.AGREES else 7
    return Situation(source, name, ticks, 61, beyond, p50, p50, p50, 0.05, 0.0, 0.0, 0.0, rocketsim2, verdict)


def fit(
    lag: LagFit | None = None, clock: float = 1.0, source: str = SOURCE, offset: OffsetFit | None = None
) -> Fit:
    """Return the fit of a recording with 61 windows of 61 s together."""
    lag = lag or LagFit(0, 0.0, 3, {})
    offset = offset or OffsetFit()
    return Fit(source, ClockFit(clock, 1e-5, 99), offset, lag, None, False, 0, windows=61, seconds=61.0)


def gap(name: str, kind: GapVerdict, size: float = 2.0, source: str = SOURCE) -> Gap:
    """Return a gap of some size."""
    return Gap(kind, name, source, size, size, size, "ticks", f"{name} in {source}")


def cause(name: str, *alike: str, kind: str = "inputs", source: str = SOURCE) -> NamedCause:
    """Return a cause that explains all, with those that cannot be told apart from it."""
    return NamedCause(name, f"{name} 1.20", kind, source, [0], 1.2, 1.19, 1.21, "times", 1.0, 9, list(alike))


def untried(*situations: str, source: str = SOURCE) -> Untried:
    """Return a difference that nothing explains."""
    return Untried(source, list(situations), 9, 9, 3.5, 60, "gravity +1.20 %", 0.25)


def size(
    mutator: str, value: float, low: float, high: float, gap: bool = False, source: str = SOURCE
) -> Size:  # fmt: skip
    """Return what a recording tells of a constant."""
    return Size(mutator, source, value, low, high, "of RocketSim's", 9, gap, mutator)


def comparison(*rows: Situation, gaps: tuple[Gap, ...] = ()) -> Comparison:
    """Return a comparison of one recording with the given situations and gaps."""
    return Comparison("rocketsim3", [fit()], list(rows), list(gaps))
