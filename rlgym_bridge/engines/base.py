"""The part that both engines share: the shown state, and checks of actions."""

from collections.abc import Hashable, Mapping
from typing import Any, Final

import numpy as np
from rlgym.api import TransitionEngine

from rlgym_bridge.components.rlgym_state import base_state
from rlgym_bridge.components.rlgym_types import Agents, Game
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.game import BOOST_CONSUMPTION, DODGE_DEADZONE, TICKS_PER_SECOND
from rlgym_bridge.user_input.arguments import check_whole

_MOST_TICK_SKIP: Final = 60 * TICKS_PER_SECOND  # a minute for one action is a slip


class BaseEngine(TransitionEngine[Hashable, Game, np.ndarray]):
    """An RLGym `TransitionEngine` that shows its latest state.

    A single row `(8,)` of a parser is held for `tick_skip` ticks; raises ValueError unless it is 1 to 7,200.
    """

    def __init__(self, tick_skip: int) -> None:
        check_whole("tick_skip", tick_skip, 1, _MOST_TICK_SKIP, "ticks")
        self.tick_skip = tick_skip
        self._state: Game | None = None

    @property
    def state(self) -> Game:
        """The state that ended the latest step, with all cars; raises ValueError before the first."""
        if self._state is None:
            raise ValueError("there is no state yet, expected `set_state` or `RLGym.reset` first")
        return self._state

    def create_base_state(self) -> Game:
        """Return a state for mutators to fill: no cars and a ball without a place, as RLGym's engine has it.

        Boost is used up at RocketSim's and the game's rate, 1.001 times RLGym's.
        """
        state = base_state()
        state.config.boost_consumption, state.config.dodge_deadzone = BOOST_CONSUMPTION, DODGE_DEADZONE
        return state


def rows_of_actions(actions: Mapping[Any, Any], agents: Agents, tick_skip: int) -> np.ndarray:
    """Return the checked control vectors of a step, `(agents, ticks, 8)` float32.

    A row `(8,)` of an agent is held for `tick_skip` ticks. Raises KeyError if an agent has no rows, or an
    unknown one has; ControlsError if rows have another shape, or hold something that is no control;
    ValueError if agents have rows for different numbers of ticks.
    """
    if set(actions) != set(agents):
        raise KeyError(f"actions are for {list(actions)}, expected {list(agents)}, each once")
    rows = [checked_rows(actions[agent], tick_skip, f"the action of {agent!r}") for agent in agents]
    lengths = {str(agent): len(own) for agent, own in zip(agents, rows, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"agents have rows for different numbers of ticks, expected the same: {lengths}")
    return np.stack(rows)
