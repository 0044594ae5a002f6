"""Write and load checkpoints: `<out>/checkpoints/<steps>/`, policy folders with the training's state.

A checkpoint is renamed once it is whole; the file `latest` names the newest. Everything is on the disk before
an older one is deleted, so that a power cut takes at most the checkpoint that is being written.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final

import safetensors.torch
import torch
from torch import Tensor

from rlgym_bridge.policy.carried_modules import explain_copies
from rlgym_bridge.policy.files import (
    CHECKPOINTS,
    LATEST,
    MANIFEST_FILE,
    all_checkpoints,
    checkpoints_to_try,
    policy_path,
    read_files,
)
from rlgym_bridge.policy.fingerprint import Fingerprint, differences
from rlgym_bridge.policy.manifest import Manifest, Normalisation
from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.sim.simulator import ROCKETSIM2
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.settings import SettingsError, TrainingSettings, recorded_settings
from rlgym_bridge.user_input.durable_files import make_folder, sync_folder, write_durably
from rlgym_bridge.user_input.text_files import check_file


def has_checkpoint(settings: TrainingSettings, before: int, after: int) -> bool:
    """Return whether a checkpoint follows an iteration, from its agent steps before and after it."""
    return after // settings.checkpoint_every > before // settings.checkpoint_every


class Checkpoints:
    """The checkpoints of one run in the folder `out`, of which the newest `keep` are kept, 1 or more."""

    def __init__(self, out: Path, keep: int) -> None:
        self._run, self.folder = out, out / CHECKPOINTS
        self._keep = keep

    def save(self, steps: int, write: Callable[[Path], Any]) -> Path:
        """Let `write` write a checkpoint durably, and remove the oldest; OSErrors have its `filename`."""
        try:
            folder = self.replace(steps, write)
            write_durably(self.folder, {LATEST: f"{steps}\n".encode()})
        except OSError as error:
            if error.errno is not None and not isinstance(error, FileExistsError | IsADirectoryError):
                error.filename, error.filename2 = str(self.folder / str(steps)), None
            raise
        # By steps, since a clock may be set back. Someone who went back left those with more steps.
        found = sorted(all_checkpoints(self._run), key=lambda one: (int(one.name) <= steps, int(one.name)))
        for old in found[: -self._keep]:
            shutil.rmtree(old, ignore_errors=True)
        return folder

    def replace(self, steps: int, write: Callable[[Path], Any]) -> Path:
        """Let `write` write a checkpoint in place of the one of as many steps, if any; return its folder."""
        folder = self.folder / str(steps)
        unfinished, before = (self.folder / f".{steps}.{os.getpid()}{end}.tmp" for end in ("", ".before"))
        make_folder(self.folder)
        self.recover()
        unfinished.mkdir()
        try:
            write(unfinished)
            if folder.exists():  # training went back, and comes here again
                folder.replace(before)
            unfinished.replace(folder)
            sync_folder(self.folder)
        except BaseException:
            if before.exists() and not folder.exists():
                before.replace(folder)
            raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
            shutil.rmtree(before, ignore_errors=True)
        return folder

    def is_interrupted(self) -> bool:
        """Return whether a process ended while it replaced a checkpoint, whose former content is left."""
        return any(self.folder.glob(".*.before.tmp"))

    def recover(self) -> None:
        """Put back what a process had to replace that ended meanwhile, and remove what it left unfinished."""
        for before in self.folder.glob(".*.before.tmp"):
            steps = before.name.split(".")[1]
            folder = self.folder / steps
            if steps.isdecimal() and before.is_dir() and not before.is_symlink() and not folder.exists():
                before.replace(folder)
        for left in self.folder.glob(".*.tmp"):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)


STATE_FILE: Final = "training.pt"
STATE_CHECKSUM: Final = "state_sha256"
"""Note of `policy.json` in a checkpoint: SHA-256 of the learner's state beside it, hexadecimal."""

STATE: Final = (
    "steps", "settings", "policy", "critic", "optimizer", "scale", "return_scale", "snapshots", "offered",
    "ratings",
)  # fmt: skip


class DamagedCheckpoint(SettingsError):
    """A checkpoint lacks a file, or one of them is not as it was written."""


