"""Measure a server in one go and pack what it did, or read such a pack: `rlgym-bridge field-test`."""

import argparse
import logging
import platform
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table

from rlgym_bridge.cli import match as match_command
from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.cli.commands import make_parser
from rlgym_bridge.cli.doctor import check_game
from rlgym_bridge.cli.probe import print_findings
from rlgym_bridge.compare.comparison_result import Comparison, short, told_untried
from rlgym_bridge.components.user_errors import describe_error
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.live.agent_connections import is_own_server
from rlgym_bridge.policy.load_player import CHASER
from rlgym_bridge.server import ConfigError
from rlgym_bridge.server.lineup import find_shipped_folder
from rlgym_bridge.trials import diagnostic_pack, diagnostic_report
from rlgym_bridge.trials.diagnostic_test import MOST_NOTE, FieldTest, hide_personal
from rlgym_bridge.trials.findings import TIMING, ProbeReport
from rlgym_bridge.trials.input_latency import TimingReport
from rlgym_bridge.trials.measured_match import running_server
from rlgym_bridge.trials.scripted_scenes import all_scenes
from rlgym_bridge.user_input.arguments import check_names, count_of
from rlgym_bridge.user_input.durable_files import naming
from rlgym_bridge.user_input.extras import versions_of
from rlgym_bridge.user_input.text_files import escape_controls, parse_json, read_text

STATUS: Final = (
    "0 all parts are done (with --read: and could be read), 1 a part failed, was stopped, or cannot be read, "
    "2 bad usage or input, or no server"
)
_PACKAGES: Final = ("rlgym-bridge", "rlbot", "rlbot-flatbuffers", "rocketsim", "rlgym-rocket-league", "numpy")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Measure a server in one go: its dialect, its timing, a hundred scripted scenes, and a short match "
        "of the shipped bot. All goes into one zip file, without anything personal. In the real game it "
        "takes about seven minutes. --read makes a report of such a file."
    )
    shared.add_server_option(parser)
    shared.add_option(parser, "--out FILE", "new zip file to write", Path, default=Path("field-test.zip"))
    shared.add_option(parser, "--read FILE", "read FILE and print a report of it", Path)
    shared.add_option(
        parser, "--html FILE", "with --read: also compare its recordings as `compare` does, and write that "
        "report (a minute)", Path,
    )  # fmt: skip
    shared.add_option(
        parser, "--parts PART", f"parts to play, of {', '.join(diagnostic_pack.PARTS)} (default: all)",
        nargs="+", default=list(diagnostic_pack.PARTS),
    )  # fmt: skip
    shared.add_option(
        parser, "--scenes KIND", f"kinds of scenes to play, of {', '.join(_kinds())} (default: all)",
        nargs="+",
    )  # fmt: skip
    shared.add_option(
        parser, "--seconds S", "game time of the match in seconds", shared.seconds, default=30.0
    )
    shared.add_embedded_options(parser)
    shared.add_simulator_option(parser, default=None)
    shared.add_dialect_option(parser)


def run(options: argparse.Namespace) -> int:
    """Make a pack, or read one."""
    return _read(options) if options.read is not None else _make(options)


def _read(options: argparse.Namespace) -> int:
    output_files.check_outputs(options.json, options.html, inputs=[options.read])
    with (
        diagnostic_pack.open_field_pack(options.read) as pack,
        shared.console_of(options, stderr=True).status("reading ...") as status,
    ):
        progress = partial(_show, status)
        found = diagnostic_report.read_field_test(pack, progress)
        difference = None if options.html is None else diagnostic_report.compare_pack(pack, progress)
    print_field_report(shared.console_of(options), found)
    output_files.write_json(
        options.json, found.as_json() | {"conclusion": diagnostic_report.conclude_field_test(found)}
    )
    if difference is not None:
        from rlgym_bridge.compare.report import report

        output_files.write(
            options.html, report(difference, f"This field test was {SERVERS[found.about.server]}.")
        )
    return 0 if found.whole else 1


