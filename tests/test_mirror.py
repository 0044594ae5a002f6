"""Left and right exchanged: observations, actions, physics, and a policy that knows one half of the field."""

from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.advanced_obs import AdvancedObs
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutators import KickoffMutator, blank_state
from rlgym_bridge.components.relative_obs import RelativeObs, TeamObs
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.policy.folder import load_policy, save_policy
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.policy.symmetry import Mirror
from rlgym_bridge.project.template.my_parts import MyObs
from rlgym_bridge.sim.rocketsim2 import RocketSim2
from rlgym_bridge.state import derive
from rlgym_bridge.training.collector import rollout_layout
from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.rollouts import CollectedSteps
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.policy_folders import random_weights, spec
from tests.support.small_learners import learner_of
from tests.support.states import left_for_right, random_state
from tests.support.training_runs import SMALL

TABLE = LookupTableAction.make_lookup_table()
REVERSED = np.array([-1 if name in ("steer", "yaw", "roll") else 1 for name in CONTROL_NAMES])
NAMES = TeamObs().names(1, 1)


@pytest.mark.parametrize("builder", [TeamObs(), RelativeObs(None), DefaultObs(None), MyObs(None)])
def test_a_mirrored_match_is_seen_as_the_mirrored_observation(builder: DefaultObs) -> None:
    state = random_state(2, 2, seed=1, matches=20)
    mirror = Mirror(builder.names(2, 2), TABLE)
    seen, other = builder.build_batch(state), builder.build_batch(left_for_right(state))
    shown = mirror.show(seen, np.ones(seen.shape[:2], bool))
    assert (seen != other).any(-1).all()
    np.testing.assert_allclose(shown, other, atol=1e-6)


def test_mirrored_controls_move_a_mirrored_match_alike() -> None:
    state = blank_state(1, 1, 5)
    KickoffMutator().apply_batch(state, np.random.default_rng(0))
    derive(state)
    arenas, rng = RocketSim2(10, 1, 1), np.random.default_rng(1)
    arenas.put(range(5), state)
    arenas.put(range(5, 10), left_for_right(state))
    mirror = Mirror(NAMES, TABLE)
    for _ in range(12):
        actions = rng.integers(90, size=(5, 2))
        both = np.concatenate([actions, mirror.exchange(actions, np.ones((5, 2), bool))])
        arenas.step(np.repeat(TABLE[both][:, :, None], 8, 2))
    there, mirrored = arenas.state.car_position[:5], arenas.state.car_position[5:]
    assert (np.abs(there - state.car_position).max((1, 2)) > 100).all()
    np.testing.assert_allclose(there * (-1, 1, 1), mirrored, atol=1.0)


def test_a_mirrored_policy_turns_right_where_it_turns_left() -> None:
    policy = NetworkPolicy(
        random_weights(222, 32, 90), "categorical", (90,), "argmax", mirror=Mirror(NAMES, TABLE)
    )
    state = random_state(1, 1, seed=2, matches=200)
    chosen = [policy.act(TeamObs().build_batch(one)) for one in (state, left_for_right(state))]
    np.testing.assert_array_equal(TABLE[chosen[0]] * REVERSED, TABLE[chosen[1]])
    assert np.unique(chosen[0]).size > 5
    alone = policy.act(TeamObs().build_batch(state)[:1])
    np.testing.assert_array_equal(alone, chosen[0][:1])


def test_what_is_learned_from_is_what_the_network_saw_and_chose(tmp_path: Path) -> None:
    components = "rlgym_bridge.training.components"
    learner = learner_of(tmp_path, asynchronous=False, mirror=True, components=components)
    mirror, layout = learner.shape.mirror, rollout_layout(learner.settings, 1, learner.shape)
    assert mirror is not None
    rollouts = {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}
    rollouts["obs"][:] = np.random.default_rng(0).normal(size=rollouts["obs"].shape)
    rollouts["actions"][:] = np.random.default_rng(1).integers(90, size=rollouts["actions"].shape)
    collected = CollectedSteps.of(learner, rollouts)
    played = rollouts["obs"][:, :, learner.learned]
    where = mirror.applies(played)
    assert where.any() and not where.all() and not mirror.applies(collected.obs).any()
    np.testing.assert_array_equal(collected.obs[~where], played[~where])
    game = mirror.exchange(collected.actions, where[:, :-1])
    np.testing.assert_array_equal(game, rollouts["actions"][:, :, learner.learned])
    assert (game != collected.actions).any()


def test_a_folder_keeps_that_its_policy_is_mirrored(tmp_path: Path) -> None:
    parts = {
        "obs": spec(TeamObs), "parser": spec(RepeatAction, spec(LookupTableAction), repeats=8),
        "distribution": "categorical", "team_sizes": [(1, 1)], "selection": "argmax",
    }  # fmt: skip
    weights, obs = random_weights(222, 32, 90), TeamObs().build_batch(random_state(1, 1, seed=3, matches=50))
    for mirror in (True, False):
        save_policy(tmp_path / str(mirror), weights, mirror=mirror, **parts)
    mirrored, plain = (load_policy(tmp_path / str(one)) for one in (True, False))
    assert mirrored.manifest.mirror and not plain.manifest.mirror
    assert '"mirror"' not in (tmp_path / "False" / "policy.json").read_text()
    assert mirrored.manifest.differing(plain.manifest) == "mirror"
    differ = mirrored.policy.act(obs) != plain.policy.act(obs)
    assert differ.any() and not differ[obs[..., NAMES.index("self/position/x")] <= 0].any()


def test_what_has_no_mirrored_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no choice of the action gives the controls"):
        Mirror(NAMES, TABLE[:50])
    with pytest.raises(ValueError, match="previous/throttle, which does not tell how it is mirrored"):
        Mirror(AdvancedObs().names(1, 1), TABLE)
    with pytest.raises(ValueError, match="has no number named self/position/x"):
        Mirror(["self/mood"], TABLE)
    for name in ("pad/34/timer", "pad", "pad/first/timer"):
        with pytest.raises(ValueError, match="expected pad/0 to pad/33"):
            Mirror(["self/position/x", name], TABLE)
    with pytest.raises(ValueError, match="does not tell how it is mirrored"):
        Mirror(["self/position/x", "self/position/"], TABLE)
    with pytest.raises(
        SettingsError, match=r"mirror is true: .*such as TeamObs, .* here the observation has no"
    ):
        learner_of(tmp_path, asynchronous=False, mirror=True)


def test_a_run_may_take_mirroring_up_and_not_give_it_up(tmp_path: Path) -> None:
    plain = SMALL | {"components": "rlgym_bridge.training.components", "out": str(tmp_path / "run")}
    learner = learner_of(tmp_path / "run", asynchronous=False, components="rlgym_bridge.training.components")
    learner.steps = 8
    learner.save(Checkpoints(tmp_path / "run", 5))
    summary = main(check_settings(plain | {"mirror": True, "steps": 16}), resume=True, quiet=True)
    assert load_policy(summary.checkpoint).manifest.mirror
    with pytest.raises(SettingsError, match="mirror was true and is false now"):
        main(check_settings(plain | {"steps": 10**6}), resume=True, quiet=True)
    other = plain | {"out": str(tmp_path / "other"), "start_from": str(summary.checkpoint)}
    with pytest.raises(SettingsError, match="it knows one half of the field alone"):
        main(check_settings(other), quiet=True)
