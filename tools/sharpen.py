"""Multiply a policy's logits, so that likely actions are taken oftener: its entropy may hide its strength.

    python -m tools.sharpen runs/next 2 --out build/sharp
    python -m tools.sharpen lab/bot/300014656 1.5 --state --out runs/sharp/checkpoints/300014656
    python -m tools.sharpen lab/bot/300014656 1 --search --out build/searching

With `--state` the state of a checkpoint's training comes along, from which `train --resume` goes on. The
optimiser's moments stay as they are. With `--search` the critic of a checkpoint comes along, and the policy
looks ahead before it acts.
"""

import argparse
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import safetensors.numpy
import torch

from rlgym_bridge.policy.carried_modules import copy_carried
from rlgym_bridge.policy.critic import critic_tensors
from rlgym_bridge.policy.files import policy_path, read_files, write_files
from rlgym_bridge.policy.folder import CRITIC, make_search_critic
from rlgym_bridge.policy.manifest import Manifest, SearchSettings
from rlgym_bridge.policy.shape import GRU, NETWORKS
from rlgym_bridge.training.runs.checkpoints import STATE_CHECKSUM, STATE_FILE, read_checkpoint
from rlgym_bridge.user_input.arguments import check_number
from tools.tool import run_tool

DECISIONS: Final = 10  # of a search: two thirds of a second
CHOICES: Final = 5
LEAST_PROBABILITY: Final = 0.005
PRIOR: Final = 1.0  # a thirtieth of the shipped bot's reward for a goal

_LEAST, _MOST = 1e-3, 1e3  # of all factors together: beyond, all or one of the actions are equally likely


def sharpen(
    folder: Path, factor: float, out: Path, with_state: bool = False, with_search: bool = False
) -> None:
    """Write a policy folder with other logits; `with_state` with the state of its training, too.

    `with_search` it looks `DECISIONS` ahead with the checkpoint's critic. Its `training["logits_times"]` is
    the factor, times that of `folder`. Raises ValueError where that is not from 0.001 to 1,000, the policy
    has no logits or cannot search, or a file is damaged or missing; FileExistsError where `out` is there.
    """
    check_number("factor", factor, _LEAST, _MOST)
    if out.exists() or out.is_symlink():
        raise FileExistsError(f"{out} is there already, expected a new folder")
    manifest, data = read_files(folder)
    try:
        tensors = safetensors.numpy.load(data)
    except safetensors.SafetensorError as error:
        raise ValueError(f"the weights of {folder} are damaged: {error}") from error
    places = [int(name.split(".")[1]) for name in tensors if name.startswith("layers.")]
    if manifest.network not in NETWORKS or manifest.action_kind == "gaussian" or not places:
        raise ValueError(
            f"{folder} has {manifest.action_kind} actions and the network {manifest.network}, expected "
            f"logits of one of {', '.join(NETWORKS)}"
        )
    last = [f"layers.{max(places)}.{part}" for part in ("weight", "bias")]
    if not {*last} <= {*tensors}:
        raise ValueError(f"the weights of {folder} lack {' or '.join(last)}, expected both")
    for name in last:
        tensors[name] = (tensors[name] * factor).astype(tensors[name].dtype)
        if not np.isfinite(tensors[name]).all():
            raise ValueError(f"{name} of {folder}, times {factor:g}, has numbers that are not finite")
    numbers = read_checkpoint(folder)[1] if with_state or with_search else None
    if with_search and numbers is not None:
        manifest = _add_search(manifest, numbers, tensors, folder)
    weights = safetensors.numpy.save(tensors)
    notes = {name: value for name, value in manifest.training.items() if name != STATE_CHECKSUM}
    notes["logits_times"] = factor * notes.get("logits_times", 1.0)
    check_number("logits_times, all factors together", notes["logits_times"], _LEAST, _MOST)
    out.mkdir(parents=True)
    if with_state and numbers is not None:
        for name in last:
            numbers["policy"][name] *= factor
        written = io.BytesIO()
        torch.save(numbers, written)
        (out / STATE_FILE).write_bytes(written.getvalue())
        notes[STATE_CHECKSUM] = hashlib.sha256(written.getvalue()).hexdigest()
    copy_carried(folder, out)
    checksum = hashlib.sha256(weights).hexdigest()
    write_files(out, weights, replace(manifest, weights_sha256=checksum, training=notes))


def _add_search(
    manifest: Manifest, numbers: Mapping[str, Any], tensors: dict[str, np.ndarray], folder: Path
) -> Manifest:
    """Add a checkpoint's critic to the weights of its policy; return the manifest with a search."""
    try:
        settings = numbers["settings"]
        search = SearchSettings(
            DECISIONS, CHOICES, LEAST_PROBABILITY, settings["goal"], settings["gamma"], PRIOR
        )
        critic = critic_tensors(numbers)
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ValueError(
            f"{folder / STATE_FILE} has no critic, goal and gamma as training writes them"
        ) from error
    manifest = replace(manifest, search=search)
    manifest.to_json()  # raises for a goal or gamma of 0
    make_search_critic(manifest, critic, str(folder / STATE_FILE), manifest.network == GRU)
    tensors |= {CRITIC + name: tensor for name, tensor in critic.items()}
    return manifest


def main(words: Sequence[str]) -> None:
    """Write the sharpened policy, and say where."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("policy", help="policy folder, run or checkpoint")
    parser.add_argument("factor", type=float, help="of the logits; above 1 makes likely actions likelier")
    parser.add_argument("--out", type=Path, required=True, help="new folder")
    parser.add_argument(
        "--state", action="store_true", help="take the state of a checkpoint's training along"
    )
    parser.add_argument("--search", action="store_true", help="let it look ahead with a checkpoint's critic")
    options = parser.parse_args(words)
    folder = Path(policy_path(options.policy))
    sharpen(folder, options.factor, options.out, options.state, options.search)
    print(f"{options.out}: logits multiplied by {options.factor:g}{', with a search' * options.search}")


if __name__ == "__main__":
    run_tool(main)
