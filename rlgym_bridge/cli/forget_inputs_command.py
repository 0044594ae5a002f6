"""Let the policy of a run forget some inputs: `python -m training.runs.forget_inputs`."""

import argparse
from pathlib import Path

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.training.runs.forget_inputs import count_groups, forget_inputs


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Let the policy of a run forget some inputs: their weights in the first layer become 0. The run's "
        "newest checkpoint is overwritten."
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a training run")
    parser.add_argument(
        "parts", nargs="+", metavar="PART",
        help="an input, or how a part of its name begins: ally- is ally-0/position/x and all of its kind",
    )  # fmt: skip
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    output_files.check_outputs(options.json)
    forgotten = forget_inputs(options.run, options.parts)
    groups = ", ".join(f"{group} ({count})" for group, count in count_groups(forgotten).items())
    shared.printer(options)(f"{options.run}: its newest checkpoint forgot {len(forgotten)} inputs: {groups}")
    return 0 if output_files.write_json(options.json, {"forgotten": forgotten}) else 2
