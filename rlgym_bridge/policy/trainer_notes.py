"""Read what rlgym-ppo and rlgym-learn note beside the weights of a checkpoint."""

from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.user_input.text_files import parse_json, read_text

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

    It notes `obs_running_stats` exactly where `standardize_obs` is on, which is its default.

    Raises:
        ValueError: There are no notes, and nobody says that observations were taken as they are; or there
            are, and they say something else.
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
