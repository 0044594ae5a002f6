"""Read networks that other trainers have saved: rlgym-ppo, rlgym-learn, C++ trainers, TorchScript.

No code of a file runs: torch loads weights only, and of a script only the tensors are read. What a file
cannot tell is asked for: the activation of a `state_dict` or a script, the scaling of observations.
"""

import logging
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.policy.files import MANIFEST_FILE
from rlgym_bridge.policy.numpy_layers import ACTIVATIONS
from rlgym_bridge.policy.torchscript_archive import is_script_archive, read_archive, read_state_dict
from rlgym_bridge.user_input.extras import explain_install
from rlgym_bridge.user_input.text_files import parse_json, read_text

PPO_POLICY: Final = "PPO_POLICY.pt"  # rlgym-ppo 1.3
PPO_BOOKS: Final = "BOOK_KEEPING_VARS.json"
CPP_PPO_POLICY: Final = "PPO_POLICY.lt"  # RLGymPPO_CPP [its PPOLearner.cpp and DiscretePolicy.cpp: ReLU]
GIGA_POLICY: Final = "POLICY.lt"  # GigaLearnCPP [its Models.h]
GIGA_HEAD: Final = "SHARED_HEAD.lt"  # layers before those of policy and critic, where it has some
LEARN_ACTOR: Final = Path("ppo_learner", "actor.pt")  # rlgym-learn-algos 0.2 and 0.3, with rlgym-learn 1
LEARN_PAIR: Final = Path("ppo_learner", "actor_critic.pt")  # rlgym-learn-algos 0.4, with rlgym-learn 2
_FILES: Final = (
    PPO_POLICY, LEARN_ACTOR, LEARN_PAIR, LEARN_ACTOR.name, LEARN_PAIR.name, CPP_PPO_POLICY, GIGA_POLICY,
)  # fmt: skip
_DEEPEST: Final = 6  # folders below the one that is given, in which checkpoints are looked for
MAPPED: Final = ("actor", "mean", "std")
"""Parts of a network whose tensors a file may have under names of its own."""
_LOG = logging.getLogger(__name__)
_LAYER: Final = re.compile(r"(?:(?P<prefix>.*)\.)?(?P<number>0|[1-9]\d{0,3})\.(?P<part>weight|bias)")


@dataclass(frozen=True)
class ImportedNetwork:
    """The network of another trainer's checkpoint."""

    source: Path  # the file of the weights
    trainer: str  # rlgym-ppo, rlgym-learn, RLGymPPO_CPP, GigaLearnCPP; torch for a file by itself
    weights: Mapping[str, np.ndarray]  # named as in `numpy_layers.py`
    scale: tuple[float, float, float] | None  # mean, deviation and clip, the same for all numbers; or None
    steps: int | None  # steps trained, where the checkpoint says so
    # function behind the last layer in a script: "softmax", "log_softmax", "tanh", or "linear" for nothing;
    # "softplus" behind the second half of a layer that gives means and standard deviations. None where the
    # file does not tell.
    end: str | None = None
    activation: str = "relu"  # one of `ACTIVATIONS`, between the layers

    @property
    def widths(self) -> list[int]:
        """Numbers that each layer gives."""
        names = [name for name in self.weights if name.startswith("layers.") and name.endswith(".bias")]
        return [int(self.weights[name].shape[0]) for name in names]

    @property
    def inputs(self) -> int:
        """Numbers in an observation."""
        return int(self.weights["layers.0.weight"].shape[1])

    @property
    def outputs(self) -> int:
        """Numbers that the last layer gives."""
        return self.widths[-1]


def find_checkpoint(path: Path) -> Path:
    """Return the file of a policy's weights: a file, or that of a checkpoint, or of a folder of them.

    Of checkpoints whose names end with a number the largest is taken that is whole.

    Raises:
        FileNotFoundError: There is nothing of the kind; the message says what was looked for.
        ValueError: It is a policy folder, which needs no import; or there are several, without a number.
    """
    if path.is_file():
        return path
    if not path.exists():
        raise FileNotFoundError(f"{path} is no file or folder, expected a checkpoint")
    found = list(_checkpoints(path, _DEEPEST))
    if not found:
        raise FileNotFoundError(
            f"{path} holds no checkpoint that is known here; expected {PPO_POLICY} (rlgym-ppo), "
            f"{LEARN_ACTOR} or {LEARN_PAIR} (rlgym-learn), {CPP_PPO_POLICY} or {GIGA_POLICY} (C++), folders "
            "of them that are named by numbers, or a file"
        )
    best = max(map(_written, found))
    newest = next(one for one in found if _written(one) == best)
    if newest != found[0]:
        _LOG.warning("%s is not whole, so %s is taken: the newest that is", found[0], newest)
    return newest


