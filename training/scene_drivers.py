"""Hand-written drivers for scenes: a car that stands, and one that rams another."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rlgym_bridge.components.actions import ContinuousAction, RepeatAction
from rlgym_bridge.components.player_spec import PlayerSpec, Policy
from rlgym_bridge.components.spec import Components
from rlgym_bridge.game import CAR_MAX_SPEED, CONTROL_NAMES
from rlgym_bridge.state import MatchState

_STEER_GAIN: Final = 2.5  # of full steering for each rad that the target is beside the nose


class StandingDriver:
    """A policy that presses nothing."""

    def reset(self, cars: Sequence[int], seed: int | None = None) -> None:
        """Take the cars, by their place in the state."""
        self._cars = list(cars)

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        """Return neutral controls, `(matches, cars, 8)`."""
        return np.zeros((state.matches, len(self._cars), len(CONTROL_NAMES)), np.float32)


class RammingDriver(StandingDriver):
    """A policy that boosts at the first car of the other team, and steers to where it will be."""

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        """Return full throttle and boost, and the steering, `(matches, cars, 8)`."""
        rows = super().act(obs, state)
        layout = state.layout
        for column, car in enumerate(self._cars):
            target = layout.blue if car < layout.blue else 0
            gap = state.car_position[:, target] - state.car_position[:, car]
            seconds = np.linalg.norm(gap, axis=1, keepdims=True) / CAR_MAX_SPEED
            to = gap + state.car_linear_velocity[:, target] * seconds
            front, right, _ = np.einsum("nij,ni->jn", state.car_rotation[:, car], to)
            rows[:, column, CONTROL_NAMES.index("steer")] = _STEER_GAIN * np.arctan2(right, front)
            rows[:, column, [CONTROL_NAMES.index("throttle"), CONTROL_NAMES.index("boost")]] = 1
        return rows


def scripted_player(policy: type[Policy], tick_skip: int) -> PlayerSpec:
    """Return a player whose policy gives all eight controls, held for `tick_skip` ticks."""
    return PlayerSpec(
        policy, lambda: Components(None, RepeatAction(ContinuousAction(), tick_skip)), tick_skip
    )
