"""Describe fits and gaps in sentences."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rlgym_bridge.compare.findings.caveats import tell_open_rows, tell_recorder, tell_tail
from rlgym_bridge.compare.findings.phrases import LEAST, SECOND, in_time, listed, name_rules, short
from rlgym_bridge.compare.fit.input_lag import SURE
from rlgym_bridge.user_input.arguments import count_of

if TYPE_CHECKING:
    from rlgym_bridge.compare.findings.comparison_result import Comparison, Fit
    from rlgym_bridge.compare.findings.gaps import Gap
    from rlgym_bridge.compare.findings.verdict import Situation
    from rlgym_bridge.compare.fit.input_lag import LagFit

_IN_TIME: Final = {
    "clock": "its clock", "input latency": "late inputs", "tick offset": "states older than their frames"
}  # fmt: skip
"""Gaps of timing in words."""

_HEIGHT: Final = "offset in height"  # as `GapVerdict.OFFSET`
_CLOCK_STEP: Final = 0.001  # %: what is printed of a clock that is right


def explain_difference(found: "Comparison") -> str:
    """Return the sentences that a comparison begins with, as one text; see `begin_with`."""
    return " ".join(begin_with(found))


def begin_with(found: "Comparison") -> list[str]:
    """Return the sentences that a comparison begins with.

    What differs and what that leaves open; what was recorded; how far RocketSim is off, at most times and at
    others; what is too short to be judged.
    """
    if found.tells_nothing and not found.gaps:
        return ["Too little was recorded to say whether recording and RocketSim differ."]
    tellers = (
        _tell_difference, tell_open_rows, tell_recorder, _tell_cut, _tell_errors, tell_tail, _tell_unjudged,
        _tell_untold,
    )  # fmt: skip
    return [sentence for sentence in (tell(found) for tell in tellers) if sentence]


def _tell_difference(found: "Comparison") -> str:
    timing = [_IN_TIME.get(gap.name, gap.name) for gap in found.gaps if gap.kind.value == "timing gap"]
    others = [gap for gap in found.gaps if gap.kind.value not in ("timing gap", _HEIGHT)]
    sure = [each.phrase for each in found.mechanisms if each.certain and each.kind != "timing"]
    named = [
        *_tell_heights([gap for gap in found.gaps if gap.kind.value == _HEIGHT]),
        *sure,
        *(_name(gap) for gap in others if gap.name not in {each.name for each in found.mechanisms}),
    ]
    open_ones = [
        f"{each.phrase} or {' or '.join(each.alike)}" for each in found.mechanisms
        if not each.certain and each.kind != "timing"
    ]  # fmt: skip
    late = f" Its time differs as well: {', '.join(timing)}." if timing else ""
    if named or open_ones:
        either = [f"one of these, which it does not tell apart: {each}" for each in open_ones]
        return f"Recording and RocketSim differ by {'; '.join(dict.fromkeys([*named, *either]))}.{late}"
    absent = [row.name for row in found.unexplained if row.verdict.value == "missing input"]
    unknown = [row.name for row in found.unexplained if row.name not in absent]
    if unknown:
        which = ", ".join(unknown)
        return f"Recording and RocketSim differ ({which}), and nothing that was tried explains it.{late}"
    lacking = list(dict.fromkeys(one.control for one in found.missing if one.said))
    if absent and lacking:
        return (
            f"No gap was found, but the recording lacks inputs ({', '.join(lacking)}), which may be why cars "
            f"are off ({', '.join(absent)}).{late}"
        )
    if absent:
        return f"Recording and RocketSim differ ({', '.join(absent)}), and inputs may be missing.{late}"
    if timing:
        return f"No gap of physics was found; the recording's time differs: {', '.join(timing)}."
    if found.off_in_time:
        lag = " It is not sure how late inputs act." if found.lag_is_unsure else ""
        return (
            f"No gap of physics was found; {listed(found.off_in_time)} may be off because of the time, which "
            f"could not be fitted to the tick.{lag}"
        )
    return "No gap was found."


def _tell_heights(gaps: Sequence["Gap"]) -> list[str]:
    """Return the bodies whose heights are off, as one phrase; nothing where none is."""
    bodies: dict[str, list[str]] = {}
    for gap in gaps:
        off = f"{abs(gap.size):.1f} uu too {'high' if gap.size > 0 else 'low'}"
        bodies.setdefault(off, []).append(gap.name.removeprefix(f"{_HEIGHT} of "))
    parts = [
        f"{listed(list(dict.fromkeys(names)))} {'is' if len(set(names)) == 1 else 'are'} {off}"
        for off, names in bodies.items()
    ]
    return [f"an {_HEIGHT} ({listed(parts)} in the recording)"] if parts else []


def _name(gap: "Gap") -> str:
    """Return what a gap is in; of an input what is wrong with it."""
    wrong = {"windows": "which is missing", "share of windows": "which explains nothing as recorded"}
    return f"{gap.name}, {wrong[gap.unit]}" if gap.unit in wrong else gap.name


def _tell_cut(found: "Comparison") -> str:
    """Return whether velocities are cut, which the game does since 2018; nothing where it is not known."""
    cut = {fit.rules.of("velocity_cut").value for fit in found.fits if fit.rules.tests}
    if len(cut) == 1 and "shown" in cut:
        return "Velocities are cut every tick, as in recordings of Rocket League since September 2018."
    if len(cut) == 1 and "absent" in cut:
        return "Velocities are not cut every tick, as in RocketSim and in Rocket League recorded in 2018."
    return ""


def _tell_errors(found: "Comparison") -> str:
    """Return the median errors of cars and ball after a second, or after what could be judged."""
    errors: dict[tuple[str, int], list[str]] = {}  # bodies by error and ticks
    for name, body in (("car", "the cars"), ("ball", "the ball")):
        rows = {row.horizon_ticks: row for row in found.situations if row.name == name}
        row = row_to_tell(rows) if rows else None
        if row is not None and row.verdict.value not in ("too few windows", "missing input"):
            error = "less than 0.01" if row.p50 < LEAST else short(row.p50)
            errors.setdefault((error, row.horizon_ticks), []).append(body)
    rules = {fit.rules.rules for fit in found.fits}
    if not errors or not rules:
        return ""
    who = name_rules(*rules) if len(rules) == 1 else "RocketSim with the rules of each recording"
    told = [
        f"{error} uu off {listed(bodies)} after {in_time(ticks)}" for (error, ticks), bodies in errors.items()
    ]
    level = "With the heights corrected, " if any(fit.heights for fit in found.fits) else ""
    return f"{level}{who} is {listed(told)} (medians)."


def _tell_unjudged(found: "Comparison") -> str:
    judged = {row.name for row in found.situations if row.verdict.value != "too few windows"}
    names = dict.fromkeys(row.name for row in found.situations if row.name not in judged)
    every = [*names]
    if any(fit.driven and fit.delay is None and not fit.lag.curve for fit in found.fits):
        every.append("how late inputs act")
    return f"Too little to judge: {', '.join(every)}." if every else ""


def _tell_untold(found: "Comparison") -> str:
    """Return which columns of controls a map could have mixed up unseen; nothing where none."""
    every = found.untold
    if not every:
        return ""
    unused = [name for name in every[0].unused if all(name in each.unused for each in every)]
    parts = [f"{listed(unused)} (0 in every row)"] if len(unused) > 1 else []
    parts += [
        f"{listed(group)} (equal in every row)" for group in every[0].equal
        if all(group in each.equal for each in every)
    ]  # fmt: skip
    return f"If the map mixed up {' or '.join(parts)}, nothing would show it." if parts else ""


def row_to_tell(rows: Mapping[int, "Situation"]) -> "Situation":
    """Return the row of a second; of a shorter horizon where only that has enough windows to judge.

    Args:
        rows: The rows of one situation, by their horizons in ticks.
    """
    judged = [at for at, row in rows.items() if at <= SECOND and row.verdict.value != "too few windows"]
    return rows[max(judged)] if judged else rows.get(SECOND, rows[max(rows)])


def told_unexplained(row: "Situation") -> str:
    """Return that a situation exceeds its tolerance, unexplained by all that was tried."""
    why = "nothing that was tried explains it"
    if row.verdict.value == "missing input":
        why = "inputs that were not recorded may be why"
    return (
        f"{row.name}: {short(row.p50)} uu off after {in_time(row.horizon_ticks)}, where the tolerance is "
        f"{row.tolerance:g} ({count_of(row.windows, 'window')}); {why}"
    )


def told_changes(lag: "LagFit") -> str:
    """Return when a lag changed; nothing where it did not."""
    if len(lag.pieces) < 2:
        return ""
    first = [] if lag.pieces[0].ticks == lag.ticks else [f"at first {lag.pieces[0].ticks}"]
    return ", " + ", ".join(first + [f"{one.ticks} from {one.seconds:.1f} s on" for one in lag.pieces[1:]])


def told_fit(fit: "Fit") -> str:
    """Return clock, age of states and input latency of a recording, each with how sure it is."""
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
        more = (
            f", or up to {count_of(fit.unseen, 'tick')} later, as rows leave ticks out" if fit.unseen else ""
        )
        parts.append(
            f"inputs act {late}{told_changes(fit.lag)}{doubt} (in {100 * fit.lag.sure:.0f} % of "
            f"resampled sets of {count_of(fit.lag.windows, 'window')}){more}"
        )
    elif fit.driven and fit.delay is None:
        few = f"only {count_of(fit.lag.windows, 'window')} could" if fit.lag.windows else "no window could"
        parts.append(f"how late inputs act is not known, as {few} tell; no delay is assumed")
    if fit.applied and fit.delay is not None:
        delay = fit.delay
        spread = "" if delay.noise < 0.005 else f" ± {delay.noise:.2f}"
        after = (
            f"{count_of(delay.input_latency, 'tick')}{spread} late"
            if delay.input_latency
            else "without delay"
        )
        parts.append(f"what bots sent was applied {after} ({delay.inputs:,} inputs)")
    return "; ".join(parts)


def _tell_clock(fit: "Fit") -> str:
    clock, doubt = fit.clock, 200 * fit.clock.error
    if fit.offset.ages:
        return "time is that of the replay's frames"
    if not math.isfinite(doubt):
        return "whether its clock is right is not known, as nothing moves enough"
    percent = 100 * (clock.scale - 1)
    if abs(percent) <= max(doubt, _CLOCK_STEP):
        return f"its clock is right to {max(doubt, _CLOCK_STEP):.1g} %"
    return f"its clock runs {abs(percent):.3g} % {'slow' if percent > 0 else 'fast'} (± {doubt:.1g} %)"
