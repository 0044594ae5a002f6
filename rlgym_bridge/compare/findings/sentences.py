"""Describe fits and gaps in sentences."""

import math
from typing import TYPE_CHECKING

from rlgym_bridge.compare.fit.input_lag import SURE

if TYPE_CHECKING:
    from rlgym_bridge.compare.findings.comparison_result import Comparison, Fit
    from rlgym_bridge.compare.findings.verdict import Situation
    from rlgym_bridge.compare.fit.input_lag import LagFit


def plural(count: float, unit: str) -> str:
    """Return a whole number with its unit: `1 tick`, `2 ticks`."""
    return f"{count:,.0f} {unit}{'' if round(count) == 1 else 's'}"


def explain_difference(found: "Comparison") -> str:
    """Return the sentence that a comparison begins with: what makes recording and RocketSim differ."""
    if found.tells_nothing and not found.gaps:
        return "Too little was recorded to say whether recording and RocketSim differ."
    timing = [gap for gap in found.gaps if gap.kind.value == "timing gap"]
    others = [gap for gap in found.gaps if gap not in timing]
    sure = [each.phrase for each in found.mechanisms if each.certain and each.kind != "timing"]
    named = [*sure, *(gap.name for gap in others if gap.name not in {each.name for each in found.mechanisms})]
    open_ones = [
        f"{each.phrase} or {' or '.join(each.alike)}" for each in found.mechanisms
        if not each.certain and each.kind != "timing"
    ]  # fmt: skip
    late = f" Its time differs as well: {', '.join(gap.name for gap in timing)}." if timing else ""
    if named or open_ones:
        either = [f"one of these, which it does not tell apart: {each}" for each in open_ones]
        return f"Recording and RocketSim differ by {'; '.join([*named, *either])}.{late}"
    if found.unexplained:
        which = ", ".join(row.name for row in found.unexplained)
        return f"Recording and RocketSim differ ({which}), and nothing that was tried explains it.{late}"
    if timing:
        return f"Timing alone differs: {', '.join(gap.name for gap in timing)}."
    return "Nothing was found in which recording and RocketSim differ."


def told_unexplained(row: "Situation") -> str:
    """Return that a situation exceeds its tolerance, unexplained by any fitted constant."""
    return (
        f"{row.name}, {row.p50:.2f} uu off after {plural(row.horizon_ticks, 'tick')}, expected "
        f"{row.tolerance:g} at most ({plural(row.windows, 'window')}); no constant that can be fitted "
        "explains it"
    )


def told_changes(lag: "LagFit") -> str:
    """Return when a lag changed; nothing where it did not."""
    if len(lag.pieces) < 2:
        return ""
    first = [] if lag.pieces[0].ticks == lag.ticks else [f"at first {lag.pieces[0].ticks}"]
    return ", " + ", ".join(first + [f"{one.ticks} from {one.seconds:.1f} s on" for one in lag.pieces[1:]])


def told_fit(fit: "Fit") -> str:
    """Return clock, tick offset and input lag of a recording, each with how sure it is."""
    parts = []
    clock = fit.clock
    if math.isfinite(clock.error):
        parts.append(f"clock scale {clock.scale:.5f} ± {2 * clock.error:.5f}")
    elif fit.offset.ages:
        parts.append("time by the frames of the replay")
    else:
        parts.append("clock scale not told: nothing moves enough from row to row")
    if any(fit.offset.ages[1:]):
        ages = ", ".join(f"{age}: {count:,}" for age, count in enumerate(fit.offset.ages) if count)
        explained = f"{100 * fit.offset.share:.0f} % explained"
        parts.append(f"states {plural(fit.offset.ticks, 'tick')} old in the median ({ages}; {explained})")
    if fit.lag.curve:
        share = f"{100 * fit.lag.sure:.0f} % of resampled windows"
        late = plural(fit.lag.ticks, "tick") + told_changes(fit.lag)
        doubt = "" if fit.lag.sure >= SURE else "not sure: "
        more = f", or up to {fit.unseen} more, as rows leave ticks out" if fit.unseen else ""
        parts.append(f"input lag {doubt}{late}, in {share} ({fit.lag.windows:,}){more}")
    elif fit.delay is None:
        parts.append("input lag not told: no input changes anything")
    if fit.applied and fit.delay is not None:
        delay = fit.delay
        spread = "" if delay.noise < 0.005 else f" ± {delay.noise:.2f}"
        parts.append(
            f"applied {plural(delay.input_latency, 'tick')} after they were sent{spread} ({delay.inputs:,})"
        )
    return "; ".join(parts)
