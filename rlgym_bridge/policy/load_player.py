"""Load a player by its name: a policy folder, or the hand-written Chaser."""

from collections.abc import Sequence
from pathlib import Path

from rlgym_bridge.chaser import Chaser
from rlgym_bridge.clock import Timing
from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.spec import Components
from rlgym_bridge.policy.folder import load_policy

CHASER = "chaser"
"""Name of the hand-written policy, in place of a folder."""

_TICK_SKIP = 8  # Chaser's


def load_player(
    policy: str | Path, allow_modules: Sequence[str] = (), selection: str | None = None
) -> PlayerSpec:
    """Load a player: a policy with its components and timing.

    Args:
        policy: A policy folder, or `"chaser"`.
        allow_modules: Modules of yours that the folder may name, besides `rlgym_bridge`, `rlgym` and
            `rlgym_tools`.
        selection: `"sample"` or `"argmax"` in place of the folder's own choice.

    Raises:
        FileNotFoundError: A file of the folder is missing.
        ValueError: The folder cannot be read, names a module that is not allowed, or does not fit this
            checkout (`PolicyMismatch`).
    """
    if str(policy) == CHASER:
        return PlayerSpec(
            policy=Chaser,
            components=lambda: Components(None, RepeatAction(LookupTableAction(), _TICK_SKIP)),
            tick_skip=_TICK_SKIP,
            shadow=False,  # of what counting estimates it reads whether it is on the ground
        )
    loaded = load_policy(policy, allow_modules, selection)
    manifest = loaded.manifest
    return PlayerSpec(
        policy=lambda: loaded.policy,
        components=loaded.components,
        tick_skip=manifest.tick_skip,
        timing=Timing(manifest.action_delay, manifest.input_latency),
        team_sizes=manifest.team_sizes,
    )
