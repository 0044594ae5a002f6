"""A run that goes on from a policy: it begins with what that can do, and the critic learns first."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from rlgym.rocket_league.obs_builders import DefaultObs as RLGymDefaultObs
from torch.distributions import Categorical, kl_divergence

from rlgym_bridge.clock import Timing
from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.initial_states import INITIAL_STATES
from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.components.relative_obs import TeamObs
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.live.forecaster import Forecaster
from rlgym_bridge.policy.files import WEIGHTS_FILE, newest_checkpoint, read_files
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.state import derive
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.runs.run import Summary
from rlgym_bridge.training.selfplay.opponents import Teacher
from rlgym_bridge.training.settings import SettingsError, TrainingSettings, check_settings
from tests.support.policy_folders import make_module, random_weights, save, spec
from tests.support.small_learners import learner_of
from tests.support.states import random_state
from tests.support.training_runs import SMALL, column, small_settings

BATCH = 8 * 16
QUICK = {"snapshot_share": 0.0, "gamma": 0.0, "learning_rate": 3e-3, "critic_alone": 0}


def settings(out: Path, **changes: Any) -> TrainingSettings:
    return small_settings(out, **QUICK | changes)


@pytest.fixture
def start(tmp_path: Path) -> str:
    """Return the folder of an untrained policy."""
    return str(PPOLearner(settings(tmp_path / "first")).save(Checkpoints(tmp_path / "first", 1)))


def hits(summary: Summary) -> float:
    """Share of marks hit in the last iteration; 900 decisions a minute."""
    return summary.last["touches_per_car_minute"] / 900


def weights(folder: Path) -> dict[str, np.ndarray]:
    return safetensors.numpy.load((folder / WEIGHTS_FILE).read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("normalise", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_run_begins_with_what_the_policy_can_do(normalise: bool, tmp_path: Path) -> None:
    main(settings(tmp_path / "first", steps=200 * BATCH, normalise_obs=normalise), quiet=True)
    start = str(tmp_path / "first")
    anew = main(settings(tmp_path / "anew", steps=BATCH, normalise_obs=normalise), quiet=True)
    on = main(settings(tmp_path / "on", steps=BATCH, normalise_obs=normalise, start_from=start), quiet=True)
    assert on.steps == anew.steps == BATCH  # steps of this run alone
    assert hits(anew) < 0.5 < 0.7 < hits(on)


def test_at_first_only_the_critic_learns(tmp_path: Path, start: str) -> None:
    run = {"start_from": start, "critic_alone": 2 * BATCH, "checkpoint_every": BATCH}
    both = main(settings(tmp_path / "on", steps=3 * BATCH, **run), quiet=True).checkpoint
    alone = both.parent / str(2 * BATCH)
    given = weights(Path(start))
    assert all((tensor == given[name]).all() for name, tensor in weights(alone).items())
    assert any((tensor != given[name]).any() for name, tensor in weights(both).items())
    with pytest.raises(SettingsError, match="the policy of start_from stays as it is"):
        main(settings(tmp_path / "too short", steps=2 * BATCH, **run), quiet=True)


def test_older_versions_to_play_against_are_of_that_policy(tmp_path: Path, start: str) -> None:
    learner = PPOLearner(settings(tmp_path / "on", seed=1, start_from=start))
    learner.start()
    assert (learner.snapshots.rows[0] == learner.packed()).all()


def test_a_policy_plays_no_sooner_than_its_inputs_act(tmp_path: Path) -> None:
    late = settings(tmp_path, action_delay=[1, 2], input_latency=2)
    assert read_files(PPOLearner(late).save(Checkpoints(tmp_path, 1)))[0].action_delay == 2


def test_a_bot_of_the_run_looks_ahead_as_the_settings_say(tmp_path: Path) -> None:
    late = settings(tmp_path, action_delay=[1, 2], input_latency=8, forecast="auto")
    players = [
        load_player(PPOLearner(one).save(Checkpoints(tmp_path, 1)), allow_modules=[SMALL["components"]])
        for one in (late, settings(tmp_path, action_delay=[1, 2], input_latency=8))
    ]
    assert [player.forecast for player in players] == ["auto", 0]
    # Its delay stays that of training, and the forecast goes over the other 7 ticks.
    assert [player.timing for player in players] == [Timing(1, 8), Timing(8, 8)]
    assert Forecaster("auto", players[0].timing, 1).ticks == 7
    for wrong in (61, -1, "on", True):
        with pytest.raises(SettingsError, match=r'forecast is .*, expected "auto" or whole ticks from 0'):
            settings(tmp_path, forecast=wrong)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy_layers": [32]}, r"its layers are \[16, 90\], this run's \[32, 90\] \(policy_layers\)"),
        ({"normalise_obs": True}, r"its observations are not normalised, .* \(normalise_obs = false\)"),
        ({"activation": "tanh"}, r"its activation is relu, this run's tanh"),
        ({"layer_norm": True}, r"its layer_norm is False, this run's True"),
        ({"components": "rlgym_bridge.training.components"}, r"the observation was 4 numbers \(obs_size\)"),
        ({"start_from": "nowhere"}, r'start_from is "nowhere", which cannot be read: .* is no folder'),
    ],
)
def test_a_policy_that_does_not_fit_is_refused_by_name(
    changes: dict[str, Any], message: str, tmp_path: Path, start: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        main(settings(tmp_path / "on", **{"start_from": start, **changes}), quiet=True)
    assert newest_checkpoint(tmp_path / "on") is None


def test_the_settings_that_a_normalised_policy_needs_are_named(tmp_path: Path) -> None:
    first = settings(tmp_path / "first", normalise_obs=True, obs_clip=5.0)
    start = str(PPOLearner(first).save(Checkpoints(tmp_path / "first", 1)))
    for changes, ours in (({}, "are not"), ({"normalise_obs": True}, "are clipped to 10.0")):
        with pytest.raises(SettingsError, match=rf"{ours} \(normalise_obs = true, obs_clip = 5.0\)"):
            main(settings(tmp_path / "on", start_from=start, **changes), quiet=True)


STANDARD = {"components": "rlgym_bridge.training.components", "kickoff_share": 0.0}
TABLES = """
import numpy as np
from rlgym_bridge import ComponentSpec, RepeatAction
from rlgym_bridge.components.actions import LookupTableAction

