"""Run a match server that takes the place of RLBotServer, without the game: `rlgym-bridge server`."""

import argparse
from typing import Any

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.cli.match_summary import summarise
from rlgym_bridge.cli.view import add_watch_options, watched
from rlgym_bridge.server import ConfigError, MatchResult, MatchServer
from rlgym_bridge.server.lineup import BotReport
from rlgym_bridge.user_input.stop_signals import stopped_by_signals
from rlgym_bridge.view.watch import Watch


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Run a match server that speaks the RLBot v5 protocol and simulates the game with RocketSim. Match "
        "managers and bots connect to it as to RLBotServer."
    )
    shared.add_option(parser, "port", "TCP port to listen on", shared.port, nargs="?", default=23234)
    shared.add_option(
        parser, "--host HOST", "address to listen on (default: %(default)s, this machine only); where other "
        "machines can connect, bots have to be started by hand", default="127.0.0.1",
    )  # fmt: skip
    shared.add_match_options(parser)
    add_watch_options(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until a client asks to shut down."""
    if not options.host:  # an unset variable must not open the port to all networks
        raise ConfigError("--host is '', expected an address; 0.0.0.0 listens on all of this machine's")
    output_files.check_outputs(options.json, inputs=[options.physics])
    with watched(options) as watch:
        served = _serve(options, watch)
    output_files.write_json(options.json, served)
    return 0


def _serve(options: argparse.Namespace, watch: Watch | None) -> dict[str, Any]:
    """Serve, and return where, and the results of all matches, as `match --json` has them."""
    matches: list[dict[str, Any]] = []

    def add(result: MatchResult) -> None:
        matches.append(summarise(result, [BotReport()] * len(result.bots), None))

    server = MatchServer(options.host, options.port, **shared.server_settings(options), watch=watch)
    with server, stopped_by_signals(server.stop):
        if not options.quiet:
            print(
                f"listening on {server.host}:{server.port} at {options.pace} pace; Ctrl-C ends it", flush=True
            )
        server.serve_forever(add)
    return {"host": server.host, "port": server.port, "pace": options.pace, "matches": matches}
