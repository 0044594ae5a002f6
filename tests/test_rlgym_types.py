"""States without RLGym's package: the stand-ins say what its own classes say, and training needs no more."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlgym.rocket_league import api, obs_builders, reward_functions

from rlgym_bridge.components import rlgym_state, rlgym_types
from rlgym_bridge.user_input.extras import MESHES_VARIABLE, meshes_folder
from tests.support.processes import run_to_end
from tests.support.states import random_rotations, random_state

NAMES = ("GameState", "Car", "PhysicsObject", "GameConfig")
STAND_INS = {name: getattr(rlgym_types, f"_{name}") for name in NAMES}


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")} - {"INV_MTX", "INV_VEC"}


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The same match as RLGym's classes and as stand-ins."""
    state = random_state(2, 1, seed=4)
    theirs = rlgym_state.to_rlgym(state)
    for name, kind in STAND_INS.items():
        monkeypatch.setattr(rlgym_state, name, kind)
    return theirs, rlgym_state.to_rlgym(state)


def assert_equal(ours: Any, theirs: Any, path: str) -> None:
    for name in public(type(theirs)):
        one, other = getattr(ours, name), getattr(theirs, name)
        if callable(one):
            one, other = one(), other()
        if isinstance(other, dict):
            for key in other:
                assert_equal(one[key], other[key], f"{path}.{name}[{key}]")
        elif other is None:
            assert one is None
        elif type(other).__name__ in NAMES:
            assert_equal_once(one, other, f"{path}.{name}")
        else:
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5, err_msg=f"{path}.{name}")


def assert_equal_once(ours: Any, theirs: Any, path: str) -> None:
    if path.count("inverted") < 2:  # a body inverted twice is itself, and so on
        assert_equal(ours, theirs, path)


@pytest.mark.parametrize("name", NAMES)
def test_a_stand_in_has_all_public_members_of_rlgyms_class(name: str) -> None:
    assert public(STAND_INS[name]) == public(getattr(api, name))


def test_a_stand_in_says_of_a_match_what_rlgyms_classes_say(both: tuple[Any, Any]) -> None:
    theirs, ours = both
    assert type(ours) is STAND_INS["GameState"] and type(theirs) is api.GameState
    theirs.goal_scored = ours.goal_scored = True
    for car, other in zip(ours.cars.values(), theirs.cars.values(), strict=True):
        car.bump_victim_id = other.bump_victim_id = None
    assert_equal(ours, theirs, "state")
    np.testing.assert_array_equal(
        rlgym_state.from_rlgym(ours).buffer, rlgym_state.from_rlgym([theirs]).buffer
    )


@pytest.mark.parametrize("form", ["rotation_mtx", "quaternion", "euler_angles"])
def test_a_rotation_set_in_one_form_reads_alike_in_all(form: str) -> None:
    for matrix in random_rotations(np.random.default_rng(1), 50):
        bodies = [api.PhysicsObject(), STAND_INS["PhysicsObject"]()]
        bodies[0].rotation_mtx = matrix
        value = getattr(bodies[0], form)
        for body in bodies:
            setattr(body, form, value)
        for name in ("rotation_mtx", "euler_angles", "forward", "left", "up", "pitch", "yaw", "roll"):
            np.testing.assert_allclose(*(getattr(body, name) for body in bodies), atol=1e-6, err_msg=name)
        one, other = (body.quaternion for body in bodies)
        assert abs(abs(one @ other) - 1) < 1e-6  # q and -q turn alike


def test_reading_a_rotation_that_was_never_set_says_what_to_set() -> None:
    with pytest.raises(ValueError, match="no rotation is set, expected rotation_mtx"):
        STAND_INS["PhysicsObject"]().quaternion  # noqa: B018


def test_rlgyms_components_take_a_stand_in(both: tuple[Any, Any]) -> None:
    agents = list(both[1].cars)
    builder = obs_builders.DefaultObs(zero_padding=3)
    seen = [builder.build_obs(agents, state, {}) for state in both]
    paid = []
    for state in both:
        reward = reward_functions.CombinedReward(
            (reward_functions.TouchReward(), 1.0), (reward_functions.GoalReward(), 2.0)
        )
        reward.reset(agents, state, {})
        nothing = dict.fromkeys(agents, False)
        paid.append(reward.get_rewards(agents, state, nothing, nothing, {}))
    for agent in agents:
        np.testing.assert_allclose(seen[0][agent], seen[1][agent], rtol=1e-5, atol=1e-5)
    assert paid[0] == paid[1]


WITHOUT = """
import sys
sys.modules["rlgym.rocket_league"] = None
from rlgym.api import RewardFunction
from rlgym_bridge.components.conditions import GoalCondition
from rlgym_bridge.components.mutators import KickoffMutator
from rlgym_bridge import LookupTableAction, RelativeObs, RepeatAction, VectorEnv
from rlgym_bridge.components.spec import Components

class Nose(RewardFunction):
    def reset(self, agents, initial_state, shared_info):
        pass

    def get_rewards(self, agents, state, is_terminated, is_truncated, shared_info):
        assert type(state).__module__ == "rlgym_bridge.components.rlgym_types", type(state)
        return {agent: float(state.cars[agent].physics.forward[1]) for agent in agents}

made = lambda: Components(
    RelativeObs(), RepeatAction(LookupTableAction(), 8), reward_fn=Nose(),
    termination_cond=GoalCondition(), state_mutator=KickoffMutator(),
)
env = VectorEnv(2, made)
env.reset()
import numpy as np
step = env.step(np.zeros((2, 2), np.int64))
print("paid", step.rewards.shape, *sorted({round(float(one), 2) for one in step.rewards.ravel()}))
"""


def test_a_third_partys_reward_is_paid_without_rlgyms_package() -> None:
    env = os.environ | {MESHES_VARIABLE: str(meshes_folder())}
    ended = run_to_end([sys.executable, "-c", WITHOUT], env=env)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("paid (2, 2) ")


def test_without_meshes_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MESHES_VARIABLE, str(tmp_path))
    with pytest.raises(FileNotFoundError) as caught:
        meshes_folder()
    assert str(tmp_path) in str(caught.value)
    assert "pip install --no-deps rlgym-rocket-league" in str(caught.value)
