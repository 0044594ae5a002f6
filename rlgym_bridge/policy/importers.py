"""Read networks that other trainers have saved: rlgym-ppo, rlgym-learn, TorchScript.

    find_checkpoint -> read_checkpoint -> ForeignNetwork, which `save_policy` takes

Layer sizes are read off the tensors. No code of a file runs: torch loads weights only, and the code of a
script is followed without running it. What a file cannot tell is asked for: the activations of a
`state_dict`, and the scaling of observations where the trainer's notes are missing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.policy.files import MANIFEST_FILE
from rlgym_bridge.policy.torchscript_archive import is_script_archive, read_archive
from rlgym_bridge.policy.torchscript_layers import RefusedScript, script_layers
from rlgym_bridge.user_input.text_files import parse_json, read_text

PPO_POLICY: Final = "PPO_POLICY.pt"  # rlgym-ppo 1.3
PPO_BOOKS: Final = "BOOK_KEEPING_VARS.json"
LEARN_ACTOR: Final = Path("ppo_learner", "actor.pt")  # rlgym-learn-algos 0.2 on
_PPO_CLIP: Final = 5.0  # standardised observations are clipped to it [rlgym-ppo, batched_agent_manager.py]
_MOST: Final = 1e12  # of means and variances: no observation has such numbers
_LAYER: Final = re.compile(r"(?:(?P<prefix>.*)\.)?(?P<number>0|[1-9]\d*)\.(?P<part>weight|bias)")


@dataclass(frozen=True)
class ForeignNetwork:
    """The network of another trainer's checkpoint.

    Attributes:
        source: The file of the weights.
        trainer: The program that wrote it: `rlgym-ppo`, `rlgym-learn`, or `torch` for a file by itself.
        weights: Named as in `numpy_layers.py`.
        scale: Scaling of observations, the same for all numbers: mean, standard deviation, clip. None for
            observations taken as they are.
        steps: Steps trained, where the checkpoint says so.
        end: Function behind the last layer in a script: "softmax", "log_softmax", "tanh", or "linear" for
            nothing. None where the file does not tell.
    """

    source: Path
    trainer: str
    weights: Mapping[str, np.ndarray]
    scale: tuple[float, float, float] | None
    steps: int | None
    end: str | None = None

    @property
    def inputs(self) -> int:
        """Numbers in an observation."""
        return int(self.weights["layers.0.weight"].shape[1])

    @property
    def outputs(self) -> int:
        """Numbers that the last layer gives."""
        return int(self.weights[f"layers.{len(self.weights) // 2 - 1}.weight"].shape[0])


def find_checkpoint(path: Path) -> Path:
    """Return the file of a policy's weights.

    Args:
        path: The file; the folder of a checkpoint; or one that holds checkpoints: of folders whose names are
            numbers, or end with one, the largest is taken, and one that is alone.

    Raises:
        FileNotFoundError: There is nothing of the kind; the message says what was looked for.
        ValueError: It is a policy folder, which needs no import.
    """
    if path.is_file():
        return path
    folder = path
    while True:
        for name in (Path(PPO_POLICY), LEARN_ACTOR, Path(LEARN_ACTOR.name)):
            if (folder / name).is_file():
                return folder / name
        if (folder / MANIFEST_FILE).is_file():
            raise ValueError(f"{folder} is a policy folder already: it plays as it is, without an import")
        below = [one for one in folder.iterdir() if one.is_dir()] if folder.is_dir() else []
        numbered = [
            (int(found[0]), one) for one in below if (found := re.findall(r"(?:^|-)(\d+)$", one.name))
        ]
        if not numbered and len(below) != 1:
            raise FileNotFoundError(
                f"{path} holds no checkpoint that is known here; expected {PPO_POLICY} (rlgym-ppo), "
                f"{LEARN_ACTOR} (rlgym-learn), folders of them that are named by numbers, or a file"
            )
        folder = max(numbered)[1] if numbered else below[0]


def read_checkpoint(path: Path, activation: str | None = None, standardise: bool = True) -> ForeignNetwork:
    """Read a policy's weights and the scaling of its observations.

    Args:
        path: See `find_checkpoint`.
        activation: Activation between the layers, for a file that does not tell; only "relu" can be played.
        standardise: False for a `PPO_POLICY.pt` without rlgym-ppo's notes beside it that was trained with
            `standardize_obs=False`. With notes, they say it.

    Raises:
        FileNotFoundError: See `find_checkpoint`.
        ImportError: torch is not installed, and the file is no script.
        ValueError: The file cannot be read without running code, is no perceptron with ReLU, or something is
            missing that it cannot tell; the message says what to give.
    """
    if activation not in (None, "relu"):
        raise ValueError(
            f"the activation is {activation}, expected relu: only networks with ReLU between their layers "
            "can be played"
        )
    file = find_checkpoint(path)
    tensors, end = (_script_tensors if is_script_archive(file) else _saved_tensors)(file)
    weights = _layers(tensors, file)
    if file.name == PPO_POLICY:
        scale, steps = _ppo_notes(file.with_name(PPO_BOOKS), standardise)
        return ForeignNetwork(file, "rlgym-ppo", weights, scale, steps)
    if file.resolve().parts[-2:] == LEARN_ACTOR.parts:
        books = _books(file.resolve().parent.parent / "ppo_agent.json")
        return ForeignNetwork(file, "rlgym-learn", weights, None, books.get("cumulative_timesteps"))
    if end is None and activation is None:
        raise ValueError(
            f"{file} holds tensors alone, which do not tell what stands between the layers; if that is ReLU, "
            'and observations were not standardised, add --activation relu (activation="relu"); others '
            "cannot be played"
        )
    return ForeignNetwork(file, "torch", weights, None, None, end)


def _saved_tensors(file: Path) -> tuple[dict[str, np.ndarray], None]:
    """Return the tensors of a `state_dict` by name, and None: it does not tell activations."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            'reading torch\'s files needs torch (playing does not): pip install "rlgym-bridge[train]"'
        ) from error
    try:
        state: Any = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises what it likes over a file that is none of its own
        raise ValueError(
            f"{file} cannot be read by torch without running code from it: {_line(error)}; expected a "
            "state_dict or TorchScript"
        ) from error
    if not isinstance(state, Mapping) or not all(isinstance(one, torch.Tensor) for one in state.values()):
        raise ValueError(f"{file} holds {type(state).__name__}, expected a state_dict of tensors by name")
    for name, one in state.items():
        plain = one.layout == torch.strided and one.is_floating_point() and not one.is_meta
        if not plain or one.numel() * one.element_size() > one.untyped_storage().nbytes():
            raise ValueError(f"{file} has a tensor {name} of {one.dtype}, expected plain real numbers")
    plain = {str(name): one.detach().resolve_conj().resolve_neg() for name, one in state.items()}
    return _finite({name: one.to(torch.float32).numpy() for name, one in plain.items()}, file), None


