"""Show a match in Rerun while it is played: `--watch`."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from rlgym_bridge.cli import options as shared
from rlgym_bridge.server import ConfigError
from rlgym_bridge.view.watch import Watch


def add_watch_options(parser: argparse.ArgumentParser, of_web: str = "") -> None:
    """Add the options that show a match while it is played; `of_web` adds to the help of `--web`."""
    parser.add_argument(
        "--watch", action="store_true",
        help="show it in Rerun while it is played, with what bots draw: in a window, or without a display "
        "on a page for browsers on this machine. Closing it stops nothing",
    )  # fmt: skip
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--web", action="store_true", help=f"open it in the browser{of_web}")
    where.add_argument("--window", action="store_true", help="open it in Rerun's own window")


@contextmanager
def watched(options: argparse.Namespace, has_page: bool = False) -> Iterator[Watch | None]:
    """Show matches in Rerun until the block ends, as the options say; None where they do not.

    Args:
        options: Of `add_watch_options`.
        has_page: Whether `--web` alone means another page, which the caller shows.

    Raises:
        ConfigError: `--web` or `--window` without `--watch`.
        ImportError: Rerun is not installed.
        WatchError: The viewer does not start.
    """
    if not options.watch:
        if options.window or (options.web and not has_page):
            raise ConfigError("--web and --window say where --watch shows the match, expected --watch, too")
        yield None
        return
    watch = Watch("web" if options.web else "window" if options.window else "")
    try:
        if watch.address:
            shared.console_of(options).print(f"look at {watch.address}", soft_wrap=True, markup=False)
        yield watch
    finally:
        watch.close()
