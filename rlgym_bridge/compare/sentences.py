"""Describe a comparison in sentences."""

import math
import re
from collections.abc import Sequence

from rlgym_bridge.compare.comparison_result import Comparison, Fit, GapVerdict, Situation, Untried
from rlgym_bridge.compare.gaps import listed
from rlgym_bridge.compare.input_lag import SURE
from rlgym_bridge.user_input.arguments import count_of

_SECOND = 120
_SHOWN = 4  # recordings that are shown whether they agree or not
_LEAST = 0.01  # uu: less is not printed with its digits
_CLOCK_STEP = 0.001  # %: the least that is printed of a clock that is right
_IN_TIME = {
    "clock": "its clock",
    "input latency": "late inputs",
    "tick offset": "states older than their frames",
}
_NAMES = {"rocketsim3": "RocketSim 3", "rocketsim2": "RocketSim 2.2.1"}


def explain_difference(found: Comparison) -> str:
    """Return the sentences that a comparison begins with, as one text; see `begin_with`."""
    return " ".join(begin_with(found))


def begin_with(found: Comparison) -> list[str]:
    """Return the sentences that a comparison begins with: what differs, what was measured, whose it is."""
    tellers = (_tell_difference, _tell_measured, _tell_recorder)
    return [sentence for sentence in (tell(found) for tell in tellers) if sentence]


def name_simulator(found: Comparison) -> str:
    """Return the name of the simulator that was compared."""
    return _NAMES[found.simulator]


def _tell_difference(found: Comparison) -> str:
    name = name_simulator(found)
    timing = [gap.name for gap in found.gaps if gap.kind is GapVerdict.TIMING]
    causes = [cause for cause in found.causes if not (cause.kind == "time" and cause.name in _IN_TIME)]
    sure = [
        f"the physics, which are those of {cause.phrase}" if cause.kind == "physics" else cause.phrase
        for cause in causes
        if cause.certain
    ]
    either = [f"one of these, which it does not tell apart: {' or '.join([c.phrase, *c.alike])}"
              for c in causes if not c.certain]  # fmt: skip
    parts = list(dict.fromkeys([*sure, *either]))
    if found.untried:
        places = list(dict.fromkeys(name for one in found.untried for name in one.situations))
        parts.append(f"something that is not tried here ({', '.join(places)})")
    late = list(dict.fromkeys(_IN_TIME.get(one, one) for one in timing))
    also = f" The recorded time differs as well: {', '.join(late)}." if late else ""
    if parts:
        return f"Recording and {name} differ by {'; '.join(parts)}.{also}"
    if late:
        return f"No gap of physics was found; the recorded time differs: {', '.join(late)}."
    return "No gap was found."


def _tell_measured(found: Comparison) -> str:
    windows = sum(fit.windows for fit in found.fits)
    seconds = sum(fit.seconds for fit in found.fits)
    small = smallest_gap(found)
    shown = f" A gap of {small} would have shown." if small and found.agrees else ""
    files = count_of(len(found.fits), "recording")
    return f"Measured: {count_of(windows, 'window')} of {seconds:,.0f} s together, in {files}.{shown}"


def smallest_gap(found: Comparison) -> str:
    """Return how small a gap of each body would have shown, in words; "" where nothing was judged."""
    told = []
    for body, who in (("ball", "the ball"), ("car", "a car")):
        rows = [row for row in found.situations if row.name.startswith(body) and row.horizon_ticks <= _SECOND]
        if rows:
            last = max(row.horizon_ticks for row in rows)
            bound = min(row.tolerance for row in rows if row.horizon_ticks == last)
            told.append(f"{short(bound)} uu of {who} after {in_time(last)}")
    return listed(told)


def _tell_recorder(found: Comparison) -> str:
    own = [fit.source for fit in found.fits if fit.own]
    if not own:
        return ""
    which = (
        "The recording is" if len(found.fits) == 1 else f"{listed(own)} {'is' if len(own) == 1 else 'are'}"
    )
    return f"{which} of the match server, which plays in RocketSim: nothing here measures Rocket League."


def told_untried(one: Untried) -> str:
    """Return a difference that nothing explains, as a sentence."""
    nearest = (
        f"; {one.nearest} comes nearest, and explains {100 * one.share:.0f} % of them" if one.nearest else ""
    )
    return (
        f"{count_of(one.windows, 'window')} of {one.source} ({', '.join(one.situations)}) stay beyond their "
        f"bounds, up to {short(one.worst)} uu after {in_time(one.after_ticks)}, and no alteration that is "
        f"tried here explains them{nearest}"
    )


