"""Say in a few sentences what a field test found, and what to do next."""

from statistics import median
from typing import Final

from rlgym_bridge.compare.findings.phrases import short
from rlgym_bridge.compare.findings.rule_tests import Shown
from rlgym_bridge.dialect import POINTS
from rlgym_bridge.field_test.field_report import FieldReport
from rlgym_bridge.field_test.pack_parts import PARTS
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.user_input.arguments import count_of

_VERBS: Final = {Shown.SHOWN: "shown", Shown.ABSENT: "absent", Shown.UNTOLD: "not told"}


def conclude_field_test(found: FieldReport) -> list[str]:
    """Return the conclusion of a report, as sentences."""
    sentences = [_wholeness(found), _dialect(found), _lateness(found), *_rules(found), _errors(found)]
    return [*filter(None, sentences), _next_step(found)]


def parts_left_out(found: FieldReport) -> list[str]:
    """Return the parts that `--parts` left out of a pack."""
    played = {part.name for part in found.about.parts}
    return [name for name in PARTS if name not in played]


def _wholeness(found: FieldReport) -> str:
    broken = [f"{part.name} {part.state}" for part in found.about.parts if part.state != "done"]
    broken += [count_of(len(found.notes), "note") + " below"] if found.notes else []
    if broken:
        return f"The test is not whole: {', '.join(broken)}."
    if left := parts_left_out(found):
        done = ", ".join(part.name for part in found.about.parts)
        return (
            f"The test is whole as far as it was asked for: {done}; left out by --parts: {', '.join(left)}."
        )
    return "The test is whole."


def _dialect(found: FieldReport) -> str:
    probe = found.parts.get("probe")
    if probe is None:
        return ""
    others = [
        f"{name}={value}" for name, value in probe.dialect.items()
        if name in POINTS and value != POINTS[name].values[0]
    ]  # fmt: skip
    unsettled = [name for name in POINTS if name not in probe.dialect]
    said = f"The dialect differs from the standard in {', '.join(others)}" if others else (
        "No point of the dialect differs from the standard"
    )  # fmt: skip
    return f"{said}{'; not settled: ' + ', '.join(unsettled) if unsettled else ''}."


def _lateness(found: FieldReport) -> str:
    timing, probe = found.parts.get("timing"), found.parts.get("probe")
    latency = timing.input_latency_ticks if timing is not None else None
    if latency is None and probe is not None:
        latency = probe.timing.input_latency
    if latency is None:
        return "" if timing is None and probe is None else "How late inputs act is not told."
    return f"Inputs act {count_of(latency, 'tick')} late." if latency else "Inputs act without delay."


def _rules(found: FieldReport) -> list[str]:
    if found.rules is None:
        return []
    named = {shown: [one.rule for one in found.rules.tests if one.shown is shown] for shown in Shown}
    told = [f"{', '.join(rules)} {_VERBS[shown]}" for shown, rules in named.items() if rules]
    return [f"The game's rules of physics: {'; '.join(told)}."] if told else []


def _errors(found: FieldReport) -> str:
    plain = [one.error for one in found.without if one.horizon_ticks == TICKS_PER_SECOND]
    ruled = [one.error for one in found.with_rules if one.horizon_ticks == TICKS_PER_SECOND]
    if not plain:
        return ""
    return (
        f"After a second RocketSim alone is off by {short(median(plain))} uu, and by {short(median(ruled))} "
        f"uu with all rules of the game (median of {len(plain):,} paths)."
    )


def _next_step(found: FieldReport) -> str:
    broken = [part.name for part in found.about.parts if part.state != "done"]
    if broken:
        return f"Next: play these parts again, with --parts {' '.join(broken)}."
    if found.about.server == "sim":
        return "Next: play it in the real game, with --server rlbot; this one says nothing about that."
    return "Next: give the file to whoever gave you this project, so that its defaults can follow the game."
