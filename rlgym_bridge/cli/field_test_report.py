"""Print the report of a field test."""

from collections.abc import Callable
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rlgym_bridge.cli.probe_command import findings_table
from rlgym_bridge.compare.comparison_result import Comparison, short
from rlgym_bridge.compare.sentences import told_untried
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.trials.diagnostic_pack import MatchPart
from rlgym_bridge.trials.diagnostic_report import (
    SCENE_HORIZONS,
    SIMULATOR_NAMES,
    FieldReport,
    KindError,
    conclude_field_test,
    parts_left_out,
)
from rlgym_bridge.trials.findings import TIMING, ProbeReport
from rlgym_bridge.trials.input_latency import TimingReport
from rlgym_bridge.user_input.arguments import count_of

_BODIES = {"other": "struck car"}  # names of bodies that do not speak for themselves
SERVERS = {
    "rlbot": "made on RLBotServer with the real game, unless another simulator took its place",
    "sim": "made on this project's own match server: it says nothing about the real game",
}
"""Words for the server of a field test, by `AboutPack.server`."""

_WIDTH = 124  # letters: where a terminal or a pipe says that it has fewer, numbers would be cut


def print_field_report(console: Console, found: FieldReport) -> None:
    """Print what the pack is, what was measured, and what is missing."""
    about = found.about
    console.width = max(console.width, _WIDTH)
    console.print(f"{SERVERS[about.server]}, {escape(about.made)}", soft_wrap=True)
    console.print(f"[bold]{escape(' '.join(conclude_field_test(found)))}[/]\n", soft_wrap=True)
    versions = ", ".join(f"{name} {text}" for name, text in about.versions.items())
    console.print(escape(versions), soft_wrap=True)
    for part in about.parts:
        if part.state != "done" or part.note:
            said = f": {part.note}" if part.note else ""
            console.print(f"[red]{escape(part.name)} {part.state}[/]{escape(said)}", soft_wrap=True)
    if left := parts_left_out(found):
        console.print(f"left out by --parts: {', '.join(left)}", soft_wrap=True)
    if (probe := found.parts.get("probe")) is not None:
        _print_dialect(console, probe)
    _print_timing(console, found)
    if (match := found.parts.get("match")) is not None:
        _print_match(console, match, found)
    if found.difference is not None:
        _print_difference(console, found.difference)
    if found.errors:
        _print_scenes(console, found)
    for note in found.notes:
        console.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)


def _print_dialect(console: Console, probe: ProbeReport) -> None:
    console.print("\n[bold]dialect[/]")
    console.print(findings_table(probe, [point for point in probe.evidence if point not in TIMING]))
    for fact in probe.facts:
        if fact.value is not None and fact.differs:
            said = f"{fact.name}: {fact.value:.4g}, by RocketSim {fact.expected:.4g} {fact.unit}"
            console.print(f"[red]differs[/] {escape(said)}", soft_wrap=True)
    for note in probe.notes:
        console.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)


def _print_timing(console: Console, found: FieldReport) -> None:
    probe: ProbeReport | None = found.parts.get("probe")
    timing: TimingReport | None = found.parts.get("timing")
    console.print("\n[bold]timing[/]")
    if probe is not None:
        rate = probe.timing.packets_per_second
        console.print(f"input latency, by the probe: {_ticks(probe.timing.input_latency)}")
        console.print(f"packets in a second of game: {'not told' if rate is None else f'{rate:g}'}")
    if timing is not None:
        told = _ticks(timing.input_latency_ticks)
        counts = ", ".join(
            f"{count:,} acted {name} {'tick' if name == '1' else 'ticks'} late"
            for name, count in timing.latencies.items()
        )
        console.print(f"input latency, by numbered inputs: {told} ({escape(counts)})", soft_wrap=True)
        spread = ", ".join(
            f"{name} {value:.2f}" for name, value in timing.interval_ms.items() if value is not None
        )
        console.print(f"between packets, ms: {escape(spread)}; {count_of(timing.lost_ticks, 'tick')} lost")
    if found.lag_ticks:
        console.print(
            f"[red]inputs that packets show as applied act {count_of(found.lag_ticks, 'tick')} later[/]"
        )


def _ticks(latency: int | None) -> str:
    return "not told" if latency is None else count_of(latency, "tick")


def _print_match(console: Console, match: MatchPart, found: FieldReport) -> None:
    seconds = match.playing_ticks / TICKS_PER_SECOND
    lost = ", ".join("-" if count is None else f"{count:,}" for count in match.unanswered)
    asked = found.about.settings.get("match_seconds")
    longer = isinstance(asked, int | float) and seconds > asked + 1 and found.about.server == "sim"
    why = f" ({asked:g} s by the clock, which stands until the first touch after a kickoff, and the last \
flight of the ball)"
    console.print(
        f"match: the shipped bot (blue) {match.score[0]} : {match.score[1]} Chaser (orange) in "
        f"{seconds:.0f} s of play{why if longer else ''}; of the two bots in this order: touches "
        f"{', '.join(map(str, match.touches))}; packets without an answer {lost}",
        soft_wrap=True,
    )


def _print_difference(console: Console, difference: Comparison) -> None:
    told = [gap.text for gap in difference.gaps] + [told_untried(one) for one in difference.untried]
    if told:
        console.print("\n[bold]what differs in the scenes, and what explains it[/]")
    for text in told:
        console.print(escape(text), soft_wrap=True)
    for text in difference.unjudged:
        console.print(f"not judged: {escape(text)}", soft_wrap=True)


def _print_scenes(console: Console, found: FieldReport) -> None:
    played = count_of(len(found.parts["scenes"].played), "scene")
    console.print(
        f"\n[bold]how far the simulators are off[/], uu, in {found.scenes} of {played} that were played"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("\nscenes", no_wrap=True)
    for simulator in found.errors:
        above = SIMULATOR_NAMES[simulator]
        for ticks in SCENE_HORIZONS:
            table.add_column(f"{above}\n{ticks / TICKS_PER_SECOND:g} s", justify="right", no_wrap=True)
            above = ""
        table.add_column("\nworst", justify="right", no_wrap=True)
        table.add_column("\nbeyond", justify="right", no_wrap=True)
    for (kind, body), group in groupby(
        sorted(found.kinds, key=_place_of(found)), lambda one: (one.kind, one.body)
    ):
        rows = {(one.simulator, one.horizon_ticks): one for one in group}
        cells = []
        for simulator in found.errors:
            own = [row for (name, _), row in rows.items() if name == simulator]
            cells += [
                short(rows[simulator, ticks].error) if (simulator, ticks) in rows else "-"
                for ticks in SCENE_HORIZONS
            ]
            cells += [short(max(row.worst for row in own)), str(max(row.beyond for row in own))]
        many = max(row.scenes for row in rows.values())
        table.add_row(escape(f"{kind}, {_BODIES.get(body, body)} ({many})"), *cells)
    console.print(table)
    console.print(
        "Medians over the scenes of a kind (their number in brackets) 0.5, 1 and 2 s after the first "
        "controls, in uu (1 uu is 1 cm); worst is the largest of all. Beyond: in so many scenes the body is "
        "off by more than the recording leaves open. A struck car is the one that is bumped into. --json has "
        "each scene.",
        soft_wrap=True,
    )


def _place_of(found: FieldReport) -> Callable[[KindError], int]:
    """Return what sorts rows so that those of a kind and body come together, in the order of the scenes."""
    order = list(dict.fromkeys((one.kind, one.body) for one in found.kinds))
    return lambda one: order.index((one.kind, one.body))
