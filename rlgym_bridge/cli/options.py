"""Define the options that several commands share, and print their results."""

import argparse
import logging
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from rlgym_bridge.physics import Spread, read_physics
from rlgym_bridge.protocol_variant import POINTS, ProtocolVariant
from rlgym_bridge.server import ConfigError, Impairments, MatchServer
from rlgym_bridge.server.game.rules import LONGEST_SECONDS
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, SIMULATORS
from rlgym_bridge.user_input.checking import VAST
from rlgym_bridge.user_input.plain_console import PlainConsole
from rlgym_bridge.user_input.text_files import explain_unreadable
from rlgym_bridge.user_input.user_modules import add_module_folders

IMPAIRMENTS: Final = ("latency", "jitter", "drop", "burst", "fps")
"""Options of `add_impairment_options`, each 0 where nothing is simulated."""


def whole(expected: str, known: range = range(1, VAST)) -> Callable[[str], int]:
    """Return a reader of whole numbers for argparse: those in `known`, which `expected` says in words."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and int(text) in known):
            raise argparse.ArgumentTypeError(f"{text}, expected {expected}")
        return int(text)

    return read


def port(text: str) -> int:
    """Return a TCP port, for argparse."""
    if not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a TCP port, expected 0 (any free one) to 65535")
    return int(text)


def seconds(text: str) -> float:
    """Return a time from 0 s to a day, for argparse."""
    value = float(text)
    if not 0 <= value <= LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text} is not a valid time, expected seconds from 0 to {LONGEST_SECONDS:g} (a day)"
        )
    return value


def seed(text: str) -> int:
    """Return a seed, for argparse; -1 would play the match of 1."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is no seed, expected a whole number, 0 or more")
    return value


def add_option(to: Any, words: str, text: str, kind: Callable[[str], Any] | None = None, **how: Any) -> None:
    """Add an option, or an argument, with its help to a parser or a group.

    `words` are its names and that of its value: `-o --out FILE`; without a value it is a switch. A default
    stands behind the help, and a number as default tells the type. All else is as in argparse.
    """
    names, default = words.split(), how.get("default")
    if len(names) > 1 and not names[-1].startswith("-"):
        how["metavar"] = names.pop()
    elif names[0].startswith("-") and not how.keys() & {"choices", "action"}:
        how["action"] = "store_true"
    if kind or isinstance(default, int | float):
        how["type"] = kind or type(default)
    if default and not isinstance(default, list) and "default: " not in text:
        text += f" (default: {default:g})" if isinstance(default, float) else f" (default: {default})"
    to.add_argument(*names, help=text, **how)


def add_seed_option(
    parser: argparse.ArgumentParser, of: str = "kickoffs, respawns and sampled actions"
) -> None:
    """Add the option that seeds what is random."""
    add_option(parser, "--seed S", f"seed of {of} (default: 0)", seed, default=0)


def add_modules_option(
    parser: argparse.ArgumentParser, of: str = "policy folders may import their components from"
) -> None:
    """Add the option that allows modules; `allowed_modules` returns them."""
    add_option(
        parser, "--allow-modules MODULE", f"your own Python modules that {of}", nargs="+", default=[],
        action="extend",
    )  # fmt: skip


