"""Provide compiled forms of standard components, on the module `rocketsim_batch`.

They give the bits of the numpy formulas, so that a match, which uses those, shows a policy what training did.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from rlgym_bridge.components import relative_obs, rewards
from rlgym_bridge.components.advanced_obs import AdvancedObs
from rlgym_bridge.components.ball_ahead import columns_of_cars, forecast_times
from rlgym_bridge.components.batch_form import FORMS
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.reward_base import WeightedSum, checked_shape
from rlgym_bridge.game import MOST_TEAM_SIZE
from rlgym_bridge.sim.simulator import ROCKETSIM3, is_installed
from rlgym_bridge.state import Layout, MatchState
from rlgym_bridge.user_input.extras import load_native

NATIVE_VARIABLE: Final = "RLGYM_BRIDGE_NATIVE"
"""Environment variable that is 0 where all components are to be asked in numpy."""

_TERMS: Final[Mapping[type, Callable[[Any], tuple[str, float]]]] = {
    rewards.GoalReward: lambda _: ("goal", 0.0),
    rewards.TouchReward: lambda reward: ("touch_strength" if reward.strength else "touch", 0.0),
    rewards.VelocityPlayerToBallReward: lambda _: ("velocity_to_ball", 0.0),
    rewards.SpeedReward: lambda _: ("speed", 0.0),
    rewards.VelocityBallToGoalReward: lambda _: ("velocity_ball_to_goal", 0.0),
    rewards.FaceBallReward: lambda _: ("face_ball", 0.0),
    rewards.BoostKeptReward: lambda _: ("boost_kept", 0.0),
    rewards.BoostPickedUpReward: lambda _: ("boost_picked_up", 0.0),
    rewards.SaveReward: lambda reward: ("save", reward.seconds),
    rewards.DemolitionReward: lambda _: ("demolition", 0.0),
    rewards.MateDistanceReward: lambda reward: ("mate_distance", reward.far),
    rewards.AirTouchReward: lambda _: ("air_touch", 0.0),
    rewards.FlyToBallReward: lambda reward: ("fly_to_ball", reward.lowest),
    rewards.InAirReward: lambda _: ("in_air", 0.0),
    rewards.KickoffSpeedReward: lambda _: ("kickoff_speed", 0.0),
}
"""Rewards, and the name and number of their compiled terms."""

_NO_COLUMN: Final = -1  # for an `Observer`: the factor itself is shown
_MOST_PLANS: Final = 16  # of a component
_MOST_OBSERVERS: Final = 128  # cars that one `Observer` is for

_plans: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


@cache
def provide_native_forms() -> None:
    """Fill `batch_form.FORMS`, once in a process, unless the variable says no or the module is not there."""
    if os.environ.get(NATIVE_VARIABLE) == "0" or not is_installed(ROCKETSIM3):
        return
    try:
        load_native()
    except ImportError:  # another interface, or a processor that it is not for
        return
    FORMS.update({f"{kind.__qualname__}.build_batch": _observing(kind) for kind in _OBSERVERS})
    FORMS.update({f"{kind.__qualname__}._formula": _rewarding(kind) for kind in _TERMS})
    FORMS["WeightedSum.reward_batch"] = _add_up


def _plan(component: Any, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """Return what a component's numbers and a layout were compiled to."""
    plans = _plans.setdefault(component, {})
    plan = plans.get(key)
    if plan is None:
        if len(plans) >= _MOST_PLANS:  # its numbers change again and again
            plans.clear()
        plan = plans[key] = make()
    return plan


@cache
def _layout(layout: Layout) -> Any:
    from rlgym_bridge.sim.rocketsim3 import make_layout

    return make_layout(layout.blue, layout.orange)


def _has_form(layout: Layout) -> bool:
    """Tell whether there are compiled forms for a match; recordings may have larger teams."""
    return layout.cars > 0 and max(layout.blue, layout.orange) <= MOST_TEAM_SIZE


