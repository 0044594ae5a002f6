"""Load a player by its name: a policy folder, the hand-written Chaser, or random actions."""

from collections.abc import Sequence
from copy import copy
from pathlib import Path

import numpy as np

from rlgym_bridge.clock import Timing
from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.spec import Components
from rlgym_bridge.game import TICK_SKIP
from rlgym_bridge.policy.chaser import Charger, Chaser
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.state import MatchState

ACTIONS = 90  # of LookupTableAction


class RandomPolicy:
    """Chooses one of the 90 actions of `LookupTableAction`, all as likely; equal seeds play the same."""

    def __init__(self) -> None:
        self._resets = 0
        self.reset(())

    def reset(self, cars: Sequence[int], seed: int | None = None) -> None:
        """Begin an episode; a seed of None counts the resets."""
        self._cars = len(cars)
        self._resets += 1
        self._random = np.random.default_rng(self._resets if seed is None else seed)

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        """Choose an action 0..89 for each of its cars, `(N, cars)` int64."""
        return self._random.integers(ACTIONS, size=(state.matches, self._cars))


CHASER = "chaser"  # name of the hand-written policy, in place of a folder
CHARGER = "charger"  # name of Chaser that drives through the ball of a kickoff, in place of a folder
RANDOM = "random"  # name of the policy that presses buttons at random, in place of a folder

_POLICIES = {CHASER: Chaser, CHARGER: Charger, RANDOM: RandomPolicy}
BUILT_IN = tuple(_POLICIES)  # names of all that plays without a policy folder, in matches of every team size


def load_player(
    policy: str | Path, allow_modules: Sequence[str] = (), selection: str | None = None
) -> PlayerSpec:
    """Load a player, a policy with components and timing: a folder, `"chaser"`, `"charger"` or `"random"`.

    `allow_modules` are those of yours that the folder may name; a selection, `"sample"` or `"argmax"`, is
    taken in place of its own. Errors are those of `load_policy`.
    """
    if (name := str(policy)) in _POLICIES:
        return PlayerSpec(
            policy=_POLICIES[name],
            components=lambda: Components(None, RepeatAction(LookupTableAction(), TICK_SKIP)),
            tick_skip=TICK_SKIP,
            shadow=False,  # of what counting estimates Chaser reads whether it is on the ground
        )
    loaded = load_policy(policy, allow_modules, selection)
    manifest = loaded.manifest
    return PlayerSpec(
        policy=lambda: copy(loaded.policy),  # each remembers its own match and cars; they share the network
        components=loaded.components,
        tick_skip=manifest.tick_skip,
        timing=Timing(manifest.action_delay, manifest.input_latency),
        team_sizes=manifest.team_sizes,
        forecast=manifest.forecast,
    )
