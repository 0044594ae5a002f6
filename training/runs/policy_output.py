"""Write the policy folder of a checkpoint."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rlgym_bridge.policy.folder import save_policy
from rlgym_bridge.policy.manifest import Normalisation
from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.sim.simulator import ROCKETSIM2
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.settings import TrainingSettings, with_present_names
from rlgym_bridge.training.team_sizes import as_lists


def recorded_settings(settings: TrainingSettings) -> dict[str, Any]:
    """Return the settings as TOML has them: tuples as lists."""
    return {name: as_lists(value) for name, value in asdict(settings).items()}


def describe_changes(before: Mapping[str, Any], settings: TrainingSettings) -> dict[str, str]:
    """Return settings that were others before, by name: `0.5 -> 0.3`.

    Args:
        before: As `recorded_settings`; those that did not exist then had their defaults.
        settings: The present ones.
    """
    unsaid = {"simulator": ROCKETSIM2}  # runs of before this setting had no other
    then = recorded_settings(TrainingSettings()) | unsaid | with_present_names(before)
    now = recorded_settings(settings)
    return {name: f"{then[name]} -> {now[name]}" for name in now if then[name] != now[name]}


def write_policy(
    folder: Path,
    settings: TrainingSettings,
    task: Task,
    own_delay: int | None,
    weights: Mapping[str, np.ndarray],
    shape: PolicyShape,
    scaling: Normalisation | None,
    notes: Mapping[str, Any],
) -> None:
    """Write a policy that plays in matches as it was trained.

    Args:
        folder: Where; it is there.
        settings: Of the run.
        task: Names the components.
        own_delay: Action delay of its environment in ticks, if that has one.
        weights: Arrays float32 by name, as `save_policy` takes them.
        shape: Of the network.
        scaling: Of observations; None without.
        notes: JSON object with what `policy.json` says of the training beside the settings.
    """
    low, high = settings.action_delay
    recorded = recorded_settings(settings)
    del recorded["out"]  # a place on this machine, which is nobody else's business
    save_policy(
        folder,
        weights,
        distribution=shape.distribution,
        team_sizes=settings.sizes,
        **task.named(),
        tick_skip=settings.tick_skip,
        # A bot plays with one delay: its environment's, or what it meets, and no sooner than inputs act.
        action_delay=max((low + high) // 2, settings.input_latency) if own_delay is None else own_delay,
        input_latency=settings.input_latency,
        seed=settings.seed,
        obs_normalisation=scaling,
        hitbox=settings.hitbox,
        training={**notes, "settings": recorded},
        activation=shape.activation,
        mirror=shape.mirror is not None,
        network=shape.network,
        modules=task.modules(),
    )