def _make(options: argparse.Namespace) -> int:
    console = shared.console_of(options)
    _check(options)
    real = options.server == "rlbot" and not is_own_server(running_server())  # which says what is missing
    with (
        TemporaryDirectory(prefix="rlgym-bridge-", ignore_cleanup_errors=True) as folder,
        shared.server_log(logging.WARNING),
    ):
        kinds = options.scenes or _kinds()
        scenes = tuple(scene for scene in all_scenes() if scene.kind in kinds)
        test = FieldTest(
            Path(folder), scenes, float(options.seconds), partial(shared.embedded_server, options),
            partial(_play_match, options),
        )  # fmt: skip
        _announce(options, console, test, real)
        began = time.perf_counter()
        outcomes = _play_all(options, console, test)
        recordings = test.copy_recordings(outcomes)
        day = time.strftime("%Y-%m-%d", time.gmtime())
        server: Literal["rlbot", "sim"] = "rlbot" if real else "sim"
        system = {name: getattr(platform, name)() for name in ("system", "machine")}
        versions = versions_of(*_PACKAGES) | {"python": platform.python_version()} | system
        about = diagnostic_pack.AboutPack(diagnostic_pack.FORMAT, day, server, versions, {
            "pace": options.pace if options.server == "sim" else None, "match_seconds": options.seconds,
            "seconds": round(time.perf_counter() - began, 1),
        }, outcomes)  # fmt: skip
        with naming(options.out):
            diagnostic_pack.write_field_pack(options.out, about, test.results, recordings)
        size = options.out.stat().st_size
    say = shared.printer(options)
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
    say(f"written to {options.out} ({shown}); `rlgym-bridge field-test --read {options.out}` shows it")
    if real:
        say(f"please give {options.out} to whoever gave you this project")
    result = {"pack": str(options.out), "bytes": size, "parts": msgspec.to_builtins(outcomes)}
    output_files.write_json(options.json, result)
    return int(any(one.state != "done" for one in outcomes))


def _kinds() -> list[str]:
    return list(dict.fromkeys(scene.kind for scene in all_scenes()))


def _check(options: argparse.Namespace) -> None:
    """Raise `ConfigError` or `ValueError` for options that do not fit together."""
    output_files.check_outputs(options.json, options.out)
    check_names("--parts", options.parts, diagnostic_pack.PARTS)
    check_names("--scenes", options.scenes or (), _kinds())
    if options.scenes and "scenes" not in options.parts:
        raise ConfigError(f"--scenes goes with the part scenes, and --parts has {', '.join(options.parts)}")
    if options.html is not None:
        raise ConfigError("--html goes with --read FILE, expected none where a pack is made")
    if options.out.suffix != ".zip":
        raise ConfigError(f"--out is {options.out}, expected a file whose name ends with .zip")
    if options.out.exists():
        raise ConfigError(f"--out is {options.out}, which is there already; expected a new file")
    if not options.seconds:
        raise ConfigError("--seconds is 0, expected more, or leave out the match by --parts")
    shared.impairments_of(options)
    shared.dialect_of(options)
    shared.refuse_with_rlbot(options, dialect=[], latency=0, simulator=None, pace="lockstep")


def _announce(options: argparse.Namespace, console: Console, test: FieldTest, real: bool) -> None:
    names = [name for name in diagnostic_pack.PARTS if name in options.parts]
    seconds = sum(map(test.seconds, names))
    how_long = f"{seconds:.0f} seconds of play" if seconds < 60 else f"{seconds / 60:.1f} minutes of play"
    if options.server == "rlbot" and not real:
        console.print(
            "[yellow]note:[/] this is the project's own match server in RLBotServer's place: a rehearsal, "
            "which says nothing about the real game"
        )
    if real:
        for one in check_game():
            if one.advice:
                console.print(f"[yellow]note:[/] {escape(f'{one.name}: {one.found}; {one.advice}')}")
        how_long += f", and the game loads {len(names)} matches"
    elif options.server == "sim" and options.pace == "lockstep":
        how_long += ", as fast as this computer simulates it"
    console.print(f"this takes {how_long}; Ctrl-C ends it and keeps what there is")


