"""Read and write the tensors of a policy folder; nothing that it names is imported."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from rlgym_bridge.policy.files import WEIGHTS_FILE, read_files
from rlgym_bridge.policy.manifest import Manifest

FIRST_LAYER = "layers.0.weight"
STATE_CHECKSUM = "state_sha256"
"""Note of `policy.json` in a checkpoint: SHA-256 of the learner's state beside it, hexadecimal."""


def read_tensors(folder: Path) -> tuple[Manifest, dict[str, np.ndarray]]:
    """Return the manifest of a policy folder and its tensors by name, float32, layers in order.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged, or the weights are not those of layers of finite numbers.
    """
    manifest, data = read_files(folder)
    source = folder / WEIGHTS_FILE
    try:
        tensors = safetensors.numpy.load(data)
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{source} is not readable as safetensors: {error}") from error
    layers = [name for name in tensors if name.startswith("layers.") and name.endswith(".weight")]
    if not layers:
        raise ValueError(f"{source} holds no layers of a network, expected {FIRST_LAYER} among its tensors")
    for number in range(len(layers)):
        for name, dimensions in ((f"layers.{number}.weight", 2), (f"layers.{number}.bias", 1)):
            if name not in tensors or tensors[name].ndim != dimensions:
                there = "missing" if name not in tensors else f"of {tensors[name].ndim} dimensions"
                raise ValueError(f"{source}: {name} is {there}, expected {dimensions}")
    _check_numbers(tensors, str(source))
    return manifest, tensors


def pack_tensors(
    manifest: Manifest, tensors: Mapping[str, np.ndarray], notes: Mapping[str, Any]
) -> tuple[bytes, Manifest]:
    """Return weights and manifest of changed tensors, for `rlgym_bridge.policy.files.write_files`.

    Args:
        manifest: Of the policy that was changed.
        tensors: By name.
        notes: Added to the manifest's notes of the training, of which the checksum of a state is left out.

    Raises:
        ValueError: A tensor has a number that is not finite.
    """
    _check_numbers(tensors, "the changed policy")
    data = safetensors.numpy.save(dict(tensors))
    training = {**manifest.training, **notes}
    if STATE_CHECKSUM not in notes:  # no state lies beside what is written
        training.pop(STATE_CHECKSUM, None)
    return data, replace(manifest, training=training, weights_sha256=hashlib.sha256(data).hexdigest())


def _check_numbers(tensors: Mapping[str, np.ndarray], source: str) -> None:
    for name, tensor in tensors.items():
        if tensor.dtype != np.float32 or not np.isfinite(tensor).all():
            raise ValueError(f"{source}: {name} has other numbers than finite ones of float32")
