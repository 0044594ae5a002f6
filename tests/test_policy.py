"""The policy folder: plays as it was trained, with components of whatever making."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from rlgym.rocket_league.action_parsers import LookupTableAction as RLGymLookupTableAction
from rlgym.rocket_league.obs_builders import DefaultObs as RLGymDefaultObs
from rlgym_tools.rocket_league.action_parsers.queued_action import QueuedAction
from rlgym_tools.rocket_league.obs_builders.relative_default_obs import RelativeDefaultObs

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.batch_form import control_rows, observe, works_in_batches
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.components.spec import Components
from rlgym_bridge.policy.fingerprint import fingerprint, probe_states
from rlgym_bridge.policy.folder import ComponentSpec, Normalisation, PolicyMismatch, load_policy, save_policy
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from tests.support.policy_folders import (
    COUNTING_ENV,
    KINDS,
    OBS_1V1,
    edit,
    make_module,
    observations,
    random_weights,
    save,
    spec,
)

# --- saved and loaded --------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", KINDS)
@pytest.mark.parametrize("selection", ["sample", "argmax"])
def test_a_loaded_policy_acts_as_the_one_that_was_saved(tmp_path, distribution, selection):
    _, sizes, outputs = KINDS[distribution]
    weights = random_weights(OBS_1V1, 32, outputs)
    save(tmp_path / "p", distribution, weights=weights, selection=selection, seed=11)
    loaded = load_policy(tmp_path / "p")
    original = NetworkPolicy(weights, distribution, sizes, selection, 11)
    for policy in (original, loaded.policy):
        policy.reset([0, 1], 4)
    obs = observations()
    actions = loaded.policy.act(obs)
    np.testing.assert_array_equal(actions, original.act(obs))
    assert loaded.parser().parse_batch(actions).shape == (6, 2, 8, 8)


def test_the_manifest_read_is_the_manifest_saved(tmp_path):
    scaling = Normalisation((0.5,) * OBS_1V1, (2.0,) * OBS_1V1, 5.0)
    saved = save(tmp_path / "p", obs_normalisation=scaling, training={"steps": 7}, hitbox="merc")
    assert load_policy(tmp_path / "p").manifest == saved
    assert saved.obs_size == OBS_1V1
    assert saved.obs_names == DefaultObs(None).names(1, 1, 0)
    assert (saved.tick_skip, saved.action_delay) == (8, 1)


def test_the_manifest_has_the_keys_that_other_programs_read(tmp_path):
    save(tmp_path)
    data = json.loads((tmp_path / "policy.json").read_text())
    assert list(data) == [
        "format", "obs", "parser", "env", "tick_skip", "action_delay", "input_latency", "distribution",
        "selection", "seed", "obs_size", "obs_names", "obs_normalisation", "team_sizes", "hitbox",
        "versions", "training", "weights_sha256",
    ]  # fmt: skip
    assert data["parser"] == {
        "class": "rlgym_bridge:RepeatAction",
        "args": {"repeats": 8},
        "nested": {"class": "rlgym_bridge:LookupTableAction", "args": {}, "nested": None},
    }


def test_the_fingerprint_lies_beside_the_manifest_or_in_it(tmp_path):
    saved = save(tmp_path)
    assert (tmp_path / "policy.json").stat().st_size < 8_000 < (tmp_path / "fingerprint.json").stat().st_size
    older = json.loads((tmp_path / "fingerprint.json").read_text())
    (tmp_path / "fingerprint.json").unlink()
    edit(tmp_path, probe=older)
    assert load_policy(tmp_path).manifest == saved


def test_each_match_gets_components_of_its_own(tmp_path):
    save(tmp_path)
    loaded = load_policy(tmp_path)
    assert loaded.obs_builder() is not loaded.obs_builder()
    assert loaded.parser().parser is not loaded.parser().parser


def test_the_selection_can_be_overridden(tmp_path):
    save(tmp_path, selection="sample")
    loaded = load_policy(tmp_path, selection="argmax")
    assert loaded.manifest.selection == loaded.policy.selection == "argmax"
    with pytest.raises(ValueError, match=r"selection is 'best', expected one of sample, argmax"):
        load_policy(tmp_path, selection="best")


def test_one_padded_policy_may_know_several_team_sizes(tmp_path):
    weights = random_weights(172, 8, 90)
    manifest = save(
        tmp_path, weights=weights, obs=spec(DefaultObs), team_sizes=[(1, 1), (2, 2), (3, 3), (1, 2)]
    )
    assert (
        load_policy(tmp_path).manifest.team_sizes == manifest.team_sizes == ((1, 1), (2, 2), (3, 3), (1, 2))
    )
    with pytest.raises(ValueError, match=r"DefaultObs gives 92 in 1v1, 132 in 2v2; set zero_padding = 2"):
        save(tmp_path, team_sizes=[(1, 1), (2, 2)])


def test_saving_over_a_policy_replaces_all_of_it(tmp_path):
    save(tmp_path, seed=1)
    save(tmp_path, seed=2, weights=random_weights(OBS_1V1, 90, seed=5))
    assert load_policy(tmp_path).manifest.seed == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "fingerprint.json", "policy.json", "weights.safetensors",
    ]  # fmt: skip


def test_a_failed_save_leaves_the_old_policy_playable(tmp_path, monkeypatch):
    save(tmp_path, seed=1)

    def fail(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save(tmp_path, seed=2)
    assert load_policy(tmp_path).manifest.seed == 1
    assert len(list(tmp_path.iterdir())) == 3


def test_transposed_or_double_weights_are_saved_as_meant(tmp_path):
    weights = random_weights(OBS_1V1, 90)
    turned = weights | {"layers.0.weight": np.asfortranarray(weights["layers.0.weight"].astype(np.float64))}
    save(tmp_path / "a", weights=weights)
    save(tmp_path / "b", weights=turned)
    obs = observations()
    np.testing.assert_array_equal(
        load_policy(tmp_path / "a", selection="argmax").policy.act(obs),
        load_policy(tmp_path / "b", selection="argmax").policy.act(obs),
    )


# --- components that are not ours --------------------------------------------------------------------


@pytest.mark.parametrize("builder", [RLGymDefaultObs, RelativeDefaultObs])
def test_third_party_builders_and_parsers_are_saved_and_played(tmp_path, builder):
    manifest = save(
        tmp_path,
        obs=spec(builder, zero_padding=None),
        parser=spec(
            QueuedAction, spec(RepeatAction, spec(RLGymLookupTableAction), repeats=4), action_queue_size=2
        ),
    )
    assert manifest.obs_names is None
    assert manifest.tick_skip == 4
    loaded = load_policy(tmp_path)
    state = probe_states(1, 1, 0)[0]
    obs = observe(loaded.obs_builder(), [1], state)
    expected = builder(zero_padding=None).build_obs(["orange-0"], to_rlgym(state), {})["orange-0"]
    np.testing.assert_allclose(obs[0, 0], expected, atol=1e-6)
    parser = loaded.parser()
    parser.reset(["orange-0"], to_rlgym(state), {})
    rows = control_rows(parser, loaded.policy.act(obs), [1], state)
    assert [row.shape for row in rows] == [(4, 8)]


def test_a_subclass_of_the_dict_form_alone_is_called_by_it():
    class Doubled(DefaultObs):
        def build_obs(self, agents, state, shared_info):
            return {agent: 2 * row for agent, row in super().build_obs(agents, state, shared_info).items()}

    class Still(LookupTableAction):
        def parse_actions(self, actions, state, shared_info):
            return {agent: np.zeros((1, 8)) for agent in actions}

    state = probe_states(1, 1, 0)[0]
    assert not works_in_batches(Doubled())
    assert not works_in_batches(RepeatAction(Still()))
    np.testing.assert_array_equal(observe(Doubled(), [0], state), 2 * observe(DefaultObs(), [0], state))
    assert not control_rows(RepeatAction(Still()), np.array([[5]]), [0], state)[0].any()


def test_a_third_party_builder_takes_one_match_at_a_time():
    class Ragged(RLGymDefaultObs):
        def build_obs(self, agents, state, shared_info):
            return {agent: np.zeros(3 + i) for i, agent in enumerate(agents)}

    state = probe_states(1, 1, 0)[0]
    with pytest.raises(ValueError, match=r"Ragged gave observations of shape \[\(3,\), \(4,\)\]"):
        observe(Ragged(), [0, 1], state)
    two = type(state)(1, 1, 2)
    with pytest.raises(ValueError, match=r"Ragged has no batch form and takes one match at a time, not 2"):
        observe(Ragged(), [0], two)


@pytest.mark.parametrize("delay", [True, False])
def test_an_environment_gives_components_tick_skip_and_delay(tmp_path, monkeypatch, delay):
    make_module(tmp_path, monkeypatch, "my_env", COUNTING_ENV.format(delay=delay))
    manifest = save(tmp_path / "p", obs=None, parser=None, env="my_env:make")
    assert (manifest.tick_skip, manifest.action_delay) == (6, int(delay))
    assert manifest.obs is manifest.parser is None
    components = load_policy(tmp_path / "p", ["my_env"]).components()
    assert type(components.obs_builder).__name__ == "Counted"
    assert type(components.shared_info_provider).__name__ == "Counter"
    assert [row[-1] for row in manifest.probe["observations"]] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]

    sys.modules["my_env"].DELAY = not delay
    with pytest.raises(
        PolicyMismatch, match=rf"action_delay is {int(delay)} and the environment's engine has"
    ):
        load_policy(tmp_path / "p", ["my_env"])
    with pytest.raises(ValueError, match=r"my_env:make, and importing .* allow_modules=\(\"my_env\",\)"):
        load_policy(tmp_path / "p")


# --- what it stands on -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"team_sizes": [(1.5, 1)]}, r"team_sizes is \[\(1.5, 1\)\], expected a list of pairs"),
        ({"team_sizes": [("1", "1")]}, "expected a list of pairs"),
        ({"team_sizes": [(0, 0)]}, "expected pairs of 0 to 4 cars with one at least"),
        ({"team_sizes": [(5, 5)]}, "expected pairs of 0 to 4 cars with one at least"),
        ({"weights": None}, "weights are NoneType, expected a dict of arrays by name"),
        (
            {"weights": {"layers.0.weight": np.zeros((2, 2), complex)}},
            "dtype complex128, expected arrays of real",
        ),
    ],
)
def test_parts_of_another_type_cannot_be_saved(tmp_path, changes, message):
    made = {"weights": {}, "team_sizes": [(1, 1)]} | changes
    parts = {
        "obs": ComponentSpec("rlgym_bridge:DefaultObs"),
        "parser": ComponentSpec("rlgym_bridge:LookupTableAction"),
    }
    with pytest.raises(ValueError, match=message):
        save_policy(tmp_path / "p", made.pop("weights"), distribution="categorical", **parts, **made)
    assert not (tmp_path / "p").exists()


def test_a_policy_is_not_saved_in_place_of_a_file(tmp_path):
    (tmp_path / "p").write_text("kept")
    with pytest.raises(ValueError, match="p is a file, expected a folder to write"):
        save_policy(tmp_path / "p", {}, distribution="categorical", team_sizes=[(1, 1)])


def test_a_spec_is_made_of_a_class():
    with pytest.raises(ValueError, match="a component is 3, expected its class"):
        ComponentSpec.of(3)


def test_fingerprint_states_show_all_and_never_change():
    states = probe_states(2, 2, 0)
    names = "on_ground is_demoed is_boosting is_supersonic is_flipping has_flip can_flip"
    for name in names.split():
        flags = np.stack([getattr(state, "car_" + name) for state in states])
        assert 0 < flags.mean() < 1, name
    assert all(0 < (state.pad_timer > 0).mean() < 1 for state in states)
    obs = np.stack([DefaultObs().build_batch(state) for state in states])
    assert obs.dtype == np.float32
    # Changing the states would refuse every policy saved before: count manifest.FORMAT up with them.
    np.testing.assert_allclose(obs[0, 0, 0, :3], (0.359234, -1.032778, 0.677943), atol=2e-6)
    np.testing.assert_allclose(np.abs(obs).astype(np.float64).sum(), 1100.216, rtol=1e-6)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 2), (3, 3), (1, 2)])
def test_no_exchanged_or_turned_element_is_unnoticed(sizes):
    components = Components(DefaultObs(None), LookupTableAction())
    rows = np.array(fingerprint(components, [sizes], 0).observations)
    assert (np.abs(rows).max(0) > 1e-3).all()
    assert len(np.unique(rows.round(4), axis=1).T) == rows.shape[1] == DefaultObs(None).size(*sizes)
