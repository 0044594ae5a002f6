"""A run that goes on from a policy: it begins with what that can do, and the critic learns first."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from rlgym_bridge.clock import Timing
from rlgym_bridge.live.forecaster import Forecaster
from rlgym_bridge.policy.files import WEIGHTS_FILE, newest_checkpoint, read_files
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.runs.run import Summary
from rlgym_bridge.training.settings import SettingsError, TrainingSettings
from tests.support.training_runs import SMALL, small_settings

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