def allowed_modules(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the modules that the user allows, which may lie in the current folder."""
    if options.allow_modules:
        add_module_folders(Path.cwd())
    return tuple(options.allow_modules)


def add_match_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a match is played; `server_settings` reads them."""
    add_option(
        parser, "--pace", "realtime: 120 ticks a second; lockstep: as fast as the bots answer",
        default="realtime", choices=("realtime", "lockstep"),
    )  # fmt: skip
    add_option(
        parser, "--seconds N", "length of the match in seconds of game time; in the real game it is stopped "
        "after so long in play (default: what the match file says)", seconds,
    )  # fmt: skip
    add_option(
        parser, "--max-overtime N", "end overtime as a draw after N seconds of game time", seconds,
        default=300.0,
    )  # fmt: skip
    add_option(
        parser, "--max-hang N", "when the clock has run out, wait at most N seconds of game time for the "
        "ball to meet the floor", seconds, default=60.0,
    )  # fmt: skip
    add_option(
        parser, "--allow-idle", "let the cars of humans and Psyonix bots stand idle (default: refuse such a "
        "match)",
    )  # fmt: skip
    add_seed_option(parser)
    add_option(parser, "-v --verbose", "also print whole commands of bots, and who leaves")
    add_impairment_options(parser)
    add_physics_option(parser)
    add_simulator_option(parser, default=None)
    add_dialect_option(parser)


def server_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `MatchServer` that the options of `add_match_options` set."""
    names = ("pace", "seed", "seconds", "max_overtime", "max_hang", "allow_idle", "simulator")
    settings = {name: getattr(options, name) for name in names}
    settings["impairments"], settings["dialect"] = impairments_of(options), dialect_of(options)
    return settings | {"constants": physics_of(options)}


def add_impairment_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that simulate latency, jitter and packet loss."""
    group = parser.add_argument_group(
        "network and frame rate",
        "simulated by the embedded server, reproducible by the seed, except jitter (default: none)",
    )
    add_option(
        group, "--latency TICKS", "apply every input this many ticks late (120 ticks are a second)", default=0
    )
    add_option(
        group, "--jitter MS", "send packets up to this many milliseconds late, in order; realtime pace only",
        default=0.0,
    )  # fmt: skip
    add_option(
        group, "--drop PERCENT", "lose this share of the packets, for each client separately", default=0.0
    )
    add_option(group, "--burst N", "hold packets back and send them N at a time", default=0)
    add_option(
        group, "--fps N", "send packets as a game that renders N frames a second does, at most 120", default=0
    )


def impairments_of(options: argparse.Namespace) -> Impairments:
    """Return the impairments of a command; raises ConfigError if one is impossible at this pace."""
    names = [name for name in IMPAIRMENTS if hasattr(options, name)]
    try:
        impairments = Impairments(**{name: getattr(options, name) for name in names})
        impairments.check_pace(options.pace)
    except ValueError as error:
        raise ConfigError(f"--{error}") from error
    return impairments


def add_selection_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how policies choose their actions; `selection` is None without them."""
    choice = parser.add_mutually_exclusive_group()
    for name, selection, text in (
        ("--deterministic", "argmax", "policies always take their most likely action"),
        ("--sample", "sample", "policies sample their actions"),
    ):
        add_option(
            choice, name, f"{text}, without search (default: what the policy folders say)",
            action="store_const", const=selection, dest="selection",
        )  # fmt: skip


def add_physics_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that changes the physics constants of the embedded server."""
    add_option(
        parser, "--physics FILE", "play with the constants in the table [physics] of a TOML file, as compare "
        "--fit writes it", Path,
    )  # fmt: skip


def physics_of(options: argparse.Namespace) -> dict[str, Spread]:
    """Return the constants that `--physics` names, if any; raises ConfigError for a wrong file."""
    if options.physics is None:
        return {}
    try:
        return read_physics(options.physics)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--physics: {explain_unreadable(error)}") from error


def add_simulator_option(parser: argparse.ArgumentParser, default: str | None = DEFAULT_SIMULATOR) -> None:
    """Add the option that chooses what simulates matches."""
    add_option(
        parser, "--simulator", "what simulates matches (default: rocketsim3 where rocketsim_batch is "
        "installed and the mode is Soccar, else rocketsim2)", default=default, choices=SIMULATORS,
    )  # fmt: skip


def add_dialect_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that sets the packets' dialect, and list its points at the end of the help text."""
    add_option(
        parser, "--dialect NAME=VALUE", "choose the behaviour of packets on a point that RLBot's documents "
        "leave open; see below; may be repeated", default=[], action="append",
    )  # fmt: skip
    lines = ["dialect points with their values (the first is the default) and meanings:"]
    for name, point in POINTS.items():
        lines += [f"  {name}={'|'.join(point.values)}"]
        lines += textwrap.wrap(point.meaning, 96, initial_indent=" " * 6, subsequent_indent=" " * 6)
    parser.epilog = "\n".join(lines)
    parser.description = textwrap.fill(parser.description or "", 96)  # the formatter below wraps nothing
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def dialect_of(options: argparse.Namespace) -> ProtocolVariant:
    """Return the points of `--dialect`; raises ConfigError for one that is unknown or given twice."""
    try:
        return ProtocolVariant.parse(options.dialect)
    except ValueError as error:
        raise ConfigError(f"--dialect: {error}") from None


def add_recording(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a recording, and the option for the column map of a table."""
    add_option(parser, "file FILE", ".mcap, .replay, or a table with --columns", Path)
    add_columns_option(parser)


def add_columns_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the column map of a table."""
    add_option(
        parser, "--columns MAP.toml", "which columns of a table hold what; for examples see docs/columns",
        Path,
    )  # fmt: skip


def add_server_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the server."""
    add_option(
        parser, "--server", "sim: the embedded match server; rlbot: an RLBotServer with the real game",
        default="sim", choices=("sim", "rlbot"),
    )  # fmt: skip


def refuse_with_rlbot(options: argparse.Namespace, **usual: object) -> None:
    """Raise ConfigError if `--server rlbot` stands beside options that are not as `usual`."""
    given = [
        f"--{name.replace('_', '-')}" for name, value in usual.items() if getattr(options, name) != value
    ]
    if options.server == "rlbot" and given:
        raise ConfigError(
            f"only the embedded server takes {', '.join(given)}, expected none of it with --server rlbot: "
            "the real game cannot be changed"
        )


def add_embedded_options(parser: argparse.ArgumentParser) -> None:
    """Add the latency and the pace of the embedded server."""
    add_option(
        parser, "--latency TICKS", "have the embedded server apply every input this many ticks late "
        "(default: %(default)s)", default=0,
    )  # fmt: skip
    add_option(
        parser, "--pace", "pace of the embedded server", default="lockstep", choices=("realtime", "lockstep")
    )


def embedded_server(options: argparse.Namespace) -> MatchServer | None:
    """Return the embedded server as the options have it; None with `--server rlbot`."""
    if options.server == "rlbot":
        return None
    dialect = dialect_of(options) if hasattr(options, "dialect") else ProtocolVariant()
    simulator = getattr(options, "simulator", None)
    impairments = impairments_of(options)
    return MatchServer(pace=options.pace, impairments=impairments, dialect=dialect, simulator=simulator)


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command: how much is printed, and where to."""
    add_option(parser, "--json FILE", "also write the result to FILE as JSON", Path)
    add_option(parser, "-q --quiet", "print nothing but errors")


def console_of(options: argparse.Namespace, stderr: bool = False) -> Console:
    """Return the console that a command prints to, or shows its progress on."""
    return PlainConsole(stderr=stderr, quiet=options.quiet)


def printer(options: argparse.Namespace) -> Callable[[str], None]:
    """Return a function that prints a line unchanged, or nothing with `--quiet`."""
    console = console_of(options)
    return lambda line: console.print(line, markup=False)


def make_table(*columns: str, numbers: Iterable[str] = ()) -> Table:
    """Return an empty table: columns of text, which is folded where it is long, then columns of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
    for column in columns:
        table.add_column(column, overflow="fold")
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def widen(console: Console) -> None:
    """Give tables room where a terminal or a pipe has less than that: numbers would be cut."""
    console.width = max(console.width, 124)


@contextmanager
def server_log(level: int) -> Iterator[None]:
    """Log what the embedded server says from a level on: the command prints the rest itself."""
    log = logging.getLogger("rlgym_bridge.server")
    before = log.level
    log.setLevel(level)
    try:
        yield
    finally:
        log.setLevel(before)
