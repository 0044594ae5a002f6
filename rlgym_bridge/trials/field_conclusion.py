"""Say in a few sentences what a field test found, and what to do next."""

from statistics import median

from rlgym_bridge.compare.sentences import explain_difference, short
from rlgym_bridge.dialect import POINTS
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3
from rlgym_bridge.trials.field_report import FieldReport
from rlgym_bridge.trials.pack_parts import PARTS
from rlgym_bridge.user_input.arguments import count_of

SIMULATOR_NAMES = {ROCKETSIM3: "RocketSim 3", ROCKETSIM2: "RocketSim 2.2.1"}
"""Names of the simulators for people."""


def conclude_field_test(found: FieldReport) -> list[str]:
    """Return the conclusion of a report, as sentences."""
    sentences = [_wholeness(found), _dialect(found), _lateness(found), _difference(found), _errors(found)]
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


def _difference(found: FieldReport) -> str:
    return "" if found.difference is None else f"The scenes: {explain_difference(found.difference)}"


def _errors(found: FieldReport) -> str:
    after = {
        simulator: [one.error for one in errors if one.horizon_ticks == TICKS_PER_SECOND]
        for simulator, errors in found.errors.items()
    }
    told = [
        f"{SIMULATOR_NAMES[simulator]} is off by {short(median(errors))} uu"
        for simulator, errors in after.items()
        if errors
    ]
    if not told:
        return ""
    judged = found.errors[found.compared]
    scenes = {one.scene for one in judged}
    beyond = {one.scene for one in judged if one.beyond}
    return (
        f"After a second {' and '.join(told)} (median of {count_of(len(after[found.compared]), 'path')}); "
        f"{len(beyond)} of {count_of(len(scenes), 'scene')} go beyond what the recording leaves open."
    )


def _next_step(found: FieldReport) -> str:
    broken = [part.name for part in found.about.parts if part.state != "done"]
    if broken:
        return f"Next: play these parts again, with --parts {' '.join(broken)}."
    if found.about.server == "sim":
        return "Next: play it in the real game, with --server rlbot; this one says nothing about that."
    return "Next: give the file to whoever gave you this project, so that its defaults can follow the game."
