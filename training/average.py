"""Average a run's newest checkpoints, which often plays better: `rlgym-bridge average`.

Their mistakes cancel out in part [Polyak and Juditsky 1992; Izmailov et al. 2018, for whole networks].
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import safetensors.numpy

from rlgym_bridge.policy.carried_modules import copy_carried
from rlgym_bridge.policy.files import MANIFEST_FILE, read_files, write_files
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.training.runs.checkpoints import STATE_CHECKSUM


def average(folders: Sequence[Path], out: Path, selection: str | None = None) -> Manifest:
    """Write the mean of policies of one run, the newest last, as a policy folder, and return its manifest.

    Normalisation, record, modules and, where none is given, selection are the newest's;
    `training["average_of"]` names the folders. Raises ValueError where there are fewer than two, they differ
    in more than their weights, or a file is damaged.
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
    for name, tensor in mean.items():
        if not np.isfinite(tensor).all():
            raise ValueError(f"the mean of {name} has other numbers than finite ones of float32")
    data = safetensors.numpy.save(mean)
    notes = {name: note for name, note in newest.training.items() if name != STATE_CHECKSUM}
    changed = replace(
        newest,
        selection=selection or newest.selection,
        training=notes | {"average_of": [folder.name for folder in folders]},
        weights_sha256=hashlib.sha256(data).hexdigest(),
    )
    write_files(out, data, changed)
    copy_carried(folders[-1], out)
    return changed


if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("average")
