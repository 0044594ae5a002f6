"""Measure where simulator and recorded game part, and why: `rlgym-bridge compare`."""

import argparse
import math
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.compare import comparison_result as result
from rlgym_bridge.compare.comparison import WINDOWS, compare_recordings
from rlgym_bridge.compare.report import report, report_against
from rlgym_bridge.compare.two_sets import LEVEL, against
from rlgym_bridge.compare.windows import HORIZONS
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.user_input.arguments import count_of

T = TypeVar("T")

_LOOK = {
    result.GapVerdict.AGREES: "green",
    result.GapVerdict.PHYSICS: "bold red",
    result.GapVerdict.TIMING: "yellow",
    result.GapVerdict.WRONG: "bold red",
    result.GapVerdict.OFFSET: "bold red",
    result.GapVerdict.UNTRIED: "bold red",
}


STATUS: Final = (
    "0 they agree, or timing alone differs, 1 physics, inputs, heights or something that is not tried here "
    "differ, or with --against the matches were played differently, 2 bad usage or input: also where one "
    "file was refused and the others compared, or where too little was recorded to judge anything"
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Measure how far a simulator and recorded matches differ. The simulator is put into the recorded "
        "state at many moments and driven with the recorded inputs. Clock, input latency and tick offset are "
        "fitted first. With --against, test instead whether two sets of matches were played alike."
    )
    shared.add_option(parser, "files FILE", ".mcap, .replay, or tables with --columns", Path, nargs="+")
    shared.add_option(
        parser, "--against FILE", "second set of matches (.mcap), such as the same bots in the real game: "
        "were they played alike?", Path, nargs="+",
    )  # fmt: skip
    shared.add_columns_option(parser)
    shared.add_option(
        parser, "--windows N", "about how many windows to simulate for the ball and for each car of a file; "
        "fewer are quicker and show less", int, default=WINDOWS,
    )  # fmt: skip
    shared.add_option(
        parser, "--fit FILE.toml", "write the fitted physics constants and delays, for `rlgym-bridge train "
        "... FILE.toml` and `rlgym-bridge match --physics FILE.toml` (default name: fit.toml)", Path,
        nargs="?", const=Path("fit.toml"),
    )  # fmt: skip
    shared.add_simulator_option(parser, None)
    shared.add_option(parser, "--html FILE", "write a report with plots as one HTML page", Path)


def run(options: argparse.Namespace) -> int:
    """Read, compare, and print."""
    console = shared.console_of(options)
    if options.fit is not None and options.fit.suffix != ".toml":
        raise ValueError(f"--fit is {options.fit}, expected a file to write, whose name ends with .toml")
    read = [*options.files, *(options.against or ()), options.columns]
    output_files.check_outputs(options.json, options.html, options.fit, inputs=read)
    if options.windows < 1:
        raise ValueError(f"--windows is {options.windows}, expected 1 or more")
    if options.against is not None:
        return _against(options, console)
    with shared.console_of(options, stderr=True).status("reading ..."):
        recordings, unread = _read(options.files, lambda file: _open(file, options.columns))
    try:
        with shared.console_of(options, stderr=True).status("beginning ...") as status:
            found = compare_recordings(
                *recordings, windows=options.windows, simulator=options.simulator,
                progress=lambda doing: status.update(f"{doing} ..."),
            )  # fmt: skip
    except ValueError as error:
        _name(error, unread)
        raise
    found.refused[:0] = unread
    _print(console, found)
    output_files.write_json(options.json, found.as_json())
    for path, make in ((options.fit, result.fit_as_toml), (options.html, report)):
        if path is not None:
            output_files.write(path, make(found))
            console.print(f"written to {escape(str(path))}")
    if found.refused:
        return 2
    return 0 if found.agrees else 1


def _open(file: Path, columns: Path | None) -> Recording:
    """Open a recording, unless a simulator has made its states."""
    if file.suffix == ".parquet":
        raise ValueError(
            f"{file} holds states that replicar made with RocketSim, expected the game's own: its .replay"
        )
    return open_recording(file, columns, shadow=False)


def _read(files: Sequence[Path], read: Callable[[Path], T]) -> tuple[list[T], list[result.RefusedFile]]:
    """Return what files hold, and those that cannot be read; the error of the first where none can."""
    found: list[T] = []
    refused, errors = [], []
    for file in files:
        try:
            found.append(read(file))
        except (OSError, ImportError, ValueError) as error:
            refused.append(result.RefusedFile(str(file), str(error)))
            errors.append(error)
    if not found:
        _name(errors[0], refused[1:])
        raise errors[0]
    return found, refused


def _name(error: Exception, refused: Sequence[result.RefusedFile]) -> None:
    """Name what else was refused behind an error's message."""
    for one in refused:
        error.add_note(one.describe())


