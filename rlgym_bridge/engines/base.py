"""The part that both engines share: the state they show, and checks of the actions that RLGym gives."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from rlgym.api import TransitionEngine

from rlgym_bridge.controls import checked_rows
from rlgym_bridge.game import BOOST_CONSUMPTION, DODGE_DEADZONE, TICKS_PER_SECOND
from rlgym_bridge.rlgym_state import base_state
from rlgym_bridge.rlgym_types import GameState

_MOST_TICK_SKIP: Final = 60 * TICKS_PER_SECOND  # a minute for one action is a slip


class BaseEngine(TransitionEngine[Hashable, GameState[Any], np.ndarray]):
    """An RLGym `TransitionEngine` that shows its latest state.

    Args:
        tick_skip: Ticks for which a single row `(8,)` of a parser is held.

    Attributes:
        tick_skip: As given.

    Raises:
        ValueError: `tick_skip` is no whole number of ticks, 1 to 7,200.
    """

    def __init__(self, tick_skip: int) -> None:
        if isinstance(tick_skip, bool) or not isinstance(tick_skip, int) or tick_skip < 1:
            raise ValueError(f"tick_skip is {tick_skip!r}, expected a whole number of ticks, 1 or more")
        if tick_skip > _MOST_TICK_SKIP:
            raise ValueError(
                f"tick_skip is {tick_skip}, expected {_MOST_TICK_SKIP:,} ticks (a minute of play) at most"
            )
        self.tick_skip = tick_skip
        self._state: GameState[Any] | None = None

    @property
    def state(self) -> GameState[Any]:
        """The state that the latest step ended with, all cars of the match in it.

        Raises:
            ValueError: There is none yet.
        """
        if self._state is None:
            raise ValueError("there is no state yet, expected `set_state` or `RLGym.reset` first")
        return self._state

    def create_base_state(self) -> GameState[Any]:
        """Return a state for mutators to fill: no cars and a ball without a place, as RLGym's engine has it.

        Boost is used up at RocketSim's and the game's rate, 1.001 times RLGym's.
        """
        state = base_state()
        state.config.boost_consumption, state.config.dodge_deadzone = BOOST_CONSUMPTION, DODGE_DEADZONE
        return state


def rows_of_actions(actions: Mapping[Any, Any], agents: Sequence[Hashable], tick_skip: int) -> np.ndarray:
    """Return the control rows of a step, checked.

    Args:
        actions: Of an action parser, for each agent `(ticks, 8)`, or `(8,)`: a row that is held for
            `tick_skip` ticks.
        agents: Agents that the engine drives.
        tick_skip: Ticks that a single row is held.

    Returns:
        `(agents, ticks, 8)` float32, in the order of `agents`.

    Raises:
        KeyError: An agent has no rows, or an unknown one has.
        ControlsError: Rows have another shape, or hold something that is no control.
        ValueError: Agents have rows for different numbers of ticks.
    """
    if set(actions) != set(agents):
        raise KeyError(f"actions are for {list(actions)}, expected {list(agents)}, each once")
    rows = [checked_rows(actions[agent], tick_skip, f"the action of {agent!r}") for agent in agents]
    lengths = {str(agent): len(own) for agent, own in zip(agents, rows, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"agents have rows for different numbers of ticks, expected the same: {lengths}")
    return np.stack(rows)
