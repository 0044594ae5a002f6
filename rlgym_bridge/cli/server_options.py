"""Define the options of commands that measure a server: the embedded one, or that of the real game."""

import argparse

from rlgym_bridge.server import ConfigError, Impairments


def add_server_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the server."""
    parser.add_argument(
        "--server", choices=("sim", "rlbot"), default="sim",
        help="sim: the embedded match server; rlbot: an RLBotServer with the real game (default: "
        "%(default)s)",
    )  # fmt: skip


def add_embedded_options(parser: argparse.ArgumentParser) -> None:
    """Add the latency and the pace of the embedded server."""
    parser.add_argument(
        "--latency", type=int, default=0, metavar="TICKS",
        help="have the embedded server apply every input this many ticks late (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--pace", choices=("realtime", "lockstep"), default="lockstep",
        help="pace of the embedded server (default: %(default)s)",
    )  # fmt: skip


def latency_of(options: argparse.Namespace) -> Impairments:
    """Return what `--latency` asks of the embedded server.

    Raises:
        ConfigError: It is no number of ticks that inputs can be late by.
    """
    try:
        return Impairments(latency=options.latency)
    except ValueError as error:
        raise ConfigError(f"--{error}") from error
