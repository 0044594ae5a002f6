"""Define the options of the commands that let policies and bots play, and show how far their matches are."""

import argparse
import itertools
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.training.contests.kept_matches import FILE, KeptMatches, MatchKey, Progress, ServedResult
from rlgym_bridge.training.contests.served_match import LOGS
from rlgym_bridge.training.processes import count_usable_cores
from rlgym_bridge.user_input.arguments import count_of

SECONDS: Final = 60.0
"""Game time of a match when nothing is said, s."""

_MOST_MATCHES = 10_000  # of a pair or a cause: an interval of 2 % then
_MOST_SECONDS = 100.0  # from which on minutes are told
_NEWS_SHARE = 0.1  # of the matches, after which a line is printed where no terminal shows each


positive: Final = shared.whole("a whole number, 1 or more")
even: Final = shared.whole(
    f"an even number from 2 to {_MOST_MATCHES:,}, half of it for each side", range(2, _MOST_MATCHES + 1, 2)
)
"""Numbers of matches, for argparse."""


def match_seconds(text: str) -> float:
    """Return the length of a match, for argparse."""
    value = shared.seconds(text)
    if not value:
        raise argparse.ArgumentTypeError(f"{text}, expected more than 0")
    return value


def add_contest_options(parser: argparse.ArgumentParser, matches: int, of: str, out: str) -> None:
    """Add the options of matches whose results are kept, with the defaults of --matches and --out."""
    shared.add_option(parser, "--matches N", f"matches, {of}, half from each side", even, default=matches)
    shared.add_option(
        parser, "--seconds S", "game time of a match in seconds; a match that is level then is drawn",
        match_seconds, default=SECONDS,
    )  # fmt: skip
    shared.add_seed_option(parser)
    shared.add_option(
        parser, "--jobs N", "matches to play at the same time (default: one for each usable core)", positive,
        default=count_usable_cores(),
    )  # fmt: skip
    shared.add_modules_option(parser)
    shared.add_option(
        parser, "--out DIR", "folder for results; finished matches are kept there, and the same command goes "
        "on with the others", output_files.folder_name, default=Path(out),
    )  # fmt: skip


def check_contest_outputs(options: argparse.Namespace, read: Sequence[Path]) -> None:
    """Raise ConfigError if results or logs cannot be written, or would replace what is read."""
    output_files.check_outputs(options.json, inputs=[*read, options.out / FILE])
    output_files.check_output_folder(options.out, options.json, read)
    output_files.check_output_folder(options.out / LOGS, options.json)


def say_stopped(kept: KeptMatches, done: str) -> None:
    """Say that a command was stopped, how many matches are kept, and how to go on."""
    print(
        f"stopped: {done} matches are kept in {kept.path}; the same command goes on with the others",
        file=sys.stderr,
    )


def write_results(
    options: argparse.Namespace, name: str, lines: Sequence[str], result: Mapping[str, Any]
) -> None:
    """Write the tables and the result of a command into its folder, and where `--json` says."""
    output_files.write_json(options.out / f"{name}.json", result)
    output_files.write(options.out / f"{name}.txt", "\n".join(lines) + "\n")
    output_files.write_json(options.json, result)


@contextmanager
def shown_progress(options: argparse.Namespace, jobs: int) -> Iterator[Progress]:
    """Yield a function that shows finished matches: on one line of a terminal, else now and then.

    It also says how long the others take, once as many have ended as `jobs`, the matches at the same time.
    """
    terminal = sys.stderr.isatty() and not options.quiet
    clear = "\r" if terminal else ""
    say = shared.printer(options)
    told: set[tuple[str, str]] = set()
    began, played, shares = time.monotonic(), 0, -1

    def show(done: int, count: int, ended: Mapping[MatchKey, ServedResult]) -> None:
        nonlocal played, shares
        played += len(ended)
        known = played >= min(jobs, count - done + played)
        line = f"{done} of {count} matches"
        if known and done < count:
            left = (time.monotonic() - began) / played * (count - done)
            unit, size = ("second", 1) if left < _MOST_SECONDS else ("minute", 60)
            line += f", about {count_of(math.ceil(left / size), unit)} left"
        share = math.floor(done / count / _NEWS_SHARE)
        if terminal:
            sys.stderr.write(f"\r{line[:79]:79}")
            sys.stderr.flush()
        elif known and share > shares:
            shares = share
            say(line)
        for key, result in ended.items():
            if any(result.forfeits) and (key[0], key[1]) not in told:
                told.add((key[0], key[1]))
                say(f"{clear}match {key[2]} of {key[0]} against {key[1]} was forfeited")

    try:
        yield show
    finally:
        if terminal:
            sys.stderr.write("\r" + " " * 79 + "\r")


def add_options(parser: argparse.ArgumentParser, matches: int, of: str) -> None:
    """Add the options of matches in RocketSim, `of` being what they are, for the help."""
    shared.add_option(
        parser, "--matches N", f"matches to play, {of} (default: {matches})", int, default=matches
    )
    shared.add_option(
        parser, "--seconds S", f"game time of a match in seconds (default: {SECONDS:g})", float,
        default=SECONDS,
    )  # fmt: skip
    shared.add_seed_option(parser, "kickoffs and sampled actions")
    shared.add_option(parser, "--processes N", "processes that play at the same time (default: 2)", default=2)
    shared.add_simulator_option(parser)
    shared.add_modules_option(parser)


def how(options: argparse.Namespace, *named: str | Path) -> dict[str, Any]:
    """Return the keyword arguments of `evaluate` that the options of `add_options` set.

    The modules of runs that the user named are allowed.
    """
    found = {name: getattr(options, name) for name in ("seconds", "seed", "processes", "simulator")}
    allowed = shared.allowed_modules(options)
    of_runs = itertools.chain(*(run_modules(one, allowed) for one in named))
    return found | {"allow_modules": [*allowed, *of_runs]}
