"""Check that a policy plays on the match server as in training: `rlgym-bridge sim-vs-server`."""

import argparse

import numpy as np

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.cli.play_options import add_options, how
from rlgym_bridge.policy.files import policy_path
from rlgym_bridge.training.evaluate import evaluate
from rlgym_bridge.training.sim_vs_server import over_the_server, rates, ratios


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Check that a policy plays on the match server as it did in training: the same 1v1 is played in "
        "both, "
        "and goals and touches a minute are compared."
    )
    parser.add_argument(
        "a", metavar="A",
        help="policy folder, training run (its newest checkpoint), chaser, charger or random",
    )  # fmt: skip
    parser.add_argument("b", metavar="B", help="its opponent, given the same way")
    add_options(parser, 200, "half of them from each side")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    say = shared.printer(options)
    output_files.check_outputs(options.json)
    a, b = policy_path(options.a), policy_path(options.b)
    played = how(options, options.a, options.b)
    training = evaluate(a, b, options.matches, team_size=1, **played)
    server = over_the_server(a, b, options.matches, **played)
    found, (lows, highs) = ratios(server, training)
    columns = (rates(training), rates(server), found, lows, highs)
    names = ("goals of A", "goals of B", "touches of A", "touches of B")
    say(f"A {a}, B {b}: {options.matches} matches of {options.seconds:g} s in each world")
    say(f"{'for each minute of play':24}training   server   ratio   95 %")
    for name, here, there, ratio, low, high in zip(names, *columns, strict=True):
        known = np.isfinite((ratio, low, high)).all()
        share = f"{ratio:7.2f}   {low:.2f} to {high:.2f}" if known else "      -"
        say(f"{name:24}{here:8.2f} {there:8.2f} {share}")
    say(f"win rate of A {training.win_rate:.1%} in training, {server.win_rate:.1%} over the server")
    keys = ("training", "server", "ratio", "low", "high")
    rows = [dict(zip(keys, map(float, row), strict=True)) for row in zip(*columns, strict=True)]
    result = {"matches": options.matches, "a_minute": dict(zip(names, rows, strict=True))}
    return 0 if output_files.write_json(options.json, result) else 2
