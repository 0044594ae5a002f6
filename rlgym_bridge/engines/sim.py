"""RLGym's `TransitionEngine` over RocketSim; `engines/live.py` has the same over a match."""

from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from rlgym_bridge import game
from rlgym_bridge.components.mutator_base import blank_state
from rlgym_bridge.components.rlgym_state import cars_by_agent, checked_state, to_rlgym
from rlgym_bridge.components.rlgym_types import Game, SharedInfo
from rlgym_bridge.engines.base import BaseEngine, rows_of_actions
from rlgym_bridge.rotations import angles_of, rotation_of
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, Simulator, check_simulator, make_simulator
from rlgym_bridge.state import MatchState, derive
from rlgym_bridge.user_input.arguments import check_whole

_BALL_REACH: Final = game.BALL_MAX_SPEED / game.TICKS_PER_SECOND  # uu in a tick
_GO_ON: Final = 1.0  # uu of slack
_SET_IN_MATCHES: Final = (
    "frame", "car_hitbox", "boost_consumption", "pad_timer", "gravity", "ball_position",
    "ball_linear_velocity", "ball_angular_velocity", "car_position", "car_linear_velocity",
    "car_angular_velocity",
)  # fmt: skip
"""Fields that a match sets as they are, or that `as_in_a_match` does not change."""


class SimEngine(BaseEngine):
    """An engine whose cars play in RocketSim.

    Two things differ from RLGym's own `RocketSimEngine`: equal seeds, states and actions give equal
    episodes, to the bit, and a step ends with the tick on which a goal falls, as in a match, where nothing
    that comes after counts.

    Args:
        rlbot_delay: Whether an action acts one tick after the state it was chosen on, as in a match.
        as_in_a_match: Whether `set_state` sets a state as coarsely as state setting in a match does: without
            jump, dodge or demolition under way, whole numbers of boost, turns as angles. Pads are set as
            asked for, which a match leaves as they are. Otherwise all is set that RLGym's engine sets.
        seed: Of the places where demolished cars come back.
        tick_skip: Ticks for which a single row `(8,)` of a parser is held.
        thrust: Whether boost in the air pushes in rocketsim2 as in the game; RLGym's engine has it not.
        simulator: What steps the match: `"rocketsim2"` or `"rocketsim3"`.

    Attributes:
        tick_skip: As given.

    Raises:
        ValueError: `tick_skip` is no whole number of ticks, 1 to 7,200, `rlbot_delay` neither True nor False,
            or `seed` no whole number, 0 or more. Or a rule is unknown.
        SimulatorError: The simulator is unknown or not installed.
    """

    def __init__(
        self,
        rlbot_delay: bool = True,
        *,
        as_in_a_match: bool = False,
        seed: int = 0,
        tick_skip: int = game.TICK_SKIP,
        thrust: bool = False,
        simulator: str = DEFAULT_SIMULATOR,
    ) -> None:
        super().__init__(tick_skip)
        if not isinstance(rlbot_delay, bool | np.bool_):
            raise ValueError(
                f"rlbot_delay is {rlbot_delay!r}, expected True or False; ticks of an action are tick_skip"
            )
        check_whole("seed", seed)
        self._delay, self._as_in_a_match, self._seed = rlbot_delay, as_in_a_match, seed
        self._thrust, self._name = thrust, check_simulator(simulator)
        self._simulator: Simulator | None = None
        self._agents: list[Hashable] = []

    @property
    def agents(self) -> list[Hashable]:
        """Agents of the present state, blue first; none before the first `set_state`."""
        return list(self._agents)

    @property
    def max_num_agents(self) -> int:
        """Eight: four a team."""
        return 2 * game.MOST_TEAM_SIZE

    @property
    def config(self) -> dict[str, Any]:
        """`rlbot_delay`, as RLGym's engine has it."""
        return {"rlbot_delay": self._delay}

    @config.setter
    def config(self, value: dict[str, Any]) -> None:
        self._delay = bool(value.get("rlbot_delay", self._delay))

    def set_state(self, desired_state: Game, shared_info: SharedInfo) -> Game:
        """Begin an episode; return the state as it was set; raises ValueError for an odd one."""
        match = checked_state(desired_state)
        sizes = match.layout.blue, match.layout.orange
        if self._simulator is None or self._simulator.state.layout is not match.layout:
            self._simulator = make_simulator(self._name, 1, *sizes, seed=self._seed, thrust=self._thrust)
        if self._as_in_a_match:
            match = _as_a_match_sets(match, self._simulator.state.car_is_supersonic)
        self._simulator.put([0], match)
        fast = match.car_is_supersonic > 0
        times = np.maximum(match.car_supersonic_time, game.TICK_SECONDS)
        self._simulator.state.car_supersonic_time[fast] = times[fast]
        self._agents = list(cars_by_agent(desired_state))
        return self._show()

    def step(self, actions: dict[Hashable, np.ndarray], shared_info: SharedInfo) -> Game:
        """Step the match, every car driven by its rows, `(ticks, 8)` or a held one, to a goal at most.

        Raises:
            KeyError, ValueError: See `rows_of_actions`.
            DeadMatches: The match failed inside RocketSim; `RLGym.reset` begins anew.
        """
        if self._simulator is None:
            raise ValueError("step before `set_state`, expected `RLGym.reset` first")
        rows = rows_of_actions(actions, self._agents, self.tick_skip)
        delay = [int(self._delay)]
        state = self._simulator.state
        ticks = rows.shape[1]
        far = abs(float(state.ball_position[0, 1])) < game.GOAL_THRESHOLD_Y - ticks * _BALL_REACH - _GO_ON
        if far:
            if (rows == rows[:, :1]).all():  # held through the step: quicker
                rows = np.broadcast_to(rows[:, :1], rows.shape)
            self._simulator.step(rows[None], delay)
            return self._show()
        touches = np.zeros_like(state.car_ball_touches)
        for tick in range(ticks):
            self._simulator.step(rows[None, :, tick : tick + 1], delay)
            touches += state.car_ball_touches
            if state.goal_scored[0]:
                break
        state.car_ball_touches[:] = touches
        return self._show()

    def close(self) -> None:
        """Let go of the match."""
        self._simulator = None

    def _show(self) -> Game:
        assert self._simulator is not None  # checked by the callers
        self._state = to_rlgym(self._simulator.state, agents=self._agents)
        return self._state


