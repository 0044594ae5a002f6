"""Ask standard components in compiled form where `rocketsim_batch` is installed, and all others as they are.

    build_batch    DefaultObs, RelativeObs, TeamObs                            -> rocketsim_batch.Observer
    reward_batch   our rewards, and a WeightedSum with some of them            -> rocketsim_batch.Rewards
    done_batch     our conditions of time, alone or joined with others of ours  -> rocketsim_batch.Conditions

A class is standard if it is in one of the tables here; its subclasses are not. Both forms give the same bits,
so that a match, which uses the numpy ones, shows a policy what training did.
"""

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from rlgym_bridge.components.conditions import (
    AllCondition,
    AnyCondition,
    GoalCondition,
    NoTouchTimeoutCondition,
    TimeoutCondition,
)
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.relative_obs import (
    DIRECTIONS,
    RelativeObs,
    Surroundings,
    find_surroundings,
    order_vectors,
)
from rlgym_bridge.components.reward_base import WeightedSum, checked_shape
from rlgym_bridge.components.rewards import (
    AirTouchReward,
    BoostKeptReward,
    BoostPickedUpReward,
    DemolitionReward,
    FaceBallReward,
    FlyToBallReward,
    GoalReward,
    InAirReward,
    KickoffSpeedReward,
    MateDistanceReward,
    SaveReward,
    SpeedReward,
    TouchReward,
    VelocityBallToGoalReward,
    VelocityPlayerToBallReward,
)
from rlgym_bridge.components.team_obs import BLOCK, HEAD, OTHERS, SEEN, TeamObs
from rlgym_bridge.game import MOST_TEAM_SIZE
from rlgym_bridge.state import Layout, MatchState

NATIVE_VARIABLE: Final = "RLGYM_BRIDGE_NATIVE"
"""Environment variable that is 0 where all components are to be asked in numpy."""

_TERMS: Final[Mapping[type, Callable[[Any], tuple[str, float]]]] = {
    GoalReward: lambda _: ("goal", 0.0),
    TouchReward: lambda reward: ("touch_strength" if reward.strength else "touch", 0.0),
    VelocityPlayerToBallReward: lambda _: ("velocity_to_ball", 0.0),
    SpeedReward: lambda _: ("speed", 0.0),
    VelocityBallToGoalReward: lambda _: ("velocity_ball_to_goal", 0.0),
    FaceBallReward: lambda _: ("face_ball", 0.0),
    BoostKeptReward: lambda _: ("boost_kept", 0.0),
    BoostPickedUpReward: lambda _: ("boost_picked_up", 0.0),
    SaveReward: lambda reward: ("save", reward.seconds),
    DemolitionReward: lambda _: ("demolition", 0.0),
    MateDistanceReward: lambda reward: ("mate_distance", reward.far),
    AirTouchReward: lambda _: ("air_touch", 0.0),
    FlyToBallReward: lambda reward: ("fly_to_ball", reward.lowest),
    InAirReward: lambda _: ("in_air", 0.0),
    KickoffSpeedReward: lambda _: ("kickoff_speed", 0.0),
}
"""Rewards, and the name and number of their compiled terms."""

_TIMED: Final = {TimeoutCondition: "timeout", NoTouchTimeoutCondition: "no_touch"}
_JOINED: Final = {AnyCondition: False, AllCondition: True}
"""Conditions: those with a time, and those made of parts, with whether every part has to hold."""

_NO_COLUMN: Final = -1  # for an `Observer`: the factor itself is shown
_MOST_PLANS: Final = 16  # of a component
_plans: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


def build_batch(builder: Any, state: MatchState) -> np.ndarray:
    """Return the observations of all cars, `(matches, cars, size)`, by a builder with a batch form.

    Raises:
        ValueError: A team has more cars than the builder has room for.
    """
    kind, layout = type(builder), state.layout
    if kind not in _OBSERVERS or not _is_native(layout):
        given: np.ndarray = builder.build_batch(state)
        return given
    plans = _plans.setdefault(builder, {})
    if layout not in plans:
        plans[layout] = _OBSERVERS[kind](builder, state)
    observer, size = plans[layout]
    observations = np.empty((state.matches, layout.cars, size), np.float32)
    observer.observe(state.buffer, observations)
    return observations


def reward_batch(
    reward: Any, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
) -> np.ndarray:
    """Return the rewards of a step, `(matches, cars)`, by a reward with a batch form; see `BatchReward`.

    Raises:
        ValueError: A part of a sum gave no array of that shape.
    """
    kind = type(reward)
    summed = kind is WeightedSum and reward.foreign is None
    if not (summed or kind in _TERMS) or not _is_native(after.layout):
        return checked_shape(reward, reward.reward_batch(before, after, terminated, truncated), after)
    parts = reward.parts if summed else (reward,)
    terms = [(row, *_TERMS[type(part)](part)) for row, part in enumerate(parts) if type(part) in _TERMS]
    columns = np.empty((len(parts), after.matches, after.layout.cars), np.float32)
    plan = _plan(reward, (after.layout, *terms), lambda native, layout: native.Rewards(layout, terms))
    plan.fill(before.buffer, after.buffer, columns)
    if not summed:
        alone: np.ndarray = columns[0]
        return alone
    for row, part in enumerate(parts):
        if type(part) not in _TERMS:
            columns[row] = reward_batch(part, before, after, terminated, truncated)
    total = np.empty(columns.shape[1:], np.float32)
    _native().add_rewards(
        columns, reward.weights, after.layout.blue, float(reward.team_spirit), bool(reward.zero_sum), total
    )
    reward.last = columns
    return total


