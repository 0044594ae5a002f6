"""Let a policy choose its likely actions more often: `python -m training.runs.sharpen POLICY FACTOR OUT`.

policy folder -> logits, which are multiplied by FACTOR -> another policy folder

A policy that explores in training plays too many unlikely actions in matches. What it learned stays the
same, and so does its order of the actions.
"""

import argparse
import hashlib
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from rlgym_bridge.cli.output_files import check_output_folder
from rlgym_bridge.policy.files import WEIGHTS_FILE, policy_path, read_files, write_files
from rlgym_bridge.policy.manifest import Manifest

_MOST_FACTOR: Final = 1000.0  # beyond it a policy plays its likeliest actions alone


def sharpen(folder: Path, factor: float, out: Path) -> Manifest:
    """Multiply the logits of a policy by a factor, and write it as another folder.

    Args:
        folder: Policy folder.
        factor: Above 0; above 1 likely actions become likelier, below 1 less likely.
        out: Folder to write.

    Returns:
        Its manifest; `training["logits_times"]` is the factor.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: The factor is out of range, the policy has no logits, or a file is damaged.
    """
    if not 0 < factor <= _MOST_FACTOR:
        raise ValueError(f"FACTOR is {factor:g}, expected a number above 0 and at most {_MOST_FACTOR:g}")
    manifest, data = read_files(folder)
    if not manifest.distribution.endswith("categorical"):
        raise ValueError(
            f"{folder} is {manifest.distribution}, which has no logits, expected categorical actions"
        )
    try:
        tensors = safetensors.numpy.load(data)
        last = sum(name.startswith("layers.") for name in tensors) // 2 - 1
        for name in (f"layers.{last}.weight", f"layers.{last}.bias"):
            tensors[name] = tensors[name] * np.float32(factor)
    except (SafetensorError, KeyError) as error:
        raise ValueError(f"{folder / WEIGHTS_FILE} holds no layers of a network: {error}") from error
    data = safetensors.numpy.save(tensors)
    before = manifest.training.get("logits_times")
    times = factor * before if isinstance(before, float) else factor
    notes = {**manifest.training, "logits_times": times}
    sharpened = replace(manifest, training=notes, weights_sha256=hashlib.sha256(data).hexdigest())
    write_files(out, data, sharpened.to_json())
    return sharpened


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("policy", metavar="POLICY", help="policy folder, or training run (its newest)")
    parser.add_argument("factor", metavar="FACTOR", help="above 1: likely actions become likelier")
    parser.add_argument("out", type=Path, metavar="OUT", help="policy folder to write")
    options = parser.parse_args()
    try:
        folder = Path(policy_path(options.policy))
        check_output_folder(options.out, None, [folder])
        sharpen(folder, _number(options.factor), options.out)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{options.out}: {folder} with its logits multiplied by {options.factor}")
    return 0


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


if __name__ == "__main__":
    sys.exit(main())