def _script_tensors(file: Path) -> tuple[dict[str, np.ndarray], str | None]:
    """Return the tensors of a script's layers, with ReLU between them, and what comes behind the last one.

    An archive of libtorch, as C++ trainers write them, has no code: tensors by name, and None.
    """
    try:
        archive = read_archive(file)
        computed = script_layers(archive)
    except RefusedScript as error:
        raise ValueError(
            f"{file} {error}; expected linear layers with ReLU between them, and softmax, log_softmax or "
            "tanh behind them at most"
        ) from error
    except Exception as error:  # what zipfile, pickle and ast raise over a file that is broken
        raise ValueError(
            f"{file} cannot be read without running code from it: {_line(error)}; expected TorchScript"
        ) from error
    tensors, end = (archive.tensors(), None) if computed is None else computed
    for name, tensor in tensors.items():
        if tensor.dtype.kind != "f":
            raise ValueError(f"{file} has a tensor {name} of {tensor.dtype}, expected plain real numbers")
    with np.errstate(over="ignore"):
        small = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
    return _finite(small, file), end


def _line(error: Exception) -> str:
    """Return the first sentence of an error; torch's have many, and colours."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).partition("\n")[0]
    return f"{type(error).__name__}: {text.partition('. ')[0]}"


def _finite(tensors: dict[str, np.ndarray], file: Path) -> dict[str, np.ndarray]:
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise ValueError(f"{file}: {name} has numbers that are not finite, expected finite ones")
    return tensors


def _layers(tensors: Mapping[str, np.ndarray], file: Path) -> dict[str, np.ndarray]:
    """Name the tensors of an `nn.Sequential` as `numpy_layers.py` does; activations have none."""
    found: dict[int, dict[str, np.ndarray]] = {}
    prefixes = set()
    for name, tensor in tensors.items():
        match = _LAYER.fullmatch(name)
        if match is None:
            raise ValueError(
                f"{file} has a tensor {name} {tensor.shape}, expected linear layers by number alone"
            )
        prefixes.add(match["prefix"])
        found.setdefault(int(match["number"]), {})[match["part"]] = tensor
    if len(prefixes) != 1:
        raise ValueError(f"{file} has tensors of {sorted(map(str, prefixes))}, expected those of one network")
    weights: dict[str, np.ndarray] = {}
    width = None
    for number, (at, layer) in enumerate(sorted(found.items())):
        shapes = {part: tensor.shape for part, tensor in layer.items()}
        weight, bias = layer.get("weight"), layer.get("bias")
        fits = weight is not None and bias is not None and weight.ndim == 2 and bias.shape == weight.shape[:1]
        if not fits or (width is not None and weight is not None and weight.shape[1] != width):
            after = "" if width is None else f" that takes {width} numbers"
            raise ValueError(
                f"{file}: layer {at} has {shapes}, expected a linear layer{after}; no others are known"
            )
        assert weight is not None and bias is not None  # it fits
        weights |= {f"layers.{number}.weight": weight, f"layers.{number}.bias": bias}
        width = weight.shape[0]
    return weights


def _books(file: Path) -> dict[str, Any]:
    """Return the trainer's notes beside the weights; nothing where there are none."""
    if not file.is_file():
        return {}
    try:
        books = parse_json(read_text(file))
    except (OSError, ValueError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from error
    if not isinstance(books, dict):
        raise ValueError(f"{file} holds {type(books).__name__}, expected an object with a trainer's notes")
    return books


def _ppo_notes(file: Path, standardise: bool) -> tuple[tuple[float, float, float] | None, Any]:
    """Return how rlgym-ppo scales observations, and the steps trained.

    It notes `obs_running_stats` exactly where `standardize_obs` is on, which is its default.

    Raises:
        ValueError: There are no notes, and nobody says that observations were taken as they are; or there
            are, and they say something else.
    """
    books = _books(file)
    stats = books.get("obs_running_stats")
    if not file.is_file() and standardise:
        raise ValueError(
            f"{file} is missing: it says how rlgym-ppo standardised observations, as it does by default. Put "
            "it beside the policy, or, if the bot was trained with standardize_obs=False, add "
            "--no-standardise (standardise=False)"
        )
    if stats is not None and not standardise:
        raise ValueError(
            f"{file} has obs_running_stats, so the bot was trained with standardised observations, and would "
            "play wrongly without: leave out --no-standardise"
        )
    return _ppo_scale(stats, file), books.get("cumulative_timesteps")


def _ppo_scale(stats: Any, file: Path) -> tuple[float, float, float] | None:
    """Return how rlgym-ppo scales observations where `standardize_obs` is on.

    It takes mean and deviation of the observation's first number for all of them (`obs_stats.mean[0]` of a
    row of means), so that is what the network has learned from.
    """
    if stats is None:
        return None
    try:
        mean, spread, count = np.ravel(stats["mean"]), np.ravel(stats["var"]), int(stats["count"])
        first, squares = float(mean[0]), float(spread[0])
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{file}: obs_running_stats has no mean, var and count to read: {type(error).__name__}: {error}"
        ) from error
    if count < 2:
        return 0.0, 1.0, _PPO_CLIP
    variance = squares / (count - 1)
    if not (abs(first) < _MOST and 0 <= variance < _MOST):
        raise ValueError(
            f"{file}: obs_running_stats has mean {first:g} and variance {variance:g} of the first number, "
            f"expected finite ones below {_MOST:g}"
        )
    return first, float(np.sqrt(variance)) if variance else 1.0, _PPO_CLIP
