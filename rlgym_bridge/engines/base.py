"""The part that both engines share: the state they show, and checks of what RLGym hands them."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from rlgym.api import TransitionEngine
from rlgym.rocket_league.api import GameConfig, GameState, PhysicsObject

from rlgym_bridge.controls import checked_rows
from rlgym_bridge.game import BOOST_CONSUMPTION, DODGE_DEADZONE, HITBOXES, PAD_COUNT, TICKS_PER_SECOND
from rlgym_bridge.rlgym_state import from_rlgym
from rlgym_bridge.state import MatchState

_MOST: Final = {"position": 1e4, "linear_velocity": 1e4, "angular_velocity": 100.0}
"""Of each number: the field is 12,000 uu long, nothing moves faster than 6,000 uu/s, turns than 6 rad/s."""

_RANGES: Final = (
    ("team_num", 0, 1), ("hitbox_type", 0, len(HITBOXES) - 1), ("boost_amount", 0, 100),
    ("demo_respawn_timer", 0, 10),
)  # fmt: skip
_MOST_TICK_SKIP: Final = 60 * TICKS_PER_SECOND  # a minute for one action is a slip
_MOST_GRAVITY: Final = 10.0  # times the game's


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
        state: GameState[Any] = GameState()
        state.tick_count, state.goal_scored = 0, False
        state.config = GameConfig()
        state.config.gravity = 1.0
        state.config.boost_consumption = BOOST_CONSUMPTION
        state.config.dodge_deadzone = DODGE_DEADZONE
        state.ball = PhysicsObject()
        state.cars = {}
        state.boost_pad_timers = np.zeros(PAD_COUNT, np.float32)
        return state


def checked_state(game: GameState[Any]) -> MatchState:
    """Convert a state that mutators have made to a `MatchState` of one match.

    Raises:
        ValueError: Ball or a car has no place, or numbers that are not finite or beyond what a match has; the
            message names which.
    """
    bodies = {"the ball": game.ball} | {str(agent): car.physics for agent, car in game.cars.items()}
    for who, body in bodies.items():
        for what, most in _MOST.items():
            value = getattr(body, what)
            if value is None or np.shape(value) != (3,) or not (np.abs(np.asarray(value)) <= most).all():
                raise ValueError(
                    f"{what} of {who} is {value}, expected three numbers up to {most:g}: who sets it?"
                )
    for agent, car in game.cars.items():
        for name, low, high in _RANGES:
            value = getattr(car, name)
            if not low <= value <= high:
                raise ValueError(f"{name} of {agent} is {value}, expected {low:g} to {high:g}")
    if not abs(game.config.gravity) <= _MOST_GRAVITY:
        raise ValueError(
            f"gravity is {game.config.gravity}, expected up to {_MOST_GRAVITY:g} (1: the game's)"
        )
    state = from_rlgym(game)
    for name in ("ball_rotation", "car_rotation", "pad_timer"):
        if not np.isfinite(getattr(state, name)).all():
            raise ValueError(f"{name} has numbers that are not finite, expected finite ones")
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