def _print_refused(console: Console, refused: Sequence[result.RefusedFile]) -> None:
    for one in refused:
        console.print(f"[bold red]not compared[/]: {escape(one.describe())}")


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
    _print_refused(console, refused)
    differing = [one for one in found.differences if one.differs]
    numbers = ("FILE", "--against", "--against less FILE, 95 %", "distance", "chance")
    table = shared.make_table("differs", numbers=numbers)
    for one in differing:
        table.add_row(
            escape(one.name), f"{one.here:.4g}", f"{one.there:.4g}", f"{one.low:+.3g} .. {one.high:+.3g}",
            f"{one.distance:.3f}", f"{one.chance:.4f}",
        )  # fmt: skip
    console.print("played differently" if differing else "no difference was found")
    if differing:
        shared.widen(console)
        console.print(table)
    said = f"{len(differing):,} differ" if differing else "none differs"
    console.print(
        f"{len(found.differences):,} features over {found.pieces[0]} and {found.pieces[1]} pieces of play: "
        f"{said} (chance of any false alarm: {100 * LEVEL:g} %)"
    )
    if differing:
        console.print(
            "means of each set; distance: of two distributions, 0 equal, 1 nothing in common, of single "
            "numbers in standard deviations of a piece; chance: that any feature of equal sets is as far "
            "apart; a piece of play has up to ten seconds"
        )
    both = {"against": found.as_json(), "refused": [vars(one) for one in refused]}
    output_files.write_json(options.json, both)
    if options.html is not None:
        output_files.write(options.html, report_against(found))
    return 2 if refused else int(not found.alike)


def _print(console: Console, found: result.Comparison) -> None:
    """Print the sentences, what differs, what could not be judged, the errors, and how they were found."""
    console.print(f"[bold]{escape(found.explanation)}[/]")
    _print_refused(console, found.refused)
    sources = [fit.source for fit in found.fits]
    for kind in result.GapVerdict:
        told = [gap.text for gap in found.gaps if gap.kind is kind]
        told += [result.told_untried(one) for one in found.untried if kind is result.GapVerdict.UNTRIED]
        for text in result.said_once(told, sources if kind is result.GapVerdict.TIMING else []):
            console.print(f"[{_LOOK[kind]}]{kind.value}[/]: {escape(text)}")
    for text in result.said_once(found.unjudged, sources):
        console.print(f"not judged: {escape(text)}")
    _print_errors(console, found)
    shown = result.sources_to_show(found)
    told = [f"{fit.source}: {result.told_fit(fit)}" for fit in found.fits if fit.source in shown]
    for text in result.said_once([*told, *found.notes], sources):
        console.print(escape(text))


def _print_errors(console: Console, found: result.Comparison) -> None:
    shown = result.sources_to_show(found)
    other = any(not math.isnan(row.rocketsim2) for row in found.situations)
    shared.widen(console)
    for source in shown:
        if len(found.fits) > 1:
            console.print(f"[bold]{escape(source)}[/]")
        console.print(_errors_of([row for row in found.situations if row.source == source], other))
    if agreeing := len(found.fits) - len(shown):
        agree = f"{count_of(agreeing, 'recording')} {'agrees' if agreeing == 1 else 'agree'}"
        console.print(f"{agree}; --json has their errors")
    if shown:
        than = ", 2.2.1 (the median error of RocketSim 2.2.1, in which RLGym trains)" if other else ""
        console.print(
            f"Median errors of {result.name_simulator(found)} in uu after 1 to 240 ticks; 120 ticks are a "
            f"second. worst, bound (what the file leaves open, in the median){than}, windows, those beyond "
            "their bounds and the verdict are those after the ticks beside it."
        )


def _errors_of(every: Sequence[result.Situation], other: bool) -> Table:
    """Return a table of the errors of one recording, with those of RocketSim 2.2.1 if `other`."""
    numbers = ("worst", "bound", *(("2.2.1",) if other else ()), "windows", "beyond", "after")
    table = shared.make_table("uu off after ticks", numbers=(*map(str, HORIZONS), *numbers))
    table.add_column("verdict", no_wrap=True)
    for name, group in groupby(every, lambda row: row.name):
        rows = {row.horizon_ticks: row for row in group}
        row = result.row_to_tell(rows)
        table.add_row(
            name,
            *(result.short(rows[one].p50) if one in rows else "-" for one in HORIZONS),
            result.short(row.worst), result.short(row.tolerance),
            *((result.short(row.rocketsim2),) if other else ()),
            f"{row.windows:,}", f"{row.beyond:,}", f"{row.horizon_ticks}",
            f"[{_LOOK[row.verdict]}]{result.short_verdict(row.verdict)}[/]",
        )  # fmt: skip
    return table