# --- rewards ------------------------------------------------------------------------------------------


def _rewarding(kind: type) -> Callable[..., np.ndarray | None]:
    term = _TERMS[kind]

    def reward(self: Any, before: MatchState, after: MatchState) -> np.ndarray | None:
        if not _has_form(after.layout):
            return None
        columns = np.empty((1, after.matches, after.layout.cars), np.float32)
        _fill(self, [(0, *term(self))], before, after, columns)
        return np.asarray(columns[0])

    return reward


def _fill(owner: Any, terms: list[Any], before: MatchState, after: MatchState, columns: np.ndarray) -> None:
    """Write terms of a reward into their rows of `columns`, `(rows, matches, cars)`."""
    layout = after.layout
    plan = _plan(owner, (layout, *terms), lambda: load_native().Rewards(_layout(layout), terms))
    plan.fill(before.buffer, after.buffer, columns)


def _add_up(
    self: WeightedSum, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
) -> np.ndarray | None:
    """Return a weighted sum: standard parts in one call, others each in its own."""
    layout, parts = after.layout, self.parts
    if self.foreign is not None or not _has_form(layout):
        return None
    columns = np.empty((len(parts), after.matches, layout.cars), np.float32)
    terms = [(row, *_TERMS[type(part)](part)) for row, part in enumerate(parts) if type(part) in _TERMS]
    _fill(self, terms, before, after, columns)
    for row, part in enumerate(parts):
        if type(part) not in _TERMS:
            columns[row] = checked_shape(part, part.reward_batch(before, after, terminated, truncated), after)
    total = np.empty(columns.shape[1:], np.float32)
    spirit, zero_sum = float(self.team_spirit), bool(self.zero_sum)
    load_native().add_rewards(columns, self.weights, layout.blue, spirit, zero_sum, total)
    self.last = list(columns)
    return total


# --- observations: an `Observer` and its numbers, for some cars ------------------------------------------


def _observing(kind: type) -> Callable[..., np.ndarray | None]:
    make = _OBSERVERS[kind]

    def observe(self: Any, state: MatchState, cars: Sequence[int] | None = None) -> np.ndarray | None:
        layout = state.layout
        seats = range(layout.cars) if cars is None else cars
        if not _has_form(layout) or not 0 < len(seats) <= _MOST_OBSERVERS:
            return None
        own = tuple(seats)
        observer, size = _plan(self, (layout, own), lambda: make(self, state, own))
        observations = np.empty((state.matches, len(own), size), np.float32)
        observer.observe(_shown(self, state), observations)
        return self.add_ball_ahead(observations, state, own) if kind is relative_obs.TeamObs else observations

    return observe


def _shown(builder: Any, state: MatchState) -> np.ndarray:
    """Return the rows that an `Observer` reads, `(matches, width)`: behind the state the ball to come."""
    ahead = builder.ball_ahead if isinstance(builder, relative_obs.RelativeObs) else ()
    if not ahead:
        return state.buffer
    return np.concatenate([state.buffer, forecast_times(state, ahead).reshape(state.matches, -1)], 1)


def _observe_columns(builder: DefaultObs, state: MatchState, cars: tuple[int, ...]) -> tuple[Any, int]:
    table = builder.table_of(state, cars)
    size = table.columns.shape[1]
    return load_native().Observer(state.layout.size, size, table.columns.astype(np.int64), table.scales), size


def _observe_around(
    builder: relative_obs.RelativeObs, state: MatchState, cars: tuple[int, ...]
) -> tuple[Any, int]:
    table, around = builder.table_of(state, cars), _surroundings(builder, state.layout, cars)
    start, order = table.columns.shape[1], relative_obs.order_vectors(around.scales.shape[1])
    places = np.empty(len(order), np.intp)
    places[order] = start + 3 * np.arange(len(order))
    columns, more = table.columns.astype(np.int64), 2 * len(builder.ball_ahead)
    sights = _sights(around, np.append(places, start + 3 * (len(order) + np.arange(more))))
    if more:
        _add_ball_ahead(sights, builder, state.layout, cars)
    size, width = start + 3 * (len(order) + more), state.layout.size + 3 * more
    return load_native().Observer(width, size, columns, table.scales, **sights), size


