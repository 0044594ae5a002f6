"""Let a policy choose its likely actions more often: `python -m training.runs.sharpen`."""

import argparse
import math
from pathlib import Path

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.policy.files import policy_path
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.training.runs.sharpen import sharpen
from rlgym_bridge.user_input.user_modules import add_module_folders


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
    parser.add_argument(
        "--allow-modules", nargs="+", action="extend", default=[], metavar="MODULE",
        help="Python modules of yours that the policy may import from: it is loaded first, to see that it "
        "plays here. Without this option nothing is imported",
    )  # fmt: skip
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    folder = Path(policy_path(options.policy))
    output_files.check_outputs(options.json)
    output_files.check_output_folder(options.out, options.json, [folder])
    if options.allow_modules:
        add_module_folders(Path.cwd())
        load_policy(folder, [*options.allow_modules, *run_modules(folder, options.allow_modules)])
    times = sharpen(folder, options.factor, options.out)
    shared.printer(options)(f"{options.out}: {folder} with its logits multiplied by {options.factor:g}")
    return 0 if output_files.write_json(options.json, {"out": str(options.out), "logits_times": times}) else 2


def _number(text: str) -> float:
    """Return a number; nan where the text is none, which `sharpen` refuses."""
    try:
        return float(text)
    except ValueError:
        return math.nan
