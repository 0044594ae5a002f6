"""Average a run's newest checkpoints: `rlgym-bridge average`."""

import argparse
from pathlib import Path

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.policy.files import all_checkpoints
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.manifest import SELECTIONS
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.training.average import average
from rlgym_bridge.user_input.arguments import count_of


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = "Average the weights of a training run's newest checkpoints into one policy folder."
    shared.add_option(
        parser, "folders RUN", "folder of a training run; or policy folders of one run, the newest last",
        Path, nargs="+",
    )  # fmt: skip
    shared.add_option(parser, "--newest N", "average the N newest checkpoints of the run", default=7)
    shared.add_option(parser, "--out DIR", "policy folder to write", output_files.folder_name, required=True)
    shared.add_option(
        parser, "--selection", "sample actions, or play the most likely one (default: as the newest "
        "checkpoint)", choices=SELECTIONS,
    )  # fmt: skip
    shared.add_modules_option(
        parser,
        "policy folders may import from: the newest is loaded first, to see that it plays here. Without this "
        "option nothing is imported",
    )


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    output_files.check_outputs(options.json)
    output_files.check_output_folder(options.out, options.json, options.folders)
    folders = options.folders
    if len(folders) == 1:
        every = all_checkpoints(folders[0])
        folders = every[max(0, len(every) - max(0, options.newest)) :]
        if len(folders) < 2:
            raise ValueError(
                f"{options.folders[0]} has {count_of(len(every), 'checkpoint')}, and --newest is "
                f"{options.newest}, expected two or more of both: a run saves a checkpoint every "
                "checkpoint_every agent steps, and at Ctrl-C"
            )
    if allowed := shared.allowed_modules(options):
        load_policy(folders[-1], [*allowed, *run_modules(folders[-1], allowed)])
    average(folders, options.out, options.selection)
    names = [folder.name for folder in folders]
    shared.printer(options)(f"{options.out}: the mean of {', '.join(names)}")
    output_files.write_json(options.json, {"out": str(options.out), "average_of": names})
    return 0