def done_batch(condition: Any, state: MatchState) -> np.ndarray:
    """Return which matches are over, `(matches,)` bool, by a condition with a batch form.

    Raises:
        RuntimeError: The matches were never begun.
    """
    kind = type(condition)
    parts = condition.parts if kind in _JOINED else (condition,) if kind in _TIMED else ()
    named = [
        (_TIMED[type(part)], float(part.timeout_seconds)) if type(part) in _TIMED else ("goal", 0.0)
        for part in parts
        if type(part) in _TIMED or type(part) is GoalCondition
    ]
    # A condition that is there twice has one memory.
    is_known = parts and len(named) == len(parts) == len(set(map(id, parts)))
    if not is_known or not _is_native(state.layout):
        given: np.ndarray = condition.done_batch(state)
        return given
    every = _JOINED.get(kind, False)
    plan = _plan(
        condition,
        (state.layout, *named),
        lambda native, layout: native.Conditions(layout, named, every=every),
    )
    over = np.empty(state.matches, bool)
    since = [part.ticks_since(state) if type(part) in _TIMED else None for part in parts]
    plan.judge(state.buffer, since, over)
    return over


@cache
def _native() -> Any:
    """Return `rocketsim_batch`; None where it is switched off, not installed, or of another interface."""
    if os.environ.get(NATIVE_VARIABLE) == "0":
        return None
    try:
        from rlgym_bridge.sim.rocketsim3 import load_native

        return load_native()
    except ImportError:
        return None


def _is_native(layout: Layout) -> bool:
    return _native() is not None and layout.cars > 0 and max(layout.blue, layout.orange) <= MOST_TEAM_SIZE


def _plan(component: Any, key: tuple[Any, ...], make: Callable[[Any, Any], Any]) -> Any:
    """Return what a component's numbers and a layout, the first of `key`, were compiled to."""
    plans = _plans.setdefault(component, {})
    if key not in plans:
        if len(plans) > _MOST_PLANS:  # its numbers change again and again
            plans.clear()
        plans[key] = make(_native(), _layout(key[0].blue, key[0].orange))
    return plans[key]


@cache
def _layout(blue: int, orange: int) -> Any:
    from rlgym_bridge.sim.rocketsim3 import make_layout

    return make_layout(blue, orange)


# --- observers: what is shown, and its size -----------------------------------------------------------


def _observe_columns(builder: DefaultObs, state: MatchState) -> tuple[Any, int]:
    table = builder.table_of(state, None)
    size = table.columns.shape[1]
    return _native().Observer(state.layout.size, size, table.columns.astype(np.int64), table.scales), size


def _observe_around(builder: RelativeObs, state: MatchState) -> tuple[Any, int]:
    table, around = builder.table_of(state, None), _surroundings(builder, state.layout)
    start, order = table.columns.shape[1], order_vectors(around.scales.shape[1])
    size = start + 3 * len(order)
    places = np.empty(len(order), np.intp)
    places[order] = start + 3 * np.arange(len(order))
    columns = table.columns.astype(np.int64)
    sights = _sights(around, places)
    return _native().Observer(state.layout.size, size, columns, table.scales, **sights), size


def _observe_team(builder: TeamObs, state: MatchState) -> tuple[Any, int]:
    table, around = builder.table_of(state, None), _surroundings(builder, state.layout)
    size, others = table.columns.shape[1], around.there.shape[1]
    blocks = OTHERS + len(BLOCK) * np.arange(others)
    of_ball = HEAD + 3 * np.arange(DIRECTIONS + 2)
    of_cars = blocks[:, None] + len(BLOCK) - len(SEEN) + 3 * np.arange(2)
    sights = _sights(around, np.concatenate((of_ball, of_cars.reshape(-1))))
    if max(state.layout.blue, state.layout.orange) > 1:
        sights |= {"start": OTHERS, "ranks": builder.rank_blocks(around)}
    columns, factors = table.columns.astype(np.int64), table.scales.copy()
    columns[:, blocks], factors[:, blocks] = _NO_COLUMN, around.there
    return _native().Observer(state.layout.size, size, columns, factors, **sights), size


def _surroundings(builder: RelativeObs | TeamObs, layout: Layout) -> Surroundings:
    cars = tuple(range(layout.cars))
    return find_surroundings(layout, cars, builder.zero_padding, builder.pos_coef, builder.lin_vel_coef)


def _sights(around: Surroundings, places: np.ndarray) -> dict[str, Any]:
    """Return the arguments of an `Observer` for vectors that begin at `places` of an observation."""
    return {
        "rotations": around.rotations[:, 0, 0].tolist(),
        "places": places.tolist(),
        "ends": around.columns[..., 0].astype(np.int64),
        "origins": around.origins[..., 0].astype(np.int64),
        "sight_factors": around.scales[..., 0].copy(),
        "goals": around.goals,
    }


_OBSERVERS: Final[Mapping[type, Callable[[Any, MatchState], tuple[Any, int]]]] = {
    DefaultObs: _observe_columns,
    RelativeObs: _observe_around,
    TeamObs: _observe_team,
}
"""Observation builders, and what compiles them for states like one."""
