"""Networks that other trainers have saved: rlgym-ppo, rlgym-learn, TorchScript.

    find_checkpoint -> read_checkpoint -> ForeignNetwork, which `save_policy` takes

Layer sizes are read off the tensors. Nothing is unpickled: torch loads weights only.
"""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.policy_files import MANIFEST_FILE

_LOG = logging.getLogger(__name__)

PPO_POLICY: Final = "PPO_POLICY.pt"  # rlgym-ppo 1.3
PPO_BOOKS: Final = "BOOK_KEEPING_VARS.json"
LEARN_ACTOR: Final = Path("ppo_learner", "actor.pt")  # rlgym-learn-algos 0.2 on
_PPO_CLIP: Final = 5.0  # standardised observations are clipped to it [rlgym-ppo, batched_agent_manager.py]
_MOST: Final = 1e12  # of means and variances: no observation has such numbers
_LAYER: Final = re.compile(r"(?:(?P<prefix>.*)\.)?(?P<number>\d+)\.(?P<part>weight|bias)")


@dataclass(frozen=True)
class ForeignNetwork:
    """What a checkpoint holds.

    Attributes:
        source: The file of the weights.
        trainer: Who wrote it: `rlgym-ppo`, `rlgym-learn`, or `torch` for a file by itself.
        weights: Named as in `network.py`.
        scale: What observations are scaled with, all numbers alike: mean, standard deviation, clip. None for
            observations taken as they are.
        steps: Steps trained, where the checkpoint says so.
    """

    source: Path
    trainer: str
    weights: Mapping[str, np.ndarray]
    scale: tuple[float, float, float] | None
    steps: int | None

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


def read_checkpoint(path: Path) -> ForeignNetwork:
    """Read a policy's weights, and what its observations are scaled with.

    Args:
        path: See `find_checkpoint`.

    Raises:
        FileNotFoundError: See `find_checkpoint`.
        ImportError: torch is not installed.
        ValueError: The file cannot be read without running code, or is no perceptron.
    """
    file = find_checkpoint(path)
    tensors, script = _tensors(file)
    weights = _layers(tensors, file)
    if script is not None:
        _check_activations(script, weights, file)
    if file.name == PPO_POLICY:
        books = _books(file.with_name(PPO_BOOKS))
        scale = _ppo_scale(books.get("obs_running_stats"), file.with_name(PPO_BOOKS))
        return ForeignNetwork(file, "rlgym-ppo", weights, scale, books.get("cumulative_timesteps"))
    if file.name == LEARN_ACTOR.name:
        books = _books(file.parent.parent / "ppo_agent.json")
        return ForeignNetwork(file, "rlgym-learn", weights, None, books.get("cumulative_timesteps"))
    return ForeignNetwork(file, "torch", weights, None, None)


def _tensors(file: Path) -> tuple[dict[str, np.ndarray], Any]:
    """Return a file's tensors by name, and the module itself where it is TorchScript."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "reading torch's files needs torch (playing does not): "
            "pip install -c constraints.txt -e '.[train]'"
        ) from error
    try:
        load: Any = torch.jit.load
        try:
            state: Any = torch.load(file, map_location="cpu", weights_only=True)
        except RuntimeError:  # an archive of TorchScript, or of libtorch: C++ trainers write them
            state = load(str(file), map_location="cpu")
        script = state if isinstance(state, torch.jit.ScriptModule) else None
        if script is not None:
            state = script.state_dict()
    except Exception as error:  # torch raises what it likes over a file that is none of its own
        raise ValueError(
            f"{file} cannot be read by torch without running code from it: {type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else ''}; expected a state_dict or TorchScript"
        ) from error
    if not isinstance(state, Mapping) or not all(isinstance(one, torch.Tensor) for one in state.values()):
        raise ValueError(f"{file} holds {type(state).__name__}, expected a state_dict of tensors by name")
    odd = [name for name, one in state.items() if one.layout != torch.strided or not one.is_floating_point()
           or one.is_meta]  # fmt: skip
    if odd:
        raise ValueError(
            f"{file} has a tensor {odd[0]} of {state[odd[0]].dtype}, expected plain real numbers"
        )
    tensors = {str(name): one.detach().to(torch.float32).numpy() for name, one in state.items()}
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise ValueError(f"{file}: {name} has numbers that are not finite, expected finite ones")
    return tensors, script


def _check_activations(script: Any, weights: Mapping[str, np.ndarray], file: Path) -> None:
    """Make sure that a script computes what the linear layers do with ReLU between them.

    Raises:
        ValueError: It does not, or cannot be run.
    """
    import torch

    shown = np.random.default_rng(0).normal(size=(32, weights["layers.0.weight"].shape[1]))
    given = torch.as_tensor(shown, dtype=torch.float32)
    try:
        with torch.no_grad():
            theirs = script(given)
    except Exception as error:  # a libtorch archive has tensors and no code
        _LOG.warning(
            "%s does not run by itself, so that ReLU is taken for granted: %s", file, type(error).__name__
        )
        return
    layers = len(weights) // 2
    with torch.no_grad():
        for number in range(layers):
            weight, bias = (
                torch.as_tensor(weights[f"layers.{number}.{part}"]) for part in ("weight", "bias")
            )
            given = given @ weight.T + bias
            if number < layers - 1:
                given = torch.relu(given)
    ends = (given, torch.softmax(given, -1), torch.log_softmax(given, -1), torch.tanh(given))
    if not isinstance(theirs, torch.Tensor) or not any(
        one.shape == theirs.shape and torch.allclose(one, theirs.to(one.dtype), atol=1e-4) for one in ends
    ):
        raise ValueError(
            f"{file} computes something else than its {layers} linear layers with ReLU between them, and "
            "softmax or tanh behind them at most; expected those alone"
        )


def _layers(tensors: Mapping[str, np.ndarray], file: Path) -> dict[str, np.ndarray]:
    """Name the tensors of an `nn.Sequential` as `network.py` does; activations have none."""
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
    """Return what a trainer noted beside the weights; nothing where it did not."""
    if not file.is_file():
        return {}
    try:
        books = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from error
    return books if isinstance(books, dict) else {}


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
