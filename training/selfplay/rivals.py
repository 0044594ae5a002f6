"""A policy from outside that plays some seats of a collector's matches: Chaser, or an older bot's folder.

state -> its own observation -> its policy -> actions of our parser
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rlgym_bridge.components.batch_form import works_in_batches
from rlgym_bridge.policy.files import policy_path
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.policy.shape import explain_misfit
from rlgym_bridge.state import MatchState
from training.environment import Task
from training.selfplay.sides import cars_of_sides
from training.settings import SettingsError, TrainingSettings

_PROBED = 1000  # actions at most whose rows are compared


class Rival:
    """One policy, on blue's side in some matches and on orange's in others.

    Args:
        settings: Of the run; `rival` names it.
        task: Of the run: the rival's actions have to mean the same.
        sides: `(matches,)` int8, where it plays: 1 blue, -1 orange, 0 not.

    Attributes:
        reads: What it reads of a state.
        delays: `(matches, cars)` int, ticks after which its actions act, which are its own: 1 for Chaser; -1
            where it does not play.

    Raises:
        SettingsError: It cannot be loaded, was trained for other team sizes, decides at another pace, has
            other actions, or no batch form.
    """

    def __init__(self, settings: TrainingSettings, task: Task, sides: np.ndarray) -> None:
        name, ours = settings.rival, task.obs_and_parser()
        try:
            player_spec = load_player(policy_path(name), [task.module.partition(".")[0], *run_modules(name)])
            theirs = player_spec.components()
        except (OSError, ValueError) as error:
            raise SettingsError(f'rival is "{name}", which cannot be played: {error}') from error
        trained, sizes = player_spec.team_sizes, settings.sizes[0]
        misfit = None if trained is None or not sides.any() else explain_misfit(trained, sizes)
        if misfit is not None:
            raise SettingsError(f'rival is "{name}", which {misfit}; chaser plays all sizes')
        if player_spec.tick_skip != settings.tick_skip:
            raise SettingsError(
                f'rival is "{name}", which decides every {player_spec.tick_skip} ticks, and tick_skip is '
                f"{settings.tick_skip}: both have to decide together"
            )
        if not _same_actions(ours.parser, theirs.parser):
            raise SettingsError(
                f'rival is "{name}", whose actions mean something else than those of this run: its parser '
                f"is {type(theirs.parser).__name__}, that of this run {type(ours.parser).__name__}, or their "
                "rows differ"
            )
        self._obs: Any = theirs.obs_builder
        if self._obs is not None and not works_in_batches(self._obs):
            raise SettingsError(
                f'rival is "{name}", whose observation {type(self._obs).__name__} has no build_batch'
            )
        self.reads: Sequence[str] = () if self._obs is None else getattr(self._obs, "reads", ())
        self.delays = np.where(cars_of_sides(sides, settings), player_spec.timing.action_delay, -1)
        blue, cars = settings.team_sizes[0], settings.cars
        self._places = [
            (player_spec.policy(), np.flatnonzero(sides == side), list(seats))
            for side, seats in ((1, range(blue)), (-1, range(blue, cars)))
            if (sides == side).any()
        ]

    def reset(self, seed: int) -> None:
        """Begin new matches."""
        for number, (policy, _, seats) in enumerate(self._places):
            policy.reset(seats, 2 * seed + number)

    def actions(self, state: MatchState) -> Iterator[tuple[tuple[np.ndarray, ...], np.ndarray]]:
        """Yield where it plays, an index into `(matches, cars)`, and its actions there."""
        layout = state.layout
        for policy, matches, seats in self._places:
            some = MatchState(layout.blue, layout.orange, len(matches), state.buffer[matches])
            obs = None if self._obs is None else self._obs.build_batch(some, seats)
            yield np.ix_(matches, np.array(seats)), policy.act(obs, some)


def _same_actions(ours: Any, theirs: Any) -> bool:
    """Tell whether two parsers make the same control rows of the same actions."""
    space = ours.get_action_space("")
    if type(ours) is not type(theirs) or space != theirs.get_action_space(""):
        return False
    if space[0] != "discrete" or not works_in_batches(ours):
        return True
    every = np.arange(min(int(space[1]), _PROBED))[:, None]
    return bool(np.array_equal(ours.parse_batch(every), theirs.parse_batch(every)))