class ShortTable(LookupTableAction):
    @staticmethod
    def make_lookup_table():
        return LookupTableAction.make_lookup_table()[::-2].copy()

class OtherTable(LookupTableAction):
    @staticmethod
    def make_lookup_table():
        return LookupTableAction.make_lookup_table() * np.float32([0.5] * 5 + [1] * 3)

def mutator(settings):
    from rlgym_bridge.training.components import mutator
    return mutator(settings)
"""
CHOICES = """
from rlgym_bridge import ComponentSpec, MultiDiscreteAction, RepeatAction

def parser(settings):
    return ComponentSpec.of(RepeatAction, ComponentSpec.of(MultiDiscreteAction), repeats=8)
"""


def settings_of(folder: Path, **changes: Any) -> TrainingSettings:
    return check_settings(SMALL | STANDARD | {"teacher": str(folder), "out": str(folder) + "-run"} | changes)


def softmax(outputs: np.ndarray) -> np.ndarray:
    return torch.from_numpy(outputs).softmax(-1).numpy()


@pytest.mark.parametrize("rlgym", [False, True])
def test_a_teacher_sees_the_state_with_its_own_builder(rlgym: bool, tmp_path: Path) -> None:
    obs = spec(RLGymDefaultObs, zero_padding=None) if rlgym else spec(DefaultObs, zero_padding=None)
    save(tmp_path / "old", obs=obs)
    settings = settings_of(tmp_path / "old", matches=5)
    teacher = Teacher(settings, Task(settings))
    teacher.restart()
    network = load_policy(tmp_path / "old").policy.network
    for seed in (1, 2):
        state = random_state(1, 1, seed=seed, matches=5)
        seen = load_policy(tmp_path / "old").obs_builder() if not rlgym else DefaultObs(None)
        rows = seen.build_batch(state).reshape(10, -1)
        found = teacher.probabilities(state)
        np.testing.assert_allclose(found.reshape(10, -1), softmax(network(rows)), atol=1e-4)
        teacher.forget(np.array([True, False, False, True, False]))


def test_a_pilot_teaches_cars_on_their_way_to_a_ball(tmp_path: Path) -> None:
    save(tmp_path / "old")
    state = blank_state(1, 1, 40)
    INITIAL_STATES["flight"].apply_batch(state, np.random.default_rng(0))
    derive(state)
    found = {}
    for flies in (False, True):
        settings = settings_of(tmp_path / "old", matches=40, pilot=3.0 * flies)
        teacher = Teacher(settings, Task(settings))
        teacher.restart()
        found[flies] = teacher.probabilities(state)
    flown = (found[True] != found[False]).any(-1)
    in_the_air = state.car_on_ground == 0
    assert not flown[~in_the_air].any() and flown.sum() > 0.8 * in_the_air.sum() > 0
    assert set(found[True][flown].ravel().tolist()) == {0.0, 3.0}
    np.testing.assert_allclose(found[True].sum(-1), np.where(flown, 3, 1), atol=1e-5)
    boosts = LookupTableAction.make_lookup_table()[:, CONTROL_NAMES.index("boost")] > 0
    assert found[True][flown][:, boosts].sum() > 0.8 * 3 * flown.sum()


def test_another_table_is_translated_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_module(tmp_path, monkeypatch, "teachers_tables", TABLES)
    from teachers_tables import OtherTable, ShortTable  # type: ignore[import-not-found]

    short = spec(RepeatAction, spec(ShortTable), repeats=8)
    save(tmp_path / "old", parser=short, weights=random_weights(92, 32, 45))
    settings = settings_of(tmp_path / "old", components="teachers_tables", matches=3)
    teacher, state = Teacher(settings, Task(settings)), random_state(1, 1, seed=1, matches=3)
    found = teacher.probabilities(state)
    loaded = load_policy(tmp_path / "old", ["teachers_tables"])
    rows = loaded.obs_builder().build_batch(state).reshape(6, -1)
    expected = np.zeros((6, 90))
    expected[:, np.arange(90)[::-2]] = softmax(loaded.policy.network(rows))
    np.testing.assert_allclose(found.reshape(6, -1), expected, atol=1e-5)
    other = spec(RepeatAction, spec(OtherTable), repeats=8)
    save(tmp_path / "odd", parser=other, weights=random_weights(92, 32, 90))
    with pytest.raises(SettingsError, match=r"whose action 0 gives the controls \[-0.5, .* no action of"):
        learner_of(tmp_path / "run", False, **STANDARD | {"teacher": str(tmp_path / "odd")}
                   | {"components": "teachers_tables"})  # fmt: skip


@pytest.mark.parametrize(
    ("saved", "changes", "message"),
    [
        ({"distribution": "gaussian"}, {}, "whose actions are gaussian over .8,., and this run's"),
        ({}, {"tick_skip": 4}, "which decides every 8 ticks, and tick_skip is 4"),
        ({}, {"team_sizes": [2, 2]}, "which was trained for 1v1, this match is 2v2"),
        ({}, {"teacher": "chaser"}, "chaser is no folder"),
    ],
)
def test_teachers_that_do_not_fit_get_a_sentence(
    saved: dict[str, Any], changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    save(tmp_path / "old", **saved)
    with pytest.raises(SettingsError, match=f"teacher is .*{message}"):
        learner_of(tmp_path / "run", False, **STANDARD | {"teacher": str(tmp_path / "old")} | changes)


def test_a_pilot_needs_a_teacher_and_a_table_of_actions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match="pilot is 1 and teacher is empty"):
        check_settings({"pilot": 1.0})
    make_module(tmp_path, monkeypatch, "pilots_choices", CHOICES)
    save(tmp_path / "old", "multi_categorical")
    several = settings_of(tmp_path / "old", components="pilots_choices", pilot=1.0)
    with pytest.raises(
        SettingsError, match=r"pilot is 1, and actions are multi_categorical over \(3, .*one choice"
    ):
        Teacher(several, Task(several))


def test_the_divergence_is_torchs_over_allowed_choices(tmp_path: Path) -> None:
    learner = learner_of(tmp_path, False)
    torch.manual_seed(0)
    outputs, targets = torch.randn(6, 90), torch.randn(6, 90).softmax(1)
    found = learner.policy.divergence_from(outputs, targets)
    exact = kl_divergence(Categorical(targets), Categorical(logits=outputs))
    torch.testing.assert_close(found, exact, atol=1e-5, rtol=1e-5)
    masks = torch.zeros(6, 90, dtype=torch.bool)
    masks[:, 10:30] = True
    found = learner.policy.divergence_from(outputs, targets, masks)
    few = Categorical(targets[:, 10:30]), Categorical(logits=outputs[:, 10:30])
    torch.testing.assert_close(found, kl_divergence(*few), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(learner.policy.divergence_from(outputs, 3 * targets, masks), 3 * found)
    targets[0, 10:30] = 0
    assert float(learner.policy.divergence_from(outputs, targets, masks)[0]) == 0


def test_the_weight_fades_to_nothing(tmp_path: Path) -> None:
    save(tmp_path / "old")
    changes = {"teacher": str(tmp_path / "old"), "teacher_coefficient": 0.5, "teacher_steps": 1000}
    learner = learner_of(tmp_path / "run", False, **STANDARD | changes)
    weights = [learner.teacher_weight(steps) for steps in (0, 500, 1000, 2000)]
    assert weights == [0.5, 0.25, 0.0, 0.0]
    assert learner_of(tmp_path / "other", False).teacher_weight() == 0.0


@pytest.mark.parametrize("network", ["perceptron", "gru"])
def test_a_run_comes_near_its_teacher(network: str, tmp_path: Path) -> None:
    weights = {name: 2 * value for name, value in random_weights(222, 32, 90).items()}
    save(tmp_path / "old", obs=spec(TeamObs), weights=weights)
    size, half = 8 * 14, 6 if network == "gru" else 8
    changes = SMALL | STANDARD | {
        "teacher": str(tmp_path / "old"), "teacher_steps": 1000 * size, "learning_rate": 6e-3,
        "minibatch": 28,
        "entropy_coefficient": 0.0, "epochs": 4, "steps": 2 * half * size, "out": str(tmp_path / "run"),
        "network": network, "sequence_length": 4, "mirror": network == "perceptron",
    }  # fmt: skip
    settings = check_settings(changes | {"teacher_coefficient": 5.0})
    main(settings, quiet=True)
    found = column(Path(settings.out), "teacher_kl")
    assert found[-1] < 0.7 * found[0]


def test_a_mirrored_policy_is_told_mirrored_probabilities(tmp_path: Path) -> None:
    save(tmp_path / "old", obs=spec(TeamObs), weights=random_weights(222, 32, 90), mirror=True)
    loaded = load_policy(tmp_path / "old")
    obs = TeamObs().build_batch(random_state(1, 1, seed=1, matches=4))
    found = loaded.policy.probabilities(obs)
    drawn = np.array([loaded.policy.act(obs) for _ in range(4000)])  # (4000, 4, 2)
    shares = np.stack([(drawn == action).mean(0) for action in range(90)], -1)
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(found, shares, atol=0.05)
    assert LookupTableAction().get_action_space("")[1] == 90
