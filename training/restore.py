"""The state of a training that lies in a checkpoint beside the policy: does it belong to what is to go on?"""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import torch

from rlgym_bridge.fingerprint import Fingerprint
from rlgym_bridge.mismatch import differences
from rlgym_bridge.policy_files import read_files
from training.config import ConfigError, Settings
from training.environment import Task

STATE_FILE: Final = "training.pt"
STATE: Final = (
    "steps", "settings", "policy", "critic", "optimizer", "scale", "snapshots", "offered", "ratings",
)  # fmt: skip


def load_state(folder: Path, settings: Settings, built: Fingerprint, task: Task) -> dict[str, Any]:
    """Return the state that a checkpoint holds, if it belongs to what is to be trained.

    Args:
        folder: The checkpoint.
        settings: Of the run that goes on.
        built: What its components make of the probe.
        task: Its components.

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
    missing = [name for name in STATE if name not in state] if isinstance(state, dict) else list(STATE)
    if missing:
        raise ConfigError(
            f"the checkpoint {folder} lacks {', '.join(missing)} in {STATE_FILE}: another version wrote it; "
            "train anew in another folder (out)"
        )
    found = differences(manifest, built, task.obs_and_parser())
    before, now = state["settings"], asdict(settings)
    found += [
        f"{name} was {before.get(name)} and is {list(now[name])} now"
        for name in ("policy_layers", "critic_layers", "team_sizes")
        if list(before.get(name, ())) != list(now[name])
    ]
    found += [
        f"{name} was {before.get(name)} and is {now[name]} now"
        for name in ("normalise_obs", "snapshots")
        if before.get(name) != now[name]
    ]
    if found:
        raise ConfigError(
            f"the checkpoint {folder} does not fit what is to be trained: {'; '.join(found)}. Set these "
            "as they were, or train anew in another folder (out)"
        )
    return state
