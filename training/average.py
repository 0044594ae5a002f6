"""`python -m training.average RUN --out DIR`: the mean of a run's newest checkpoints, which often is better.

Checkpoints of one run wander about what it has learned, each with mistakes of its own; the mean of their
weights leaves many of these out (Polyak and Juditsky, 1992; Izmailov et al., 2018, for whole networks).
Training goes on from the checkpoints themselves, not from the mean.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import safetensors.numpy
from rlgym_bridge.training.runs.policy_tensors import pack_tensors

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files, run_command
from rlgym_bridge.policy.files import MANIFEST_FILE, all_checkpoints, read_files, write_files
from rlgym_bridge.policy.manifest import SELECTIONS, Manifest
from rlgym_bridge.user_input.arguments import count_of


def average(folders: Sequence[Path], out: Path, selection: str | None = None) -> Manifest:
    """Write the mean of some policies as a policy folder.

    Args:
        folders: Policy folders of one run, the newest last: normalisation and record are its.
        out: Folder to write.
        selection: `"sample"` or `"argmax"`; None for the newest's.

    Returns:
        Its manifest; `training["average_of"]` names the folders.

    Raises:
        ValueError: There are fewer than two, they differ in more than their weights, or a file is damaged.
        FileNotFoundError: A file is missing.
        PolicyMismatch: Weights are not those that the manifest records.
    """
    if len(folders) < 2:
        raise ValueError(f"{len(folders)} policies to average, expected two or more")
    read = [read_files(folder) for folder in folders]
    newest = read[-1][0]
    tensors = []
    for folder, (manifest, data) in zip(folders, read, strict=True):
        name = manifest.differing(newest)
        if name is not None:
            raise ValueError(
                f"{folder / MANIFEST_FILE} has {name} {getattr(manifest, name)}, {folders[-1].name} has "
                f"{getattr(newest, name)}; expected policies of one run"
            )
        tensors.append(safetensors.numpy.load(data))
        shapes = [{name: tensor.shape for name, tensor in one.items()} for one in (tensors[0], tensors[-1])]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"{folder} has layers {shapes[1]}, {folders[0]} has {shapes[0]}; expected equal ones"
            )
    mean = {
        name: np.mean([one[name] for one in tensors], axis=0, dtype=np.float64).astype(np.float32)
        for name in tensors[-1]
    }
    changed = replace(newest, selection=selection or newest.selection)
    data, text = pack_tensors(changed, mean, {"average_of": [folder.name for folder in folders]})
    write_files(out, data, text)
    return Manifest.from_json(text, str(out / MANIFEST_FILE))


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = "Average the weights of a training run's newest checkpoints into one policy folder."
    parser.add_argument(
        "folders", metavar="RUN", type=Path, nargs="+",
        help="folder of a training run; or policy folders of one run, the newest last",
    )  # fmt: skip
    parser.add_argument(
        "--newest",
        type=int,
        default=7,
        metavar="N",
        help="average the N newest checkpoints of the run (default: %(default)s)",
    )
    parser.add_argument(
        "--out", type=output_files.folder_name, required=True, metavar="DIR", help="policy folder to write"
    )
    parser.add_argument(
        "--selection",
        choices=SELECTIONS,
        help="sample actions, or play the most likely one (default: as the newest checkpoint)",
    )
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    say = shared.printer(options)
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
    average(folders, options.out, options.selection)
    names = [folder.name for folder in folders]
    say(f"{options.out}: the mean of {', '.join(names)}")
    return 0 if output_files.write_json(options.json, {"out": str(options.out), "average_of": names}) else 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `rlgym-bridge average`; see `rlgym_bridge.cli.run_command`."""
    return run_command("average", arguments, "python -m training.average")


if __name__ == "__main__":
    sys.exit(main())
