"""Compiled observations and rewards give what the numpy ones do, to the bit."""

import copy
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.advanced_obs import AdvancedObs
from rlgym_bridge.components.batch_form import FORMS, observe
from rlgym_bridge.components.conditions import GoalCondition, TimeoutCondition
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.initial_states import INITIAL_STATES, mix_initial_states
from rlgym_bridge.components.mutators import BatchMutator
from rlgym_bridge.components.relative_obs import RelativeObs, TeamObs
from rlgym_bridge.components.reward_base import BatchReward
from rlgym_bridge.components.rewards import (
    FlyToBallReward,
    MateDistanceReward,
    SaveReward,
    SpeedReward,
    TouchReward,
    WeightedSum,
)
from rlgym_bridge.components.spec import Components
from rlgym_bridge.sim import native_parts
from rlgym_bridge.sim.simulator import ROCKETSIM3
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.state import MatchState
from rlgym_bridge.training import settings
from tests.support.simulators import needs_native
from tests.support.states import TEAM_SIZES, ram, random_state

pytestmark = needs_native

SIZES = [*TEAM_SIZES, (4, 4), (2, 4)]
MATCHES, STEPS = 12, 80
EXACT = platform.machine() in ("x86_64", "AMD64")  # elsewhere numpy's own sums may fuse products

Steps = list[tuple[MatchState, MatchState]]

REWARDS = [
    *(make() for make in settings.REWARDS.values()),
    SaveReward(0.7), MateDistanceReward(700.0), FlyToBallReward(150.0),
]  # fmt: skip


def builders(blue: int, orange: int) -> Iterator[Any]:
    """Return observation builders with room for some team sizes."""
    room = max(blue, orange)
    odd = {"pos_coef": 1 / 4096, "lin_vel_coef": 0.0, "ang_vel_coef": -2.0, "boost_coef": 0.3}
    for kind in (DefaultObs, RelativeObs):
        yield from (kind(None), kind(room), kind(room + 2), kind(None, **odd))
    yield from (RelativeObs(None, ball_ahead=(0.25, 2)), RelativeObs(room + 1, ball_ahead=(0.1,), **odd))
    yield TeamObs(room + 1, ball_ahead=(0.25, 1), pos_coef=1 / 4096)
    yield from (AdvancedObs(), AdvancedObs(room + 1, has_jump=True), AdvancedObs(relative=False))
    yield from (TeamObs(room), TeamObs(room + 2), TeamObs(room, **odd))


class Begun(BatchMutator):
    """Beginnings of all kinds; in every third match a supersonic car drives at an opponent."""

    def apply_batch(self, state: MatchState, rng: np.random.Generator) -> None:
        layout = state.layout
        both = min(layout.blue, layout.orange) > 0
        names = INITIAL_STATES if both else ("kickoff", "anywhere")  # others need an opponent
        mix_initial_states(dict.fromkeys(names, 1 / len(names))).apply_batch(state, rng)
        for match in range(0, state.matches, 3) if both else ():
            ram(state, match)


def played(blue: int, orange: int) -> Steps:
    """Play matches by random actions, and return each step's states before and after."""
    env = VectorEnv(
        MATCHES,
        lambda: Components(
            DefaultObs(None),
            RepeatAction(LookupTableAction(), 8),
            termination_cond=GoalCondition(),
            truncation_cond=TimeoutCondition(3),
            state_mutator=Begun(),
        ),
        (blue, orange),
        simulator=ROCKETSIM3,
        seed=blue + 5 * orange,
    )
    env.reset()
    rng, steps = np.random.default_rng(3), []
    straight = np.flatnonzero((LookupTableAction.make_lookup_table() == (1, 0, 0, 0, 0, 0, 1, 0)).all(1))
    for _ in range(STEPS):
        actions = rng.integers(90, size=(MATCHES, env.cars))
        actions[::3, 0] = straight
        env.step(actions)
        # Where an episode has ended, the state is that of the next one.
        steps.append((env._before.copy(), env.state.copy()))
    return steps


