"""Let a policy choose its likely actions more often: `python -m training.runs.sharpen`."""

import argparse
import math
from pathlib import Path

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.policy.files import policy_path
from rlgym_bridge.training.runs.sharpen import sharpen


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = "Let a policy choose its likely actions more often, or less often."
    parser.add_argument("policy", metavar="POLICY", help="policy folder, or training run (its newest)")
    parser.add_argument(
        "factor", metavar="FACTOR", type=_number, help="above 1: likely actions become likelier"
    )
    parser.add_argument(
        "--out", type=output_files.folder_name, required=True, metavar="DIR", help="policy folder to write"
    )
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    folder = Path(policy_path(options.policy))
    output_files.check_outputs(options.json)
    output_files.check_output_folder(options.out, options.json, [folder])
    times = sharpen(folder, options.factor, options.out)
    shared.printer(options)(f"{options.out}: {folder} with its logits multiplied by {options.factor:g}")
    return 0 if output_files.write_json(options.json, {"out": str(options.out), "logits_times": times}) else 2


def _number(text: str) -> float:
    """Return a number; nan where the text is none, which `sharpen` refuses."""
    try:
        return float(text)
    except ValueError:
        return math.nan