def _play_all(
    options: argparse.Namespace, console: Console, test: FieldTest
) -> list[diagnostic_pack.PartOutcome]:
    """Play the parts one after another; where one fails the next ones are played, until Ctrl-C."""
    outcomes = {
        name: diagnostic_pack.PartOutcome(name, "not begun")
        for name in diagnostic_pack.PARTS
        if name in options.parts
    }
    try:
        for name in outcomes:
            outcomes[name] = diagnostic_pack.PartOutcome(name, "stopped")
            outcomes[name] = _play_part(name, shared.console_of(options, stderr=True), test)
            _print_outcome(console, outcomes[name])
    except KeyboardInterrupt:
        for outcome in outcomes.values():
            if outcome.state == "stopped":
                _print_outcome(console, outcome)
    return list(outcomes.values())


def _play_part(name: str, console: Console, test: FieldTest) -> diagnostic_pack.PartOutcome:
    began = time.perf_counter()
    state: Literal["done", "failed"] = "done"
    note = ""
    with console.status(f"{name}: {test.seconds(name):.0f} s of play ...") as status:
        test.progress = partial(_show, status)
        try:
            test.play(name)
        except Exception as error:  # whatever a server does: the next part may go well
            said = describe_error(error)
            print(f"error: {name}: {escape_controls(said)}", file=sys.stderr)  # whole, unlike in the pack
            state, note = "failed", hide_personal(said)[:MOST_NOTE]
    return diagnostic_pack.PartOutcome(name, state, round(time.perf_counter() - began, 1), note)


def _print_outcome(console: Console, outcome: diagnostic_pack.PartOutcome) -> None:
    said = f"[red]{outcome.state}[/]: {escape(outcome.note)}" if outcome.note else outcome.state
    console.print(f"{outcome.name}: {said} ({outcome.seconds:.0f} s)")


def _show(status: Status, doing: str) -> None:
    status.update(f"{doing} ...")


def _play_match(options: argparse.Namespace, recording: Path) -> diagnostic_pack.MatchPart:
    """Play the shipped bot against Chaser with `match`, and record it."""
    result = recording.with_suffix(".json")
    words = [
        "--server", options.server, "--blue", str(find_shipped_folder() / "bot" / "policy"),
        "--orange", CHASER, "--seconds", f"{options.seconds:g}", "--quiet",
        "--record", str(recording), "--json", str(result),
    ]  # fmt: skip
    if options.server == "sim":
        words += ["--pace", options.pace, "--latency", str(options.latency), "--max-overtime", "0"]
        words += [] if options.simulator is None else ["--simulator", options.simulator]
        words += [word for point in options.dialect for word in ("--dialect", point)]
    match_command.run(make_parser("match").parse_args(words))
    told = parse_json(read_text(result))
    touches, unanswered = ([bot[name] for bot in told["bots"]] for name in ("touches", "missed"))
    return diagnostic_pack.MatchPart(
        tuple(told["score"]), told["playing_ticks"], told["ended_by"], touches, unanswered
    )


_BODIES = {"other": "struck car"}  # names of bodies that do not speak for themselves
SERVERS = {
    "rlbot": "made on RLBotServer with the real game, unless another simulator took its place",
    "sim": "made on this project's own match server: it says nothing about the real game",
}
"""Words for the server of a field test, by `AboutPack.server`."""