def drawn(blue: int, orange: int) -> Steps:
    """Draw states that share nothing but their layout, with bumps, demolitions, touches and goals."""
    rng, steps = np.random.default_rng(7), []
    for seed in range(12):
        before, after = (random_state(blue, orange, seed + 50 * i, MATCHES) for i in range(2))
        for state in (before, after):
            cars = state.layout.cars
            state.car_bump_victim[:] = rng.integers(-1, cars, (MATCHES, cars))
            state.car_ball_touches[:] = rng.integers(0, 2, (MATCHES, cars))
            state.goal_scored[:] = rng.integers(0, 2, MATCHES)
            state.ball_position[:3] = (0, 0, 93.15)
            state.ball_linear_velocity[:2] = 0
            state.car_position[4, 0] = state.ball_position[4]
            state.car_boost_amount[5] = -0.25
        for state, speed in (
            (before, 2500),
            (after, -300),
        ):  # shots that are saved by whoever touches the ball
            state.ball_position[6:] = rng.uniform((-500, 4000, 93), (500, 4800, 400), (MATCHES - 6, 3))
            state.ball_linear_velocity[6:] = (0, speed, 0)
            state.ball_position[6:8, 1] *= -1
            state.ball_linear_velocity[6:8, 1] *= -1
        steps.append((before, after))
    return steps


@cache
def steps_of(blue: int, orange: int) -> Steps:
    """Return played and drawn steps."""
    return played(blue, orange) + drawn(blue, orange)


def assert_same(compiled: np.ndarray, own: np.ndarray) -> None:
    assert compiled.dtype == own.dtype and compiled.shape == own.shape and compiled.flags.c_contiguous
    if EXACT:
        np.testing.assert_array_equal(compiled, own)
    else:
        np.testing.assert_allclose(compiled, own, rtol=3e-7, atol=3e-7)


@contextmanager
def in_numpy() -> Iterator[None]:
    """Compute all components in numpy."""
    forms = dict(FORMS)
    FORMS.clear()
    try:
        yield
    finally:
        FORMS.update(forms)


