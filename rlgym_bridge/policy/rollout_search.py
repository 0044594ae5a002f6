"""Choose among a policy's likeliest actions by short rollouts in RocketSim 3.

    state -> a copy for each likely action -> all cars play on by the policy -> goals, then the critic's value

This is a rollout algorithm [Sutton and Barto, Reinforcement Learning, 2nd edition, section 8.10] that is cut
short, with the critic's estimate in place of the rest. It assumes that all cars play as the policy does. The
value of an action counts with the logarithm of its probability, so that a small gain, which may be the
critic's error, does not undo what the policy has learned.
"""

import logging
import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.batch_form import works_in_batches
from rlgym_bridge.components.spec import Components
from rlgym_bridge.components.user_errors import describe_error
from rlgym_bridge.policy.manifest import SearchSettings
from rlgym_bridge.policy.numpy_layers import Network
from rlgym_bridge.sim.native_parts import provide_native_forms
from rlgym_bridge.sim.simulator import ROCKETSIM3, Simulator, make_simulator
from rlgym_bridge.state import MatchState

_LOG = logging.getLogger("rlgym_bridge.policy")
_MOST_COPIES: Final = 64  # that are played at once
_ROUNDED: Final = 8  # copies; a simulator of more has a multiple of it, so that few are made


class RolloutSearch:
    """The search of one policy; its components work on batches.

    Args:
        settings: How far and how widely it looks.
        critic: Estimates discounted rewards from an observation `(rows, size)`, as `(rows, 1)`.
        components: Builder and parser of the policy.
        tick_skip, action_delay: Ticks of a decision, and those until it acts.

    Raises:
        ValueError: A component has no batch form, or there is a shared info provider.
        SimulatorError, FileNotFoundError, ImportError: RocketSim 3 or its meshes are missing.
    """

    def __init__(
        self, settings: SearchSettings, critic: Network, components: Components, tick_skip: int,
        action_delay: int,
    ) -> None:  # fmt: skip
        parts = components.obs_builder, components.parser
        if components.shared_info_provider is not None or not all(map(works_in_batches, parts)):
            raise ValueError(
                "search needs a builder and a parser with build_batch and parse_batch, and no shared info "
                f"provider; these are {', '.join(type(part).__name__ for part in parts)}"
            )
        self._settings, self._critic, self._tick_skip, self._delay = settings, critic, tick_skip, action_delay
        self._obs: Any = components.obs_builder
        self._parser: Any = components.parser
        self._of_thread = threading.local()  # its simulators: two threads may not use the same ones
        self._warned = False
        self._simulator(1, 1, 1)
        provide_native_forms()  # the same observations in less time

    def choose(self, policy: Any, obs: np.ndarray, state: MatchState, cars: Sequence[int]) -> np.ndarray:
        """Return actions `(matches, cars)` int64 for observations `(matches, cars, size)` of some cars.

        In a single match each car is searched for alone, so its actions do not depend on which others are
        played with it.
        """
        likely = policy.probabilities(obs)  # (matches, cars, choices)
        order = np.argsort(-likely, 2, kind="stable")[..., : self._settings.choices]
        shares = np.take_along_axis(likely, order, 2)
        tried = shares >= self._settings.least_probability
        tried[..., 0] = True
        tried &= tried.sum(2, keepdims=True) > 1  # nothing is searched where one action stands out
        actions: np.ndarray = order[..., 0].copy()
        seats = [slice(i, i + 1) for i in range(len(cars))] if state.matches == 1 else [slice(None)]
        for some in seats:
            match, seat, choice = np.nonzero(tried[:, some])
            if not len(match):
                continue
            of_seat = np.array(cars)[some][seat]
            values = self.judge_actions(policy, state, match, of_seat, order[:, some][match, seat, choice])
            if values is None:
                continue
            table = np.full(order[:, some].shape, -np.inf)
            prior = self._settings.prior * np.log(shares[:, some][match, seat, choice])
            table[match, seat, choice] = values + prior
            best = table.argmax(2)[..., None]  # the likeliest where none was tried
            actions[:, some] = np.take_along_axis(order[:, some], best, 2)[..., 0]
        return actions

    def judge_actions(
        self, policy: Any, state: MatchState, matches: np.ndarray, cars: np.ndarray, actions: np.ndarray
    ) -> np.ndarray | None:
        """Return the discounted rewards `(n,)` that cars expect if they begin with actions.

        `matches`, `cars` and `actions` are `(n,)` int: n copies of matches of `state`, in each of which one
        car takes one action. None where RocketSim 3 refuses a state, a component fails or the critic gives
        numbers that are not finite, of which the log warns once.
        """
        found: list[np.ndarray] = []
        try:
            for start in range(0, len(matches), _MOST_COPIES):
                part = slice(start, start + _MOST_COPIES)
                found.append(self._play(policy, state.select(matches[part]), cars[part], actions[part]))
            values: np.ndarray = np.concatenate(found)
            if not np.isfinite(values).all():
                raise ValueError(f"the critic's values are {values}, expected finite numbers")
        except Exception as error:  # a component's own, too: the network can play without rollouts
            if not self._warned:
                _LOG.warning(
                    "the network decides alone where a rollout fails, which it did: %s", describe_error(error)
                )
            self._warned = True
            return None
        return values

    def _play(self, policy: Any, copies: MatchState, cars: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the values `(n,)` of n copies, each to one of its cars."""
        copies.goal_scored[:] = 0
        count, layout = copies.matches, copies.layout
        simulator = self._simulator(layout.blue, layout.orange, count)
        state = simulator.state
        # What is left over plays the last copy again.
        rows = np.minimum(np.arange(state.matches), count - 1)
        simulator.seed(0)
        simulator.put(range(state.matches), copies.select(rows))
        cars, actions, each = cars[rows], actions[rows], np.arange(state.matches)
        side = np.where(cars < layout.blue, 1.0, -1.0)
        values, playing, discount = np.zeros(len(rows)), np.ones(len(rows), bool), 1.0
        late = np.full((state.matches, layout.cars), self._delay)
        obs = self._obs.build_batch(state)
        for decision in range(self._settings.decisions):
            chosen = policy.probabilities(obs).argmax(2)
            if not decision:
                chosen[each, cars] = actions
            simulator.step(self._control_rows(chosen), late)
            scored = playing & (state.goal_scored > 0)
            for_blue = np.where(state.ball_position[:, 1] > 0, 1.0, -1.0)
            values += scored * discount * self._settings.goal * for_blue * side
            playing &= ~scored
            discount *= self._settings.gamma
            obs = self._obs.build_batch(state)
        seen, _ = policy.show_network(np.ascontiguousarray(obs[each, cars], np.float32))
        values += playing * discount * self._critic(seen)[:, 0]
        return values[:count]

    def _control_rows(self, actions: np.ndarray) -> np.ndarray:
        rows: np.ndarray = self._parser.parse_batch(actions)  # (matches, cars, ticks, 8)
        if rows.shape[2] == 1:
            rows = np.broadcast_to(rows, (*rows.shape[:2], self._tick_skip, rows.shape[3]))
        return rows

    def _simulator(self, blue: int, orange: int, copies: int) -> Simulator:
        """Return a simulator of so many matches or a few more."""
        size = copies if copies <= _ROUNDED else -(-copies // _ROUNDED) * _ROUNDED
        key = blue, orange, size
        made: dict[tuple[int, int, int], Simulator] = self._of_thread.__dict__.setdefault("simulators", {})
        if key not in made:
            made[key] = make_simulator(ROCKETSIM3, size, blue, orange)
        return made[key]
