"""Measure where simulator and recorded game part, and why: `rlgym-bridge compare`."""

import argparse
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.findings.comparison_result import Comparison, RefusedFile
from rlgym_bridge.compare.findings.drift import WINDOWS
from rlgym_bridge.compare.findings.phrases import short
from rlgym_bridge.compare.findings.sentences import (
    explain_difference,
    row_to_tell,
    told_fit,
    told_unexplained,
)
from rlgym_bridge.compare.findings.shown_rules import AUTO
from rlgym_bridge.compare.findings.tolerances import LEAST_WINDOWS
from rlgym_bridge.compare.findings.two_sets import LEVEL, against
from rlgym_bridge.compare.findings.verdict import GapVerdict
from rlgym_bridge.compare.output.fitted_settings import fit_as_toml
from rlgym_bridge.compare.output.report import report, report_against
from rlgym_bridge.compare.simulate.windows import HORIZONS
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.sim.game_rules import RULES, parse_rules
from rlgym_bridge.user_input.arguments import count_of

T = TypeVar("T")

_SECOND = 120  # ticks
_WIDTH = 124  # letters: where a terminal or a pipe says that it has fewer, numbers would be cut
_LOOK = {
    GapVerdict.AGREES: "green",
    GapVerdict.PHYSICS: "bold red",
    GapVerdict.TIMING: "yellow",
    GapVerdict.HIDDEN: "dim",
    GapVerdict.MISSING: "bold red",
    GapVerdict.WRONG: "bold red",
    GapVerdict.OFFSET: "bold red",
    GapVerdict.FEW: "dim",
}


STATUS: Final = (
    "0 they agree, or timing alone differs, 1 physics, inputs or heights differ, or with --against the "
    "matches were played differently, 2 bad usage or input: also where one file was refused and the others "
    "compared, or where too little was recorded to judge anything"
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Measure how far RocketSim and recorded matches differ. RocketSim is put into the recorded state at "
        "many moments and driven with the recorded inputs. Clock, input latency and tick offset are fitted "
        "first. With --against, test instead whether two sets of matches were played alike."
    )
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help=".mcap, .replay, or tables with --columns"
    )
    parser.add_argument(
        "--against", type=Path, nargs="+", metavar="FILE",
        help="second set of matches (.mcap), such as the same bots in the real game: were they played alike?",
    )  # fmt: skip
    shared.add_columns_option(parser)
    parser.add_argument(
        "--windows", type=int, default=WINDOWS, metavar="N",
        help="about how many windows to simulate for the ball and for each car, shared among the files, but "
        "at least 40 in each; fewer are quicker and less certain (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--fit", type=Path, nargs="?", const=Path("fit.toml"), metavar="FILE.toml",
        help="write the fitted physics constants and delays, for `rlgym-bridge train ... FILE.toml` and "
        "`rlgym-bridge match --physics FILE.toml` (default name: fit.toml)",
    )  # fmt: skip
    parser.add_argument(
        "--rules", default=AUTO, metavar="RULES",
        help="rules of the game to simulate with: auto for those that the recording shows, rocketsim for "
        "none, default for those of matches and training, game for all, or names with commas: "
        f"{', '.join(RULES)} (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write a report with plots as one HTML page"
    )
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Read, compare, and print."""
    console = shared.console_of(options)
    if options.fit is not None and options.fit.suffix != ".toml":
        raise ValueError(f"--fit is {options.fit}, expected a file to write, whose name ends with .toml")
    read = [*options.files, *(options.against or ()), options.columns]
    output_files.check_outputs(options.json, options.html, options.fit, inputs=read)
    if options.windows < 1:
        raise ValueError(f"--windows is {options.windows}, expected 1 or more")
    if options.rules != AUTO:
        parse_rules(options.rules)
    if options.against is not None:
        return _against(options, console)
    with shared.console_of(options, stderr=True).status("reading ..."):
        recordings, unread = _read(options.files, lambda file: open_recording(file, options.columns))
    try:
        with shared.console_of(options, stderr=True).status("beginning ...") as status:
            found = compare_recordings(
                *recordings, windows=options.windows, rules=options.rules,
                progress=lambda doing: status.update(f"{doing} ..."),
            )  # fmt: skip
    except ValueError as error:
        _name(error, unread)
        raise
    found.refused[:0] = unread
    # Written before anything is printed: a reader of the output may leave.
    written = output_files.write_json(options.json, found.as_json())
    if options.fit is not None:
        written &= output_files.write(options.fit, fit_as_toml(found))
    if options.html is not None:
        written &= output_files.write(options.html, report(found))
    _print(console, found)
    for path in (options.fit, options.html):
        if path is not None and written:
            console.print(f"written to {escape(str(path))}", soft_wrap=True)
    if not written or found.refused or (found.tells_nothing and not found.gaps):
        return 2
    return 0 if found.agrees else 1


def _read(files: Sequence[Path], read: Callable[[Path], T]) -> tuple[list[T], list[RefusedFile]]:
    """Return what files hold, and the files that cannot be read.

    Raises:
        OSError, ImportError, ValueError: None can be read; the error of the first, with the others named.
    """
    found: list[T] = []
    refused, errors = [], []
    for file in files:
        try:
            found.append(read(file))
        except (OSError, ImportError, ValueError) as error:
            refused.append(RefusedFile(str(file), str(error)))
            errors.append(error)
    if not found:
        _name(errors[0], refused[1:])
        raise errors[0]
    return found, refused


def _name(error: Exception, refused: Sequence[RefusedFile]) -> None:
    """Name what else was refused behind an error's message."""
    for one in refused:
        error.add_note(one.describe())


