"""Check, before a learner is made, that components and machine fit the settings."""

import torch

from rlgym_bridge.components.user_errors import describe_error
from rlgym_bridge.game import HITBOX_NAMES
from rlgym_bridge.policy.fingerprint import Fingerprint, fingerprint
from rlgym_bridge.policy.shape import ATTENTION, PolicyShape
from rlgym_bridge.policy.symmetry import Mirror
from rlgym_bridge.policy.torch_network import ActingNetwork, ValueNetwork, make_networks
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.settings import SettingsError, TrainingSettings


def probe_components(settings: TrainingSettings, task: Task) -> Fingerprint:
    """Build a run's components, and return what they make of known states.

    Raises:
        SettingsError: They fail, or hold a row for other ticks than the settings say.
    """
    try:
        task.check()
        parts = task.obs_and_parser()
        built = fingerprint(parts, settings.sizes, HITBOX_NAMES.index(settings.hitbox))
    except SettingsError:
        raise
    except (Exception, SystemExit) as error:  # whatever one's own components may raise
        raise SettingsError(f"the components of {task.name} do not fit: {describe_error(error)}") from error
    if built.ticks not in (None, settings.tick_skip):
        raise SettingsError(
            f"tick_skip is {settings.tick_skip}, and the parser of {task.name} gives {built.ticks} ticks an "
            f"action; expected the same: tick_skip = {built.ticks}"
        )
    if built.ticks is None and parts.tick_skip not in (None, settings.tick_skip):
        raise SettingsError(
            f"tick_skip is {settings.tick_skip}, and the engine of {task.name} holds a row for "
            f"{parts.tick_skip} ticks; expected the same: tick_skip = {parts.tick_skip}"
        )
    return built


def mirror_of(settings: TrainingSettings, built: Fingerprint) -> Mirror | None:
    """Return the mirrored forms of observation and actions, where the settings want them.

    Raises:
        SettingsError: The observation or the parser does not have any.
    """
    if not settings.mirror:
        return None
    try:
        return built.mirror()
    except ValueError as error:
        raise SettingsError(f"mirror is true: {error}. Change that, or set mirror = false") from error


def networks_of(
    settings: TrainingSettings, shape: PolicyShape, device: torch.device
) -> tuple[PolicyShape, ActingNetwork, ValueNetwork]:
    """Return a run's networks, on their device, and the shape of the policy with all that they hold.

    Raises:
        SettingsError: The observation does not suit them, or a class of the user does not fit.
    """
    if shape.network == ATTENTION and settings.normalise_obs:
        raise SettingsError(
            'network is "attention" and normalise_obs true, which hides whether a car is there; expected '
            "normalise_obs = false: TeamObs scales its numbers itself"
        )
    try:
        shape, policy, critic = make_networks(shape, settings.critic_layers)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    if not policy.state_size and not critic.state_size:
        return shape, policy.to(device), critic.to(device)
    if settings.rollout_steps % settings.sequence_length:
        raise SettingsError(
            f"rollout_steps is {settings.rollout_steps} and sequence_length {settings.sequence_length}, "
            "expected a multiple of it for a network with memory"
        )
    if settings.mirror:
        raise SettingsError(
            f'mirror is true and network "{settings.network}", whose memory has no mirrored form; expected '
            "mirror = false, or a network without memory"
        )
    return shape, policy.to(device), critic.to(device)


def choose_device(settings: TrainingSettings) -> torch.device:
    """Return the device of the networks: a GPU where there is one, unless the settings say otherwise.

    Raises:
        SettingsError: It is not there.
    """
    there = torch.cuda.is_available()
    if settings.device == "cuda" and not there:
        built = f"made for CUDA {torch.version.cuda}" if torch.version.cuda else "made without CUDA"
        raise SettingsError(
            f'device is "cuda", and torch {torch.__version__} ({built}) finds no CUDA device here; '
            'expected "auto" or "cpu", or a machine with an NVIDIA GPU, its driver, and a torch made for CUDA'
        )
    return torch.device("cuda" if there and settings.device != "cpu" else "cpu")