def _checkpoints(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the files of weights in a folder and below it, the newest first."""
    name = next((name for name in _FILES if (folder / name).is_file()), None)
    if name is not None:
        yield folder / name
        return
    if (folder / MANIFEST_FILE).is_file():
        raise ValueError(f"{folder} is a policy folder already: it plays as it is, without an import")
    # A link may lead back to a folder above it.
    below = sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink()) if depth else []
    numbered = [(int(found[0]), one) for one in below if (found := re.findall(r"(?:^|-)(\d+)$", one.name))]
    if numbered:
        every = [list(_checkpoints(one, depth - 1)) or [one] for _, one in sorted(numbered, reverse=True)]
        if any(one.is_file() for found in every for one in found):
            yield from (one for found in every for one in found)
        return
    holding = {one: found for one in below if (found := list(_checkpoints(one, depth - 1)))}
    if len(holding) > 1:
        raise ValueError(
            f"{folder} holds checkpoints of {', '.join(one.name for one in holding)}, expected one of them: "
            f"name its folder, such as {next(iter(holding))}"
        )
    yield from (one for found in holding.values() for one in found)


def _written(file: Path) -> int:
    """Tell how much of a checkpoint was written: 0 no file, 1 one without an end, 2 weights, 3 notes, too."""
    if not file.is_file():
        return 0
    if not zipfile.is_zipfile(file):  # torch's archives have their directory at the end
        return 1
    try:
        return 2 if file.name == PPO_POLICY and not read_notes(file.with_name(PPO_BOOKS)) else 3
    except ValueError:
        return 2


def read_checkpoint(
    path: Path,
    activation: str | None = None,
    standardise: bool = True,
    names: Mapping[str, str] | None = None,
) -> ImportedNetwork:
    """Read a policy's weights and the scaling of its observations.

    Args:
        path: See `find_checkpoint`.
        activation: One of `ACTIVATIONS`, between the layers, for a file that does not tell. None takes those
            of rlgym-ppo and rlgym-learn for ReLU, as their own networks are.
        standardise: False for a `PPO_POLICY.pt` without rlgym-ppo's notes beside it that was trained with
            `standardize_obs=False`. With notes, they say it.
        names: Where the tensors of own classes are: for each of `MAPPED` that is not as in rlgym-learn the
            beginning of their names. `actor` may be several with commas between, with an activation between
            the layers of two.

    Raises:
        FileNotFoundError: See `find_checkpoint`.
        ValueError: The file cannot be read without running code, is no perceptron that can be played, or
            something is missing that it cannot tell; the message says what to give.
    """
    if activation not in (None, *ACTIVATIONS):
        raise ValueError(f"the activation is {activation}, expected one of {', '.join(ACTIVATIONS)}")
    file = find_checkpoint(path)
    tensors = (_script_tensors if is_script_archive(file) else _saved_tensors)(file)
    chosen, end = activation or "relu", None
    head = file.with_name(GIGA_HEAD)
    if file.name == GIGA_POLICY and head.is_file():
        tensors = _joined(_script_tensors(head), tensors)
    pair = file.name == LEARN_PAIR.name
    if names or pair:
        tensors, end = _select(tensors, names or {}, file)
    weights = _layers(tensors, file)
    if file.name == CPP_PPO_POLICY:
        return ImportedNetwork(file, "RLGymPPO_CPP", weights, None, None, end, chosen)
    if file.name == PPO_POLICY:
        scale, steps = read_ppo_notes(file.with_name(PPO_BOOKS), standardise)
        return ImportedNetwork(file, "rlgym-ppo", weights, scale, steps, activation=chosen)
    if file.resolve().parts[-2:] in (LEARN_ACTOR.parts, LEARN_PAIR.parts):
        books = read_notes(file.resolve().parent.parent / "ppo_agent.json")
        steps = books.get("cumulative_timesteps")
        return ImportedNetwork(file, "rlgym-learn", weights, None, steps, end, chosen)
    if end in (None, "softplus") and activation is None:
        raise ValueError(
            f"{file} holds tensors alone, which do not tell which activation stands between the layers, nor "
            "whether observations were standardised. If they were not, add --activation relu "
            '(activation="relu"), the usual one, or one of '
            f"{', '.join(name for name in ACTIVATIONS if name != 'relu')}"
        )
    trainer = "GigaLearnCPP" if file.name == GIGA_POLICY else "torch"
    return ImportedNetwork(file, trainer, weights, None, None, end, chosen)


def _select(
    tensors: Mapping[str, np.ndarray], names: Mapping[str, str], file: Path
) -> tuple[dict[str, np.ndarray], str | None]:
    """Return the actor's tensors, numbered as in `nn.Sequential`, and "softplus" for heads of their own."""
    plain = {
        ".".join(part for part in name.split(".") if part != "_orig_mod"): one
        for name, one in tensors.items()
    }
    if len(plain) != len(tensors):
        raise ValueError(f"{file} has tensors with and without _orig_mod in otherwise equal names")
    continuous = any(name.startswith("actor.mean_head.") for name in plain) or "mean" in names
    usual = {
        "actor": "actor.trunk" if continuous else "actor",
        "mean": "actor.mean_head",
        "std": "actor.std_head",
    }
    chosen = usual | dict(names)
    joined: dict[str, np.ndarray] = {}
    for prefix in chosen["actor"].split(","):
        joined = _joined(joined, _under(prefix.strip(), plain, file))
    if not continuous:
        return joined, None
    heads = [_under(chosen[part], plain, file) for part in ("mean", "std")]
    mean, std = ({name.rpartition(".")[2]: one for name, one in head.items()} for head in heads)
    sizes = [{name: one.shape for name, one in head.items()} for head in (mean, std)]
    if not len(heads[0]) == len(heads[1]) == 2 or sizes[0] != sizes[1]:
        raise ValueError(
            f"{file}: {chosen['mean']} has tensors {_shapes(heads[0])} and {chosen['std']} "
            f"{_shapes(heads[1])}, expected a linear layer each, of the same size"
        )
    last = {f"0.{part}": np.concatenate([mean[part], std[part]]) for part in mean}
    return _joined(joined, last), "softplus"


def _under(prefix: str, tensors: Mapping[str, np.ndarray], file: Path) -> dict[str, np.ndarray]:
    """Return the tensors whose names begin with a prefix, without it; a single layer gets the number 0."""
    found = {
        name.removeprefix(f"{prefix}."): one for name, one in tensors.items() if name.startswith(f"{prefix}.")
    }
    if not found:
        known = sorted({name.rpartition(".")[0] for name in tensors})
        raise ValueError(
            f"{file} has no tensors under {prefix}, only under {', '.join(known[:12])}: say with --map where "
            'they are, such as --map actor=policy.net (names={"actor": "policy.net"})'
        )
    matches = [match for name in found if (match := _LAYER.fullmatch(name))]
    networks = [f"{prefix}.{match['prefix']}" for match in matches if match["prefix"]]
    if len(set(networks)) > 1 or len(networks) not in (0, len(matches)):
        raise ValueError(
            f"{file} has several networks under {prefix}: {', '.join(dict.fromkeys(networks))}; name those "
            f"that follow each other, such as --map actor={','.join(dict.fromkeys(networks))}"
        )
    return {f"0.{name}" if name in ("weight", "bias") else name: one for name, one in found.items()}


def _shapes(tensors: Mapping[str, np.ndarray]) -> str:
    return ", ".join(f"{name} {one.shape}" for name, one in tensors.items())


def _joined(head: Mapping[str, np.ndarray], tail: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the tensors of two networks as those of one, with an activation between the two."""
    joined: dict[str, np.ndarray] = {}
    first = 0
    for tensors in (head, tail):
        found = {name: _LAYER.fullmatch(name) for name in tensors}
        for name, match in found.items():
            moved = name if match is None else f"{first + int(match['number'])}.{match['part']}"
            joined[moved] = tensors[name]
        first += max((int(match["number"]) for match in found.values() if match), default=-1) + 2
    return joined


def _sized(file: Path) -> str:
    """Name a file with its size, which tells of one that is empty or cut."""
    return f"{file} ({file.stat().st_size:,} bytes)"


def _saved_tensors(file: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a `state_dict` by name."""
    try:
        import torch
    except ImportError:
        expected = f"a state_dict. To read it with torch: {explain_install('train')}"
        return _read_zip(file, read_state_dict, "torch", expected)
    try:
        state: Any = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises what it likes over a file that is none of its own
        raise ValueError(
            f"{_sized(file)} cannot be read by torch without running code from it: {_line(error)}; expected "
            "a state_dict or TorchScript"
        ) from error
    if not isinstance(state, Mapping) or not all(isinstance(one, torch.Tensor) for one in state.values()):
        raise ValueError(f"{file} holds {type(state).__name__}, expected a state_dict of tensors by name")
    for name, one in state.items():
        if one.is_nested:
            raise ValueError(f"{file} has a nested tensor {name}, expected plain real numbers")
        plain = one.layout == torch.strided and one.is_floating_point() and not one.is_meta
        if not plain or one.numel() * one.element_size() > one.untyped_storage().nbytes():
            raise ValueError(f"{file} has a tensor {name} of {one.dtype}, expected plain real numbers")
    plain = {str(name): one.detach().resolve_conj().resolve_neg() for name, one in state.items()}
    return _finite({name: one.to(torch.float32).numpy() for name, one in plain.items()}, file)


def _script_tensors(file: Path) -> dict[str, np.ndarray]:
    """Return the tensors of an archive of TorchScript or libtorch by name."""
    return _read_zip(file, read_archive, "running code from it", "TorchScript")


def _read_zip(
    file: Path, read: Callable[[Path], Mapping[str, np.ndarray]], without: str, expected: str
) -> dict[str, np.ndarray]:
    """Return the tensors of one of torch's zips by name, as float32."""
    try:
        tensors = read(file)
    except Exception as error:  # what zipfile and pickle raise over a file that is broken, or none of torch's
        raise ValueError(
            f"{_sized(file)} cannot be read without {without}: {_line(error)}; expected {expected}"
        ) from error
    for name, tensor in tensors.items():
        if tensor.dtype.kind != "f":
            raise ValueError(f"{file} has a tensor {name} of {tensor.dtype}, expected plain real numbers")
    with np.errstate(over="ignore"):
        return _finite({name: tensor.astype(np.float32) for name, tensor in tensors.items()}, file)


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
    """Name the tensors of an `nn.Sequential`, whose numbers count activations, as `numpy_layers.py` does."""
    found: dict[int, dict[str, np.ndarray]] = {}
    prefixes = set()
    for name, tensor in tensors.items():
        match = _LAYER.fullmatch(name)
        if match is None:
            raise ValueError(
                f"{file} has a tensor {name} {tensor.shape}, expected linear layers by number alone; if the "
                "actor has only some of the tensors, say with --map actor=NAME which"
            )
        prefixes.add(match["prefix"])
        found.setdefault(int(match["number"]), {})[match["part"]] = tensor
    if len(prefixes) != 1:
        raise ValueError(f"{file} has tensors of {sorted(map(str, prefixes))}, expected those of one network")
    weights: dict[str, np.ndarray] = {}
    norms: dict[str, np.ndarray] = {}
    width, count, last = None, 0, -1
    for at, layer in sorted(found.items()):
        shapes = {part: tensor.shape for part, tensor in layer.items()}
        weight, bias = layer.get("weight"), layer.get("bias")
        if width is not None and at == last + 1 and shapes == {"weight": (width,), "bias": (width,)}:
            norms |= {f"norms.{count - 1}.{part}": tensor for part, tensor in layer.items()}
            continue
        fits = weight is not None and bias is not None and weight.ndim == 2 and bias.shape == weight.shape[:1]
        if not fits or (width is not None and weight is not None and weight.shape[1] != width):
            after = "" if width is None else f" that takes {width} numbers"
            raise ValueError(
                f"{file}: layer {at} has {shapes}, expected a linear layer{after}, or layer normalisation "
                "between it and its activation; no others are known"
            )
        assert weight is not None and bias is not None  # it fits
        weights |= {f"layers.{count}.weight": weight, f"layers.{count}.bias": bias}
        width, count, last = weight.shape[0], count + 1, at
    behind = sorted({int(name.split(".")[1]) for name in norms})
    if behind not in ([], list(range(count - 1))):
        raise ValueError(
            f"{file} has layer normalisation behind the linear layers {behind} of {count}, expected it "
            "behind all but the last, or none"
        )
    return weights | norms


_PPO_CLIP: Final = 5.0  # standardised observations are clipped to it [rlgym-ppo, batched_agent_manager.py]
_MOST: Final = 1e12  # of means and variances: no observation has such numbers


def read_notes(file: Path) -> dict[str, Any]:
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


def read_ppo_notes(file: Path, standardise: bool) -> tuple[tuple[float, float, float] | None, Any]:
    """Return how rlgym-ppo scales observations, and the steps trained.

    It notes `obs_running_stats` exactly where `standardize_obs` is on, which is its default. Raises
    ValueError where the notes, or the words of the user, do not say it.
    """
    books = read_notes(file)
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
    """Return how rlgym-ppo scales observations: by mean and deviation of their first number."""
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