def print_field_report(console: Console, found: diagnostic_report.FieldReport) -> None:
    """Print what the pack is, what was measured, and what is missing."""
    about = found.about
    shared.widen(console)
    console.print(f"{SERVERS[about.server]}, {escape(about.made)}")
    console.print(f"[bold]{escape(' '.join(diagnostic_report.conclude_field_test(found)))}[/]\n")
    versions = ", ".join(f"{name} {text}" for name, text in about.versions.items())
    console.print(escape(versions))
    for part in about.parts:
        if part.state != "done" or part.note:
            said = f": {part.note}" if part.note else ""
            console.print(f"[red]{escape(part.name)} {part.state}[/]{escape(said)}")
    if left := diagnostic_report.parts_left_out(found):
        console.print(f"left out by --parts: {', '.join(left)}")
    if (probe := found.parts.get("probe")) is not None:
        console.print("\n[bold]dialect[/]")
        print_findings(console, probe, [point for point in probe.evidence if point not in TIMING])
    _print_timing(console, found)
    if (match := found.parts.get("match")) is not None:
        _print_match(console, match, found)
    if found.difference is not None:
        _print_difference(console, found.difference)
    if found.errors:
        _print_scenes(console, found)
    for note in found.notes:
        console.print(f"[yellow]note:[/] {escape(note)}")


def _print_timing(console: Console, found: diagnostic_report.FieldReport) -> None:
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
        console.print(f"input latency, by numbered inputs: {told} ({escape(counts)})")
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


def _print_match(
    console: Console, match: diagnostic_pack.MatchPart, found: diagnostic_report.FieldReport
) -> None:
    seconds = match.playing_ticks / TICKS_PER_SECOND
    lost = ", ".join("-" if count is None else f"{count:,}" for count in match.unanswered)
    asked = found.about.settings.get("match_seconds")
    longer = isinstance(asked, int | float) and seconds > asked + 1 and found.about.server == "sim"
    why = f" ({asked:g} s by the clock, which stands until the first touch after a kickoff, and the last \
flight of the ball)"
    console.print(
        f"match: the shipped bot (blue) {match.score[0]} : {match.score[1]} Chaser (orange) in "
        f"{seconds:.0f} s of play{why if longer else ''}; of the two bots in this order: touches "
        f"{', '.join(map(str, match.touches))}; packets without an answer {lost}"
    )


def _print_difference(console: Console, difference: Comparison) -> None:
    told = [gap.text for gap in difference.gaps] + [told_untried(one) for one in difference.untried]
    if told:
        console.print("\n[bold]what differs in the scenes, and what explains it[/]")
    for text in told:
        console.print(escape(text))
    for text in difference.unjudged:
        console.print(f"not judged: {escape(text)}")


def _print_scenes(console: Console, found: diagnostic_report.FieldReport) -> None:
    played = count_of(len(found.parts["scenes"].played), "scene")
    console.print(
        f"\n[bold]how far the simulators are off[/], uu, in {found.scenes} of {played} that were played"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("\nscenes", no_wrap=True)
    for simulator in found.errors:
        above = diagnostic_report.SIMULATOR_NAMES[simulator]
        for ticks in diagnostic_report.SCENE_HORIZONS:
            table.add_column(f"{above}\n{ticks / TICKS_PER_SECOND:g} s", justify="right", no_wrap=True)
            above = ""
        table.add_column("\nworst", justify="right", no_wrap=True)
        table.add_column("\nbeyond", justify="right", no_wrap=True)
    for kind, body in dict.fromkeys((one.kind, one.body) for one in found.kinds):
        group = [one for one in found.kinds if (one.kind, one.body) == (kind, body)]
        rows = {(one.simulator, one.horizon_ticks): one for one in group}
        cells = []
        for simulator in found.errors:
            own = [row for (name, _), row in rows.items() if name == simulator]
            cells += [
                short(rows[simulator, ticks].error) if (simulator, ticks) in rows else "-"
                for ticks in diagnostic_report.SCENE_HORIZONS
            ]
            cells += [short(max(row.worst for row in own)), str(max(row.beyond for row in own))]
        many = max(row.scenes for row in rows.values())
        table.add_row(escape(f"{kind}, {_BODIES.get(body, body)} ({many})"), *cells)
    console.print(table)
    console.print(
        "Medians over the scenes of a kind (their number in brackets) 0.5, 1 and 2 s after the first "
        "controls, in uu (1 uu is 1 cm); worst is the largest of all. Beyond: in so many scenes the body is "
        "off by more than the recording leaves open. A struck car is the one that is bumped into. --json has "
        "each scene."
    )
