"""Several team sizes in one run: who plays what, what a step gives, and what is refused."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.training.evaluate import evaluate
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.selfplay.matches import MixedMatches
from rlgym_bridge.training.selfplay.opponents import learned_cars, name_car, snapshot_cars
from rlgym_bridge.training.settings import SettingsError, TrainingSettings, check_settings, settings_as_toml
from tests.support.policy_folders import make_module, save
from tests.support.training_runs import SMALL

MIXED = [[1, 1, 0.5], [2, 2, 0.25], [3, 3, 0.25]]
REAL = {"components": "rlgym_bridge.training.components", "matches": 4, "rollout_steps": 16}


def settings(**changes: Any) -> TrainingSettings:
    return check_settings(SMALL | {"team_sizes": MIXED} | changes)


def test_matches_are_divided_by_shares() -> None:
    sizes = settings(matches=9).by_size()
    assert [(one.team_sizes, one.matches) for one in sizes] == [((1, 1), 5), ((2, 2), 2), ((3, 3), 2)]
    equal = settings(team_sizes=[[1, 1], [2, 2], [3, 3]], matches=8)
    assert [one.matches for one in equal.by_size()] == [3, 3, 2]
    assert equal.cars == 6 and equal.cars_of_collector == 6 + 12 + 12
    assert "team_sizes = [[1, 1, 0.5], [2, 2, 0.25], [3, 3, 0.25]]" in settings_as_toml(settings())
    assert settings(team_sizes=[[2, 2]]).team_sizes == (2, 2)


def test_snapshots_and_opponent_play_their_share_of_each_size() -> None:
    mixed = settings(matches=16, snapshot_share=0.25, opponents={"chaser": 0.25})
    cars = np.split(snapshot_cars(mixed), [8 * 2, 8 * 2 + 4 * 4])
    assert [int(some.sum()) for some in cars] == [2, 2, 3]
    assert learned_cars(mixed).sum() == 16 + 16 + 24 - 2 * (2 + 2 + 3)
    assert name_car(mixed, 8 * 2 + 4 * 4 + 7) == "car 1 in match 1 of 3v3"
    assert name_car(settings(team_sizes=[2, 2]), 7) == "car 3 in match 1"


def test_cars_of_all_sizes_stand_one_after_another() -> None:
    mixed = settings(**REAL, snapshot_share=0.0, no_touch_seconds=0.2)
    size = PPOLearner(mixed).shape.obs_size
    matches = MixedMatches(mixed, size)
    obs, cars = matches.reset(0), 2 * 2 + 4 + 6
    assert obs.shape == (cars, size)
    ends = 0
    for _ in range(4):
        step = matches.step(np.zeros(cars, int))
        assert step.obs.shape == (cars, size) and step.rewards.shape == (cars,)
        assert len(step.final_obs) == (step.terminated | step.truncated).sum()
        for match in np.split(step.truncated, np.cumsum([2, 2, 4])):
            assert len(set(match.tolist())) == 1  # a match ends for all of its cars
        ends += len(step.final_obs)
    assert ends >= cars
    with pytest.raises(ValueError, match=r"observations have shape \(2, 2, .*expected \(2, 2, 5\)"):
        MixedMatches(mixed, 5).reset(0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zero_padding=None", r"DefaultObs gives 92 in 1v1, .*172 in 3v3; set zero_padding = 3"),
        ("zero_padding=2", r"has 3 cars and DefaultObs has room for 2 \(zero_padding\)"),
    ],
)
def test_an_observation_without_room_is_named(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = (
        "from rlgym_bridge.training.components import *\nfrom rlgym_bridge import ComponentSpec, DefaultObs\n"
        f"def obs(settings): return ComponentSpec.of(DefaultObs, {text})\n"
    )
    make_module(tmp_path, monkeypatch, "narrow", module)
    with pytest.raises(SettingsError, match=message):
        PPOLearner(settings(components="narrow"))


def test_components_are_made_for_each_size_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = (
        "from rlgym_bridge.training.components import *\nMADE = []\ndef mutator(settings):\n"
        "    MADE.append((settings.team_sizes, settings.matches))\n    return KickoffMutator()\n"
        "from rlgym.rocket_league.state_mutators import KickoffMutator\n"
    )
    make_module(tmp_path, monkeypatch, "sized", module)
    PPOLearner(settings(components="sized"))
    assert sys.modules["sized"].MADE == [((1, 1), 4), ((2, 2), 2), ((3, 3), 2)]
    with pytest.raises(SettingsError, match=r"obs_noise is \{ball.*no batch form: KickoffMutator"):
        PPOLearner(settings(components="sized", obs_noise={"ball_position": 1.0}))


def test_a_mutator_without_states_of_a_size_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = (
        "from rlgym_bridge.training.components import *\n"
        "from rlgym_bridge.components.mutators import KickoffMutator\n"
        "class Duel(KickoffMutator):\n    def apply_batch(self, state, rng):\n"
        "        if state.layout.cars != 2: raise ValueError('states of 1v1 alone')\n"
        "def mutator(settings): return Duel()\n"
    )
    make_module(tmp_path, monkeypatch, "duel", module)
    PPOLearner(settings(components="duel", team_sizes=[1, 1]))
    with pytest.raises(SettingsError, match=r"components of duel do not fit: .*states of 1v1 alone"):
        PPOLearner(settings(components="duel"))


def test_an_opponent_of_another_size_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "duel")
    changes = REAL | {"opponents": {str(tmp_path / "duel"): 0.5}, "matches": 8}
    PPOLearner(settings(**changes, team_sizes=[1, 1]))
    for sizes in ([2, 2], [[1, 1], [2, 2]]):
        with pytest.raises(SettingsError, match=r"duel\", which was trained for 1v1, this match is 2v2"):
            PPOLearner(settings(**changes, team_sizes=sizes))


def test_a_resumed_run_may_have_other_shares_of_its_sizes(tmp_path: Path) -> None:
    mixed = settings(**REAL)
    folder = PPOLearner(mixed).save(Checkpoints(tmp_path, 1))
    assert load_player(folder).team_sizes == ((1, 1), (2, 2), (3, 3))
    assert PPOLearner(mixed).load(folder) == {}
    with pytest.raises(ValueError, match="was trained for 1v1, 2v2, 3v3, expected 4v4"):
        evaluate(str(folder), "chaser", 2, seconds=2.0, team_size=4)
    shares = [[1, 1, 0.25], [2, 2, 0.25], [3, 3, 0.5]]
    assert list(PPOLearner(settings(**REAL, team_sizes=shares)).load(folder)) == ["team_sizes"]
    for sizes, now in (([1, 1], r"\[1, 1\]"), ([[1, 1], [2, 2]], r"\[\[1, 1, 0.5\], \[2, 2, 0.5\]\]")):
        with pytest.raises(SettingsError, match=rf"team_sizes was \[\[1, 1, 0.5\].* and is {now} now"):
            PPOLearner(settings(**REAL, team_sizes=sizes)).load(folder)
