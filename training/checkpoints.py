"""Checkpoints: `<out>/checkpoints/<steps>/`, each a policy folder with the state of the training beside it.

A checkpoint is written under another name and then renamed, so that one that is there is whole; the file
`latest` beside them names the newest.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import torch

from rlgym_bridge.components import component_factory
from rlgym_bridge.fingerprint import Fingerprint
from rlgym_bridge.mismatch import differences
from rlgym_bridge.policy_files import read_files
from training.config import ConfigError, Settings

STATE_FILE: Final = "training.pt"
_LATEST: Final = "latest"


class Checkpoints:
    """The checkpoints of one run.

    Args:
        out: Folder of the run.
        keep: How many of the newest are kept.
    """

    def __init__(self, out: Path, keep: int) -> None:
        self.folder = out / "checkpoints"
        self._keep = keep

    def latest(self) -> Path | None:
        """Return the newest checkpoint; None where there is none."""
        found = self._all()
        try:
            named = self.folder / (self.folder / _LATEST).read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            named = None
        if named in found:
            return named
        return found[-1] if found else None

    def save(self, steps: int, save_policy: Callable[[Path], Any], state: Mapping[str, Any]) -> Path:
        """Write a checkpoint and remove the oldest ones.

        Args:
            steps: Agent steps trained; its name.
            save_policy: Writes the policy folder at a path.
            state: Tensors, numbers, texts, and lists and dicts of them.

        Returns:
            Its folder.
        """
        folder = self.folder / str(steps)
        unfinished = self.folder / f".{steps}.{os.getpid()}.tmp"
        unfinished.mkdir(parents=True)
        try:
            save_policy(unfinished)
            torch.save(dict(state), unfinished / STATE_FILE)
            if folder.exists():  # the same run was begun anew here
                shutil.rmtree(folder)
            unfinished.replace(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        name = self.folder / f".{_LATEST}.{os.getpid()}.tmp"
        name.write_text(f"{steps}\n", encoding="utf-8")
        name.replace(self.folder / _LATEST)
        for old in self._all()[: -self._keep]:
            shutil.rmtree(old, ignore_errors=True)
        return folder

    def _all(self) -> list[Path]:
        names = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted((path for path in names if path.name.isdigit()), key=lambda path: int(path.name))


def load_state(folder: Path, settings: Settings, built: Fingerprint, module: Any) -> dict[str, Any]:
    """Return the state that a checkpoint holds, if it belongs to what is to be trained.

    Args:
        folder: The checkpoint.
        settings: Of the run that goes on.
        built: What its components make of the probe.
        module: The components.

    Raises:
        ConfigError: The checkpoint was trained with another observation, parser or networks, or is damaged.
    """
    try:
        manifest, _ = read_files(folder)
        state: dict[str, Any] = torch.load(folder / STATE_FILE, map_location="cpu", weights_only=True)
    except Exception as error:  # torch has many ways to say that a file is damaged
        raise ConfigError(
            f"the checkpoint {folder} cannot be read: {type(error).__name__}: {error}"
        ) from error
    components = component_factory(module.obs(settings), module.parser(settings), None, allow=None)()
    found = differences(manifest, built, components)
    before, now = state["settings"], asdict(settings)
    found += [
        f"{name} was {list(before[name])} and is {list(now[name])} now"
        for name in ("policy_layers", "critic_layers", "team_sizes")
        if tuple(before[name]) != tuple(now[name])
    ]
    found += [
        f"{name} was {before[name]} and is {now[name]} now"
        for name in ("normalise_obs", "snapshots")
        if before[name] != now[name]
    ]
    if found:
        raise ConfigError(
            f"the checkpoint {folder} does not fit what is to be trained: {'; '.join(found)}. Set these "
            "as they were, or train anew in another folder (out)"
        )
    return state