_KEPT: Final = (
    "policy_layers", "critic_layers", "team_sizes", "normalise_obs", "snapshots", "activation", "layer_norm",
    "standardize_returns", "network",
)  # fmt: skip
"""Settings that a run cannot change; of `team_sizes` the shares may."""


def load_state(folder: Path, settings: TrainingSettings, built: Fingerprint, task: Task) -> dict[str, Any]:
    """Return the state that a checkpoint holds, if it belongs to what is to be trained.

    `built` is what the components of the run make of the probe. Raises DamagedCheckpoint where it is damaged,
    or a file is missing; SettingsError where it was trained with another observation, parser or networks.
    """
    manifest, state = read_checkpoint(folder)
    found = differences(manifest, built, task.obs_and_parser())
    copies = explain_copies(folder) if found else ""  # they mend no setting
    before, now = state["settings"], recorded_settings(settings)
    found += [
        f"{name} was {before.get(name)} and is {now[name]} now"
        for name in _KEPT
        if before.get(name) != now[name]
        and (name != "team_sizes" or _without_shares(before.get(name, ())) != _without_shares(now[name]))
    ]
    if found and (was := before.get("ball_ahead", [])) != now["ball_ahead"]:  # it is why, where obs reads it
        found.append(f"ball_ahead was {was} and is {now['ball_ahead']} now")
    if before.get("mirror") and not settings.mirror:  # true may follow false: one half is as it was
        found.append("mirror was true and is false now")
    if found:
        raise SettingsError(
            f"the checkpoint {folder} does not fit what is to be trained: {'; '.join(found)}. Use the code "
            f"and the settings that it was trained with, or train anew in another folder (out){copies}"
        )
    return state


def read_checkpoint(folder: Path) -> tuple[Manifest, dict[str, Any]]:
    """Return manifest and state of a checkpoint; raises DamagedCheckpoint, or SettingsError for others."""
    try:
        manifest, _ = read_files(folder)
    except (OSError, ValueError) as error:
        raise DamagedCheckpoint(f"the checkpoint {folder} cannot be read: {error}") from error
    path = folder / STATE_FILE
    try:
        check_file(path, "the state of a training run")
        with path.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
            recorded = str(manifest.training.get(STATE_CHECKSUM, checksum))
            if checksum != recorded:
                raise ValueError(
                    f"{STATE_FILE} ({path.stat().st_size:,} bytes) is not the file that {MANIFEST_FILE} was "
                    "saved with: it was changed, damaged or copied from another save. Copy the whole "
                    f"checkpoint again, or go on from another one (SHA-256 {checksum[:12]}..., "
                    f"{STATE_CHECKSUM} in {MANIFEST_FILE} is {recorded[:12]}...)"
                )
            file.seek(0)
            state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    except UnpicklingError as error:  # whose message advises to load such files without a check
        raise DamagedCheckpoint(
            f"the checkpoint {folder} cannot be read: {STATE_FILE} is damaged, or holds more than numbers, "
            "expected one that training wrote"
        ) from error
    except Exception as error:  # torch has many ways to say that a file is damaged
        why = str(error) or "it is cut off"
        kind = "" if isinstance(error, OSError) or type(error) is ValueError else f"{type(error).__name__}: "
        raise DamagedCheckpoint(f"the checkpoint {folder} cannot be read: {kind}{why}") from error
    missing = [name for name in STATE if name not in state] if isinstance(state, dict) else list(STATE)
    if missing:
        raise SettingsError(
            f"the checkpoint {folder} lacks {', '.join(missing)} in {STATE_FILE}: another version wrote it; "
            "train anew in another folder (out)"
        )
    return manifest, state


def check_tensors(
    folder: Path, name: str, tensors: Mapping[str, Tensor], given: Mapping[str, Tensor]
) -> None:
    """Raise SettingsError unless a checkpoint's tensors for a network have its names and shapes."""
    ours, theirs = ({one: tuple(held.shape) for one, held in held_by.items()} for held_by in (tensors, given))
    if differing := sorted({one for one, _ in ours.items() ^ theirs.items()}):
        raise SettingsError(
            f"the checkpoint {folder} does not fit what is to be trained: its {name} has other tensors than "
            f"that network now: {', '.join(differing[:4])}. Use the code that it was trained with, or train "
            f"anew in another folder (out){explain_copies(folder)}"
        )


