"""The part that both engines share: the shown state, checks of actions, and what state setting can carry."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from rlgym.api import TransitionEngine

from rlgym_bridge.components.rlgym_state import base_state
from rlgym_bridge.components.rlgym_types import Agents, Game
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.game import BOOST_CONSUMPTION, DODGE_DEADZONE, GRAVITY, TICKS_PER_SECOND
from rlgym_bridge.rotations import angles_of
from rlgym_bridge.state import MatchState
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


class DesiredBody(NamedTuple):
    """The float32 numbers of a ball or a car that can be set: uu, rad (pitch, yaw, roll), uu/s, rad/s.

    Boost, 0..100, is whole: RLBot's core cuts off the rest.
    """

    position: tuple[float, ...]
    angles: tuple[float, ...]
    velocity: tuple[float, ...]
    spin: tuple[float, ...]
    boost: int


class DesiredMatch(NamedTuple):
    """All of a match that can be set: its ball, its cars in the order of the state, gravity in uu/s^2."""

    ball: DesiredBody
    cars: tuple[DesiredBody, ...]
    gravity_z: float


def desired_part(state: MatchState) -> DesiredMatch:
    """Return the part of one match that can be set."""
    names = ("position", "rotation", "linear_velocity", "angular_velocity")
    ball = _body([getattr(state, f"ball_{name}")[0] for name in names], 0.0)
    motions = zip(*(getattr(state, f"car_{name}")[0] for name in names), strict=True)
    cars = map(_body, motions, state.car_boost_amount[0].tolist())
    return DesiredMatch(ball, tuple(cars), float(np.float32(-GRAVITY * state.gravity[0])))


def _body(motion: Sequence[np.ndarray], boost: float) -> DesiredBody:
    position, rotation, velocity, spin = motion
    angles = np.array(angles_of(rotation.ravel().tolist()), np.float32)
    place, turn, speed, turning = (tuple(one.tolist()) for one in (position, angles, velocity, spin))
    return DesiredBody(place, turn, speed, turning, int(min(100.0, max(0.0, boost))))