def _as_a_match_sets(asked: MatchState, was_supersonic: np.ndarray) -> MatchState:
    """Return a state as coarsely as a match sets it; `server/game/state_setting.py` says why."""
    layout = asked.layout
    state = blank_state(layout.blue, layout.orange, 1)
    for name in _SET_IN_MATCHES:
        getattr(state, name)[:] = getattr(asked, name)
    for name in ("ball_rotation", "car_rotation"):
        matrices = getattr(asked, name)
        angles = [
            np.array(angles_of(matrix), np.float32).tolist() for matrix in matrices.reshape(-1, 9).tolist()
        ]
        getattr(state, name)[:] = np.reshape([rotation_of(*turn) for turn in angles], matrices.shape)
    state.car_boost_amount[:] = np.floor(np.clip(asked.car_boost_amount, 0.0, 100.0))
    up, height = state.car_rotation[..., 2, 2], state.car_position[..., 2]
    standing = (up >= game.STANDING_LEAST_UP) & (height >= 0) & (height <= game.STANDING_MOST_Z)
    state.car_wheels_with_contact[:] = standing[..., None]
    derive(state)
    speed = np.linalg.norm(state.car_linear_velocity.astype(np.float64), axis=-1)
    keeps = (was_supersonic > 0) & (speed >= game.SUPERSONIC_KEEP_SPEED)
    state.car_is_supersonic[:] = keeps | (speed >= game.SUPERSONIC_START_SPEED)
    return state