def _print_refused(console: Console, refused: Sequence[RefusedFile]) -> None:
    for one in refused:
        console.print(f"[bold red]not compared[/]: {escape(one.describe())}", soft_wrap=True)


def _against(options: argparse.Namespace, console: Console) -> int:
    if options.fit is not None:
        raise ValueError("--fit goes with a comparison of physics, expected none with --against")
    if options.columns is not None:
        raise ValueError("--against compares matches of ours (.mcap), expected no --columns with it")
    (here, first), (there, second) = (
        _read(files, lambda file: read_match(file, shadow=False))
        for files in (options.files, options.against)
    )
    found, refused = against(here, there), [*first, *second]
    result = {"against": found.as_json(), "refused": [vars(one) for one in refused]}
    if not output_files.write_json(options.json, result):
        return 2
    if options.html is not None and not output_files.write(options.html, report_against(found)):
        return 2
    _print_refused(console, refused)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("differs", overflow="fold")
    for name in ("FILE", "--against", "--against less FILE, 95 %", "distance", "chance"):
        table.add_column(name, justify="right", no_wrap=True)
    differing = [one for one in found.differences if one.differs]
    console.print("played differently" if differing else "no difference was found")
    for one in differing:
        table.add_row(
            escape(one.name), f"{one.here:.4g}", f"{one.there:.4g}", f"{one.low:+.3g} .. {one.high:+.3g}",
            f"{one.distance:.3f}", f"{one.chance:.4f}",
        )  # fmt: skip
    if differing:
        console.width = max(console.width, _WIDTH)
        console.print(table)
    said = f"{len(differing):,} differ" if differing else "none differs"
    console.print(
        f"{len(found.differences):,} features over {found.pieces[0]} and {found.pieces[1]} pieces of play: "
        f"{said} (chance of any false alarm: {100 * LEVEL:g} %)",
        soft_wrap=True,
    )
    if differing:
        console.print(
            "means of each set; distance: of two distributions, 0 equal, 1 nothing in common, of single "
            "numbers in standard deviations of a piece; chance: that any feature of equal sets is as far "
            "apart; a piece of play has up to ten seconds",
            soft_wrap=True,
        )
    if refused:
        return 2
    return 0 if found.alike else 1


def _print(console: Console, found: Comparison) -> None:
    """Print the sentences, what differs, the numbers, and how they were found, in this order."""
    console.print(f"[bold]{escape(explain_difference(found))}[/]", soft_wrap=True)
    _print_refused(console, found.refused)
    for gap in found.gaps:
        console.print(f"[{_LOOK[gap.kind]}]{gap.kind.value}[/]: {escape(gap.text)}", soft_wrap=True)
    for row in found.unexplained:
        said = escape(told_unexplained(row))
        console.print(f"[{_LOOK[row.verdict]}]{row.verdict.value}[/]: {said}", soft_wrap=True)
    if found.tells_nothing:
        console.print(f"no situation has {LEAST_WINDOWS} windows: record more", soft_wrap=True)
    _print_errors(console, found)
    for fit in found.fits:
        console.print(f"{escape(fit.source)}: {escape(told_fit(fit))}", soft_wrap=True)
        console.print(f"{escape(fit.source)}: {escape(fit.rules.told())}", soft_wrap=True)
    for note in found.notes:
        console.print(escape(note), soft_wrap=True)


def _print_errors(console: Console, found: Comparison) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("uu off after ticks", no_wrap=True)
    for horizon in HORIZONS:
        table.add_column(str(horizon), justify="right", no_wrap=True)
    for name in ("p90", "floor", "windows"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for name, group in groupby(found.situations, lambda row: row.name):
        rows = {row.horizon_ticks: row for row in group}
        row = row_to_tell(rows)
        after = "" if row.horizon_ticks == _SECOND else f" after {count_of(row.horizon_ticks, 'tick')}"
        table.add_row(
            name,
            *(short(rows[one].p50) if one in rows else "-" for one in HORIZONS),
            short(row.p90), short(row.floor), f"{row.windows:,}",
            f"[{_LOOK[row.verdict]}]{row.verdict.value}[/]{after}",
        )  # fmt: skip
    console.width = max(console.width, _WIDTH)
    console.print(table)
    console.print(
        "Medians in uu after 1 to 240 ticks; 120 ticks are a second. p90, floor (RocketSim against itself), "
        "windows (moments from which it was simulated) and verdict are those after 120 ticks, or after the "
        "ticks beside the verdict. --html and --json have the others.",
        soft_wrap=True,
    )
    below = any(row.verdict is GapVerdict.PHYSICS and row.p50 <= row.tolerance for row in found.situations)
    if below and any(size.gap for size in found.sizes):
        console.print(
            "physics gap below the tolerance: a constant of that body differs, so its errors will grow"
        )