def _add_ball_ahead(
    sights: dict[str, Any], builder: relative_obs.RelativeObs, layout: Layout, cars: tuple[int, ...]
) -> None:
    """Add the vectors to the ball to come, whose places and velocities stand behind a state's columns."""
    times, now = len(builder.ball_ahead), columns_of_cars(layout, cars)[0][:, ::3]
    factors = np.array((builder.pos_coef, builder.lin_vel_coef), np.float32)
    ends = np.broadcast_to(layout.size + 3 * np.arange(2 * times), (len(cars), 2 * times))
    for name, values in (
        ("ends", ends),
        ("origins", np.tile(now, times)),
        ("sight_factors", np.tile(factors, (len(cars), times))),
    ):
        sights[name] = np.append(sights[name], values, 1).astype(sights[name].dtype)


def _observe_team(builder: relative_obs.TeamObs, state: MatchState, cars: tuple[int, ...]) -> tuple[Any, int]:
    table, around = builder.table_of(state, cars), _surroundings(builder, state.layout, cars)
    size, others = table.columns.shape[1], around.there.shape[1]
    blocks = relative_obs.OTHERS + len(relative_obs.BLOCK) * np.arange(others)
    of_ball = relative_obs.HEAD + 3 * np.arange(relative_obs.DIRECTIONS + 2)
    of_cars = blocks[:, None] + len(relative_obs.BLOCK) - len(relative_obs.SEEN) + 3 * np.arange(2)
    sights = _sights(around, np.concatenate((of_ball, of_cars.reshape(-1))))
    if max(state.layout.blue, state.layout.orange) > 1:
        sights |= {"start": relative_obs.OTHERS, "ranks": builder.rank_blocks(around)}
    columns, factors = table.columns.astype(np.int64), table.scales.copy()
    columns[:, blocks], factors[:, blocks] = _NO_COLUMN, around.there
    return load_native().Observer(state.layout.size, size, columns, factors, **sights), size


def _observe_differences(builder: AdvancedObs, state: MatchState, cars: tuple[int, ...]) -> tuple[Any, int]:
    table = builder.table_of(state, cars)
    size = table.columns.shape[1]
    columns = table.columns.astype(np.int64)
    minus = np.where(table.relative > 0, table.origins, _NO_COLUMN).astype(np.int64)
    given = {"minus": minus, "absent": table.absent}
    return load_native().Observer(state.layout.size, size, columns, table.scales, **given), size


def _surroundings(
    builder: relative_obs.RelativeObs | relative_obs.TeamObs, layout: Layout, cars: tuple[int, ...]
) -> relative_obs.Surroundings:
    return relative_obs.find_surroundings(
        layout, cars, builder.zero_padding, builder.pos_coef, builder.lin_vel_coef
    )


def _sights(around: relative_obs.Surroundings, places: np.ndarray) -> dict[str, Any]:
    """Return the arguments of an `Observer` for vectors that begin at `places` of an observation."""
    return {
        "rotations": around.rotations[:, 0, 0].tolist(),
        "places": places.tolist(),
        "ends": around.columns[..., 0].astype(np.int64),
        "origins": around.origins[..., 0].astype(np.int64),
        "sight_factors": around.scales[..., 0].copy(),
        "goals": around.goals,
    }


_OBSERVERS: Final[Mapping[type, Callable[[Any, MatchState, tuple[int, ...]], tuple[Any, int]]]] = {
    AdvancedObs: _observe_differences,
    DefaultObs: _observe_columns,
    relative_obs.RelativeObs: _observe_around,
    relative_obs.TeamObs: _observe_team,
}
"""Observation builders, and what compiles them for states like one."""
