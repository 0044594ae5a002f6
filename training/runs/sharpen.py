"""Let a policy choose its likely actions more often: `python -m training.runs.sharpen`.

policy folder -> logits, which are multiplied by FACTOR -> another policy folder (--out)

A policy that explores in training plays too many unlikely actions in matches. What it learned stays the
same, and so does its order of the actions.
"""

from pathlib import Path
from typing import Final

import numpy as np

from rlgym_bridge.policy.carried_modules import copy_carried
from rlgym_bridge.policy.files import write_files
from rlgym_bridge.training.runs.policy_tensors import pack_tensors, read_tensors

_MOST_FACTOR: Final = 1000.0  # beyond it a policy plays its likeliest actions alone, below 1/1000 all alike


def sharpen(folder: Path, factor: float, out: Path) -> float:
    """Multiply the logits of a policy by a factor, and write it as another folder.

    Args:
        folder: Policy folder.
        factor: 0.001 to 1000; above 1 likely actions become likelier, below 1 less likely.
        out: Folder to write.

    Returns:
        What its logits were multiplied by in all, `training["logits_times"]` of its manifest.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: The factor is out of range, the policy has no logits, a file is damaged, or a logit would
            not be finite.
    """
    if not 1 / _MOST_FACTOR <= factor <= _MOST_FACTOR:
        raise ValueError(
            f"FACTOR is {factor:g}, expected a number from {1 / _MOST_FACTOR:g} to {_MOST_FACTOR:g}"
        )
    manifest, tensors = read_tensors(folder)
    if not manifest.distribution.endswith("categorical"):
        raise ValueError(
            f"{folder} is {manifest.distribution}, which has no logits, expected categorical actions"
        )
    last = sum(name.startswith("layers.") for name in tensors) // 2 - 1
    for name in (f"layers.{last}.weight", f"layers.{last}.bias"):
        with np.errstate(over="ignore"):  # what is not finite is refused below
            tensors[name] = tensors[name] * np.float32(factor)
    before = manifest.training.get("logits_times")
    times = factor * before if isinstance(before, int | float) and before is not True else factor
    write_files(out, *pack_tensors(manifest, tensors, {"logits_times": times}))
    copy_carried(folder, out)
    return times


if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("sharpen")
