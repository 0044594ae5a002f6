"""Let a policy play the scenes in several processes, and report what it solves: `evaluate --scenes`."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.game import TICK_SKIP
from rlgym_bridge.policy.load_player import CHASER, load_player
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR
from rlgym_bridge.training.play_pool import open_pool
from rlgym_bridge.training.policy_matches import check_players, team_size_of
from rlgym_bridge.training.scene_drivers import StandingDriver, scripted_player
from rlgym_bridge.training.scene_trials import SceneResult, check_scenes, play_scenes
from rlgym_bridge.training.scenes import SCENES
from rlgym_bridge.user_input.arguments import check_names

STANDING: Final = "standing"
"""Name of a car that does nothing, in place of a policy."""

TRIALS: Final = 100
"""Of each scene when nothing is said."""

_MOST: Final = 1_000_000  # trials
_AT_ONCE: Final = 50  # trials of a job; an even number, half of them for each side


def evaluate_scenes(
    player: str,
    scenes: Sequence[str],
    trials: int = TRIALS,
    *,
    seed: int = 0,
    team_size: int | None = None,
    selection: str | None = None,
    action_delay: int | None = None,
    allow_modules: Sequence[str] = (),
    processes: int = 2,
    simulator: str = DEFAULT_SIMULATOR,
) -> list[SceneResult]:
    """Let a player play scenes, half of the trials on each side.

    Args:
        player: A policy folder, `"chaser"` or `"standing"`.
        scenes: Names in `SCENES`.
        trials: Of each, 1 to 1,000,000.
        seed: Of everything.
        team_size: Cars a team; None for what the player was trained for.
        selection: `"sample"` or `"argmax"` in place of the folder's own.
        action_delay: Ticks after which the player's actions act, in place of its own.
        allow_modules: Modules that the folder may name.
        processes: At once.
        simulator: What plays, one of `simulator.SIMULATORS`.

    Raises:
        FileNotFoundError: A file of the folder is missing.
        ValueError: A scene is unknown, a number is out of range, or the policy cannot be read, plays at
            another pace than its opponent, or was trained for other team sizes.
    """
    for name, value in (("trials", trials), ("processes", processes)):
        if not 1 <= value <= _MOST:
            raise ValueError(f"{name} is {value}, expected 1 to {_MOST:,}")
    if seed < 0:
        raise ValueError(f"seed is {seed}, expected 0 or more")
    check_scenes(scenes)
    known = CHASER if player == STANDING else player
    size = team_size_of(known) if team_size is None else team_size
    if size < 1:
        raise ValueError(f"team_size is {size}, expected 1 or more")
    delays = None if action_delay is None else [action_delay]
    (hitbox,) = check_players([known], size, delays, [None])
    counts = [min(_AT_ONCE, trials - first) for first in range(0, trials, _AT_ONCE)]
    with open_pool(min(processes, len(counts))) as pool:
        jobs = [
            pool.submit(
                _play_job, player, allow_modules, selection, scenes, count, seed=1_000_003 * seed + number,
                team_size=size, hitbox=hitbox, action_delay=action_delay, simulator=simulator,
            )
            for number, count in enumerate(counts)
        ]  # fmt: skip
        parts = [job.result() for job in jobs]
    return [
        SceneResult(name, np.concatenate([part[number].seconds for part in parts]))
        for number, name in enumerate(scenes)
    ]


def _play_job(
    player: str, allow_modules: Sequence[str], selection: str | None, scenes: Sequence[str], trials: int,
    **more: Any,
) -> list[SceneResult]:  # fmt: skip
    """Play some trials in a process of its own."""
    return play_scenes(_load(player, allow_modules, selection), scenes, trials, **more)


def _load(player: str, allow_modules: Sequence[str], selection: str | None) -> PlayerSpec:
    if player == STANDING:
        return scripted_player(StandingDriver, TICK_SKIP)
    return load_player(player, allow_modules, selection)


def parse_scenes(text: str) -> list[str]:
    """Return the scenes that a text names, with commas between them.

    Raises:
        ValueError: One is unknown.
    """
    names = list(dict.fromkeys(text.split(",")))
    check_names("--scenes", names, SCENES)
    return names


def describe_results(results: Sequence[SceneResult]) -> list[str]:
    """Return a table of results, a line a scene."""
    width = max(len(one.name) for one in results)
    lines = [f"  {'scene':{width}}  solved  95 %          median time            solved when"]
    for one in results:
        found = one.to_json()
        low, high = (f"{bound:.0%}" for bound in one.interval)
        time = _describe_median(found) if SCENES[one.name].timed else ""
        share = f"{found['share']:6.0%}  {f'{low} to {high}':13}"
        lines.append(f"  {one.name:{width}}  {share} {time:22} {found['solved_when']}")
    return lines


def _describe_median(found: dict[str, Any]) -> str:
    """Return the median time and its interval in words, from `SceneResult.to_json`."""
    most = f"over {found['horizon_seconds']:g}"
    times = (found["median_seconds"], *found["median_interval"])
    median, low, high = (most if seconds is None else f"{seconds:.2f}" for seconds in times)
    return f"{median} s" if low == most else f"{median} s ({low} to {high})"