def both(method: str, compiled: Any, own: Any, *given: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return what a batch method gives of two equal components: compiled, and in numpy."""
    with in_numpy():
        expected = getattr(own, method)(*given)
    return getattr(compiled, method)(*given), expected


def is_compiled(component: Any, method: str, *given: Any) -> bool:
    """Tell whether a batch method asks a compiled form that has an answer."""
    form = FORMS[getattr(type(component), method).__qualname__]
    return form(component, *given) is not None


def nobody() -> np.ndarray:
    return np.zeros(MATCHES, bool)


@pytest.fixture(autouse=True)
def provided() -> None:
    """Provide compiled forms, as an environment does."""
    native_parts.provide_native_forms()


def test_what_is_compared_has_goals_touches_and_demolitions() -> None:
    after = [after for _, after in played(3, 3)]
    assert any((state.car_ball_touches > 0).any() for state in after)
    assert any(state.car_is_demoed.any() for state in after)
    assert any((state.pad_timer > 0).any() for state in after)


@pytest.mark.parametrize(("blue", "orange"), SIZES)
def test_compiled_observations_are_the_numpy_ones(blue: int, orange: int) -> None:
    for builder in builders(blue, orange):
        assert is_compiled(builder, "build_batch", steps_of(blue, orange)[0][1])
        for _, state in steps_of(blue, orange):
            assert_same(*both("build_batch", builder, builder, state))


@pytest.mark.parametrize(("blue", "orange"), SIZES)
def test_compiled_rewards_are_the_numpy_ones(blue: int, orange: int) -> None:
    seen = np.zeros(len(REWARDS), bool)
    for number, reward in enumerate(REWARDS):
        assert is_compiled(reward, "_formula", *steps_of(blue, orange)[0])
        for before, after in steps_of(blue, orange):
            given, own = both("reward_batch", reward, reward, before, after, nobody(), nobody())
            assert_same(given, own)
            seen[number] |= bool(own.any())
    if blue > 1 and orange:
        assert seen.all(), "each reward was given at least once"


class CarNumber(BatchReward):
    """Somebody's own reward: the number of the car, as float64."""

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        return np.tile(np.arange(after.layout.cars) / 3, (after.matches, 1))


@pytest.mark.parametrize(("blue", "orange"), SIZES)
@pytest.mark.parametrize(("team_spirit", "zero_sum"), [(0, False), (0.3, False), (0, True), (1, True)])
def test_a_compiled_sum_is_the_numpy_one(blue: int, orange: int, team_spirit: float, zero_sum: bool) -> None:
    weights = np.random.default_rng(1).normal(0, 3, len(REWARDS)).tolist()
    inner = WeightedSum([(SpeedReward(), 0.1), (CarNumber(), 0.3)], 0.5)
    pairs = [*zip(REWARDS, weights, strict=True), (CarNumber(), -1.7), (inner, 0.9)]
    compiled, own = (WeightedSum(pairs, team_spirit, zero_sum) for _ in range(2))
    for before, after in steps_of(blue, orange)[::3]:
        assert_same(*both("reward_batch", compiled, own, before, after, nobody(), nobody()))
        for column, of_own in zip(compiled.last, own.last, strict=True):
            assert_same(np.asarray(column), of_own)


@pytest.mark.parametrize(("blue", "orange"), [(1, 1), (3, 2)])
def test_a_bot_in_a_match_sees_the_bits_that_training_saw(blue: int, orange: int) -> None:
    for builder in builders(blue, orange):
        for _, state in steps_of(blue, orange)[::8]:
            seen = builder.build_batch(state)
            for match in range(0, MATCHES, 5):
                alone = MatchState(blue, orange, 1, state.buffer[match : match + 1].copy())
                for car in range(blue + orange):
                    with in_numpy():
                        assert_same(observe(builder, (car,), alone)[0, 0], seen[match, car])
                    assert_same(observe(builder, (car,), alone)[0, 0], seen[match, car])


def test_a_changed_number_of_a_component_counts_from_then_on() -> None:
    before, after = steps_of(2, 2)[0]
    reward = WeightedSum([(MateDistanceReward(), 1.0), (TouchReward(), 1.0)])
    for far in (2000.0, 300.0, 2000.0):
        reward.parts[0].far, reward.weights = far, (far / 1000, 2.0)
        assert_same(*both("reward_batch", reward, reward, before, after, nobody(), nobody()))


class Doubled(RelativeObs):
    """Somebody's own observation: the standard one, twice as large."""

    def build_batch(self, state: MatchState, cars: Any = None) -> np.ndarray:
        return 2 * super().build_batch(state, cars)


class ZeroTable(RelativeObs):
    """Somebody's own observation, with another table."""

    def _table(self, rows: Any) -> Any:
        table = super()._table(rows)
        return table._replace(scales=0 * table.scales)


class Negative(TouchReward):
    """Somebody's own reward."""

    def reward_batch(self, *given: Any) -> np.ndarray:
        return -super().reward_batch(*given)


class Largest(WeightedSum):
    """Somebody's own sum, which is none."""

    def join_columns(self, columns: Any, layout: Any) -> np.ndarray:
        largest: np.ndarray = np.maximum.reduce(columns)
        return largest


def test_subclasses_are_asked_themselves() -> None:
    before, after = steps_of(1, 1)[-1]
    zero = ZeroTable(None)
    assert not zero.build_batch(after)[..., : DefaultObs(None).size(1, 1)].any()
    assert_same(Doubled().build_batch(after), 2 * RelativeObs().build_batch(after))
    touched = Negative().reward_batch(before, after, nobody(), nobody())
    assert touched.any() and (touched <= 0).all()
    largest = Largest([(Negative(), 1.0), (TouchReward(), 1.0)])
    assert_same(largest.reward_batch(before, after, nobody(), nobody()), -touched)


def test_what_a_subclass_asks_of_the_standard_class_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = steps_of(1, 1)[-1]
    names = ["RelativeObs.build_batch", "TouchReward._formula"]
    asked: list[str] = []
    for name in names:
        monkeypatch.setitem(FORMS, name, lambda *_, name=name: asked.append(name))
    Doubled().build_batch(after)
    Negative().reward_batch(before, after, nobody(), nobody())
    assert asked == names
    ZeroTable().build_batch(after)
    assert asked == names, "its formula is another one"


@dataclass
class EqualSpeed(SpeedReward):
    """Somebody's own reward with an equality of its own, which no dict takes as a key."""

    name: str = "speed"


def test_components_without_a_hash_and_copied_ones_go_on() -> None:
    before, after = steps_of(1, 1)[0]
    rewards = EqualSpeed(), SpeedReward()
    assert_same(*(one.reward_batch(before, after, nobody(), nobody()) for one in rewards))
    builder = RelativeObs(None)
    seen = builder.build_batch(after)
    assert_same(copy.deepcopy(builder).build_batch(after), seen)


def test_too_many_cars_are_refused_in_the_same_words() -> None:
    state, builder = random_state(2, 2, 1), RelativeObs(1)
    with pytest.raises(ValueError, match="has room for 1"), in_numpy():
        builder.build_batch(state)
    with pytest.raises(ValueError, match="has room for 1"):
        builder.build_batch(state)


def test_a_variable_keeps_all_of_them_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, provided in (("0", False), ("1", True)):
        monkeypatch.setenv(native_parts.NATIVE_VARIABLE, value)
        with in_numpy():
            native_parts.provide_native_forms.cache_clear()
            native_parts.provide_native_forms()
            assert bool(FORMS) == provided