def told_fit(fit: Fit) -> str:
    """Return clock, age of states, input latency and noise of a recording, each with how sure it is."""
    parts = [_tell_clock(fit)]
    if any(fit.offset.ages[1:]):
        oldest = max(age for age, count in enumerate(fit.offset.ages) if count)
        parts.append(
            f"its states are up to {count_of(oldest, 'tick')} old, {fit.offset.ticks} in the median (which "
            f"explains {100 * fit.offset.share:.0f} % of steps)"
        )
    if fit.lag.curve:
        late = count_of(abs(fit.lag.ticks), "tick") + (" early" if fit.lag.ticks < 0 else " late")
        late = late if fit.lag.ticks else "when the recording says" if fit.applied else "without delay"
        doubt = "" if fit.lag.sure >= SURE else ", which is not sure"
        more = f", or up to {count_of(fit.unseen, 'tick')} later" if fit.unseen else ""
        parts.append(
            f"inputs act {late}{doubt}{more} (in {100 * fit.lag.sure:.0f} % of resampled sets of "
            f"{count_of(fit.lag.windows, 'window')})"
        )
    if fit.applied and fit.delay is not None:
        delay = fit.delay
        after = f"{count_of(delay.input_latency, 'tick')} late" if delay.input_latency else "without delay"
        parts.append(f"what bots sent was applied {after} ({delay.inputs:,} inputs)")
    if fit.noise:
        parts.append(f"open are {fit.noise}")
    return "; ".join(parts)


def _tell_clock(fit: Fit) -> str:
    clock, doubt = fit.clock, 200 * fit.clock.error
    if fit.offset.ages:
        return "time is that of the replay's frames"
    if not math.isfinite(doubt):
        return "whether its clock is right is not known, as nothing moves enough"
    percent = 100 * (clock.scale - 1)
    if abs(percent) <= max(doubt, _CLOCK_STEP):
        return f"its clock is right to {max(doubt, _CLOCK_STEP):.1g} %"
    return f"its clock runs {abs(percent):.3g} % {'slow' if percent > 0 else 'fast'} (± {doubt:.1g} %)"


def short_verdict(verdict: GapVerdict) -> str:
    """Return a verdict in two words at most, for tables."""
    return "untried" if verdict is GapVerdict.UNTRIED else verdict.value


def row_to_tell(rows: dict[int, Situation]) -> Situation:
    """Return the row with most windows beyond bounds, else that of a second or of the longest before it.

    Args:
        rows: The rows of one situation, by their horizons in ticks.
    """
    most = max(row.beyond for row in rows.values())
    if most:
        return next(row for _, row in sorted(rows.items()) if row.beyond == most)
    return rows[max((at for at in rows if at <= _SECOND), default=max(rows))]


def sources_to_show(found: Comparison) -> list[str]:
    """Return the recordings whose errors are shown one by one: of many, those that differ."""
    sources = [fit.source for fit in found.fits]
    if len(sources) <= _SHOWN:
        return sources
    differ = {gap.source for gap in found.gaps} | {one.source for one in found.untried}
    differ |= {row.source for row in found.situations if row.beyond}
    return [source for source in sources if source in differ]


def said_once(texts: Sequence[str], sources: Sequence[str]) -> list[str]:
    """Return sentences about recordings; of many alike those of the first recording, with a count.

    Args:
        texts: The sentences. Alike are those that differ in their recording and in numbers alone.
        sources: Names of all recordings.
    """
    if len(sources) <= _SHOWN:
        return list(texts)
    name = re.compile("|".join(re.escape(one) for one in sorted(sources, key=len, reverse=True)))
    kinds: dict[str, dict[str, list[str]]] = {}
    for text in texts:
        found = name.search(text)
        own = kinds.setdefault(re.sub(r"[\d.,]+", "", name.sub("", text)), {})
        own.setdefault(found.group() if found else "", []).append(text)
    said = []
    for own in kinds.values():
        first, *others = own.values()
        also = f" (and {count_of(len(others), 'other recording')} alike)" if others else ""
        said += [f"{text}{also}" for text in first]
    return said


def short(error: float) -> str:
    """Return an error in uu with two decimals, fewer if it is large; less than 0.01 as such."""
    return (
        "-"
        if math.isnan(error)
        else "<0.01"
        if error < _LEAST
        else f"{error:.2f}"
        if error < 10
        else f"{error:.0f}"
    )


def in_time(ticks: int) -> str:
    """Return a horizon in ticks as a time: `a second`, `60 ticks (0.5 s)`."""
    return "a second" if ticks == _SECOND else f"{count_of(ticks, 'tick')} ({ticks / _SECOND:.2g} s)"