def check_moments(kept: Mapping[int, Mapping[str, Tensor]], parameters: Sequence[Tensor]) -> None:
    """Raise ValueError unless what Adam keeps of parameters has their shapes; Adam would crash."""
    for number, moments in kept.items():
        if {moments["exp_avg"].shape, moments["exp_avg_sq"].shape} != {parameters[number].shape}:
            raise ValueError(f"Adam's numbers for parameter {number} have another shape than it")


def whole_checkpoint(run: Path) -> Path | None:
    """Return the newest checkpoint of a run of which all files are whole; None where there is none."""
    for folder in checkpoints_to_try(run):
        with suppress(SettingsError):
            read_checkpoint(folder)
            return folder
    return None


def settings_of_run(run: Path) -> Mapping[str, Any]:
    """Return the settings that a run had by its newest readable checkpoint; {} where there is none."""
    for folder in checkpoints_to_try(run):
        with suppress(OSError, ValueError):
            manifest, _ = read_files(folder)
            return {"simulator": ROCKETSIM2, **manifest.training.get("settings", {})}
    return {}


def load_start(
    settings: TrainingSettings, built: Fingerprint, task: Task, shape: PolicyShape
) -> tuple[dict[str, Tensor], Normalisation | None]:
    """Return weights and normalisation of the policy in `settings.start_from`, if it can be trained on.

    `built` is what the components of the run make of the probe, `shape` that of its policy. Raises
    SettingsError where the folder is unreadable, or the policy does not fit the run.
    """
    given = f'start_from is "{settings.start_from}"'
    try:
        manifest, data = read_files(Path(policy_path(settings.start_from)))
        weights = safetensors.torch.load(data)
    except Exception as error:  # safetensors has an error of its own beside those of files
        raise SettingsError(f"{given}, which cannot be read: {error}") from error
    found = differences(manifest, built, task.obs_and_parser())
    # Without what a row of a policy holds besides weights.
    expected = {name: size for name, size in shape.tensors.items() if not name.startswith("obs_")}
    there = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    layer_norm = any(name.startswith("norms.") for name in there)
    if manifest.network != shape.network:
        found.append(f"its network is {manifest.network}, this run's {shape.network}")
    elif layer_norm != shape.layer_norm:
        found.append(f"its layer_norm is {layer_norm}, this run's {shape.layer_norm}")
    elif shape.is_own and there != expected:
        found.append(f"its tensors of {shape.network} differ from those of the class")
    elif _layers(there) != _layers(expected) or (there != expected and not found):
        found.append(f"its layers are {_layers(there)}, this run's {_layers(expected)} (policy_layers)")
    for name in ("activation", "distribution"):
        if (theirs := getattr(manifest, name)) != (ours := getattr(shape, name)):
            found.append(f"its {name} is {theirs}, this run's {ours}")
    if manifest.mirror and shape.mirror is None:
        found.append("it knows one half of the field alone, this run's does not (mirror = true)")
    scaling = manifest.obs_normalisation
    clip = None if scaling is None else scaling.clip
    if clip is None and shape.obs_clip is not None:
        found.append("its observations are not normalised, this run's are (normalise_obs = false)")
    elif clip != shape.obs_clip:
        found.append(
            f"its observations are normalised and clipped to {clip}, this run's "
            + ("are not" if shape.obs_clip is None else f"are clipped to {shape.obs_clip}")
            + f" (normalise_obs = true, obs_clip = {clip})"
        )
    if found:
        raise SettingsError(
            f"{given}, which does not fit what is to be trained: {'; '.join(found)}. Give the files of "
            "settings that it was trained with, too"
        )
    return weights, scaling


def _without_shares(team_sizes: Sequence[Any]) -> list[list[int]]:
    """Return cars of blue and orange in matches of each size; their shares may change."""
    mixed = bool(team_sizes) and isinstance(team_sizes[0], Sequence)
    return [list(size[:2]) for size in (team_sizes if mixed else [team_sizes])]


def _layers(shapes: dict[str, tuple[int, ...]]) -> list[int]:
    """Return the widths of the layers' outputs."""
    biases = [name for name in shapes if name.startswith("layers.") and name.endswith("bias")]
    return [shapes[name][0] for name in sorted(biases, key=lambda name: (len(name), name))]
