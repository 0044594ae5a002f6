"""Let the policy of a run forget some inputs: `python -m training.runs.forget_inputs RUN PART...`.

    newest checkpoint -> the first layer's weights of these inputs become 0 -> it is written anew

Inputs that are 0 in most matches, such as those of team mates, are learned from few examples. What was
learned of them early can do harm later, and goes away slowly. A policy that ignores them can learn them anew.
"""

import hashlib
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from rlgym_bridge.policy.files import chosen_checkpoint, write_files
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.runs.lock import Locked
from rlgym_bridge.training.runs.policy_tensors import FIRST_LAYER, STATE_CHECKSUM, pack_tensors, read_tensors
from rlgym_bridge.training.runs.restore import STATE_FILE, pack_state, read_checkpoint
from rlgym_bridge.training.settings import SettingsError
from rlgym_bridge.user_input.durable_files import write_durably


def forget_inputs(run: Path, parts: Sequence[str]) -> list[str]:
    """Forget inputs in the newest checkpoint of a run, which is overwritten; its critic keeps them.

    Args:
        run: Folder of the run.
        parts: Names of inputs, or beginnings of parts of a name: `ally-` is in `ally-0/position/x`.

    Returns:
        The names of the inputs that were forgotten.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: There is no checkpoint, it is damaged, its observation names no inputs, or a part is in no
            name.
    """
    checkpoint = chosen_checkpoint(run)
    if checkpoint is None:
        raise SettingsError(f"{run} has no checkpoint, expected the folder of a training run that has one")
    with Locked(run):
        tensors = read_tensors(checkpoint)[1]
        manifest, state = read_checkpoint(checkpoint)
        names = manifest.obs_names
        if names is None:
            raise SettingsError(
                f"the observation of {checkpoint} gives its inputs no names, expected `names`"
            )
        for part in parts:
            if not part or not any(_has(name, part) for name in names):
                known = ", ".join(count_groups(names))
                raise SettingsError(f"no input of {checkpoint} has a part {part!r}; they are of {known}")
        forgotten = [place for place, name in enumerate(names) if any(_has(name, part) for part in parts)]
        learned: Any = state["policy"].get(FIRST_LAYER) if isinstance(state["policy"], dict) else None
        if tensors[FIRST_LAYER].shape[1] != len(names) or not _fits(learned, tensors[FIRST_LAYER].shape):
            raise SettingsError(
                f"{checkpoint}: {FIRST_LAYER} is not for the {len(names)} inputs that it names"
            )
        tensors[FIRST_LAYER][:, forgotten] = 0.0
        learned[:, forgotten] = 0.0
        data = pack_state(state)
        checksum = hashlib.sha256(data).hexdigest()

        def write(folder: Path) -> None:
            shutil.copytree(checkpoint, folder, copy_function=_copy_durably, dirs_exist_ok=True)
            write_files(folder, *pack_tensors(manifest, tensors, {STATE_CHECKSUM: checksum}))
            write_durably(folder, {STATE_FILE: data})

        Checkpoints(run, 1).replace(int(checkpoint.name), write)
        return [names[place] for place in forgotten]


def _copy_durably(source: str, target: str) -> None:
    path = Path(target)
    write_durably(path.parent, {path.name: Path(source).read_bytes()})


def _fits(learned: object, shape: tuple[int, ...]) -> bool:
    return isinstance(learned, torch.Tensor) and tuple(learned.shape) == shape


def _has(name: str, part: str) -> bool:
    return name == part or any(one.startswith(part) for one in name.split("/"))


def count_groups(names: Sequence[str]) -> Counter[str]:
    """Return how many of the inputs have each first part of a name: `ally-0` of `ally-0/position/x`."""
    return Counter(name.partition("/")[0] for name in names)


if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("forget-inputs")
