"""Find out which dialect a server speaks: `rlgym-bridge probe`."""

import argparse
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.live.agent_connections import NoServer, agents_of, with_own_ids
from rlgym_bridge.protocol_variant import OTHER_SERVER, OWN_SERVER, POINTS
from rlgym_bridge.trials.findings import TIMING, ProbeReport
from rlgym_bridge.trials.measured_match import measured_match
from rlgym_bridge.trials.probe import Players, Probe, match_of_two

_SECONDS: Final = {"sim": 240.0, "rlbot": 300.0}  # wall time after which the probe ends whatever it knows

STATUS: Final = "0 every point is settled, 1 one is not, 2 bad usage or no server"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Find out how a server behaves on the points that RLBot's documents leave open (its dialect). The "
        "probe plays up to two minutes with two cars of its own and reads the answers off the packets."
    )
    shared.add_server_option(parser)
    shared.add_option(
        parser, "--out FILE", "write what was found to FILE; a bot reads dialect.toml in its own folder", Path
    )
    shared.add_embedded_options(parser)
    shared.add_dialect_option(parser)


def run(options: argparse.Namespace) -> int:
    """Ask the server, print and perhaps write what it said."""
    console = shared.console_of(options)
    output_files.check_outputs(options.json, options.out)
    report, where, own = _ask(options)
    print_findings(console, report, [*POINTS, *TIMING])
    if own and options.server == "rlbot":
        console.print(
            f"[yellow]note:[/] {escape(where)} says nothing about the real game: bots use this only there"
        )
    text = report.toml(where, OWN_SERVER if own else OTHER_SERVER)
    if options.out is None:
        console.print(f"\n{text}\n--out FILE keeps it", markup=False)
    else:
        output_files.write(options.out, text)
        console.print(f"written to {options.out}", markup=False)
    output_files.write_json(options.json, report.as_json())
    return 0 if report.settled else 1


def _ask(options: argparse.Namespace) -> tuple[ProbeReport, str, bool]:
    """Return what was found out, of whom, and whether that is this project's own match server."""
    shared.refuse_with_rlbot(options, dialect=[], latency=0, pace="lockstep")
    match, embedded = with_own_ids(match_of_two()), shared.embedded_server(options)
    with (
        measured_match(match, embedded) as server,
        closing(Players(server.address, agents_of(match), server.patience)) as players,
    ):
        probe = Probe(players.ids, players.field)
        try:
            players.follow(probe, _SECONDS[options.server])
        finally:
            players.stop_match()
        report = probe.report()
        where = f"{server.address[0]}:{server.address[1]}"
        if not report.packets:
            raise NoServer(f"{where} sent no packet: {'; '.join(report.notes)}")
    name = "this project's match server" if server.own else "RLBotServer"
    return report, name if embedded else f"{name} at {where}", server.own


def print_findings(console: Console, report: ProbeReport, points: Iterable[str]) -> None:
    """Print what a probe found on some points, with its evidence, and its notes."""
    table = shared.make_table("point", "value", "evidence")
    for point in points:
        value = report.value(point)
        usual = point not in POINTS or value == POINTS[point].values[0]
        look = "red" if value is None else "default" if usual else "cyan"
        evidence = report.evidence.get(point, "")
        table.add_row(point, f"[{look}]{escape(value or 'not settled')}[/]", escape(evidence))
    console.print(table)
    for note in report.notes:
        console.print(f"[yellow]note:[/] {escape(note)}")
