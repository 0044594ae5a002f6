"""What the engines over a simulator and over a match share: how an episode is asked for, and a step."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from rlgym.rocket_league.api import GameConfig, GameState, PhysicsObject

from rlgym_bridge.controls import checked_rows
from rlgym_bridge.game import BOOST_PER_SECOND, PAD_COUNT, RLGYM_BOOST_PER_SECOND


def base_state() -> GameState[Any]:
    """Return what mutators begin with: no cars and a ball without a place, as RLGym's engine has it.

    Boost is used up at RocketSim's and the game's rate, 1.001 times RLGym's.
    """
    state: GameState[Any] = GameState()
    state.tick_count, state.goal_scored = 0, False
    state.config = GameConfig()
    state.config.gravity = 1.0
    state.config.boost_consumption = BOOST_PER_SECOND / RLGYM_BOOST_PER_SECOND
    state.config.dodge_deadzone = 0.5
    state.ball = PhysicsObject()
    state.cars = {}
    state.boost_pad_timers = np.zeros(PAD_COUNT, np.float32)
    return state


def rows_of_actions(actions: Mapping[Any, Any], agents: Sequence[Hashable]) -> np.ndarray:
    """Return what an action parser gave for a step, checked.

    Args:
        actions: `(ticks, 8)` for each agent.
        agents: Those that are driven.

    Returns:
        `(agents, ticks, 8)` float32, in the order of `agents`.

    Raises:
        KeyError: An agent has no rows, or an unknown one has.
        ControlsError: Rows have another shape, or hold something that is no control.
        ValueError: Agents have rows for different numbers of ticks.
    """
    if set(actions) != set(agents):
        raise KeyError(f"actions are for {list(actions)}, expected {list(agents)}, each once")
    rows = [_ticks(actions[agent], agent) for agent in agents]
    lengths = {str(agent): len(own) for agent, own in zip(agents, rows, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"agents have rows for different numbers of ticks, expected the same: {lengths}")
    return np.stack(rows)


def _ticks(given: Any, agent: Hashable) -> np.ndarray:
    if np.ndim(given) != 2:
        raise ValueError(
            f"the action of {agent!r} has shape {np.shape(given)}, expected (ticks, 8): a parser that "
            "gives one row goes into RepeatAction"
        )
    return checked_rows(given, 1, f"the action of {agent!r}")
