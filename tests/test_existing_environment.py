"""An RLGym environment that somebody has, with rlgym-tools' components, trains here and plays here."""

import json
from pathlib import Path
from typing import Any

import pytest
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import main as train
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.settings import SettingsError, TrainingSettings, check_settings

from rlgym_bridge.cli import main as bridge
from rlgym_bridge.policy.files import read_files
from tests.support.policy_folders import make_module

ENV = """
from rlgym.api import RLGym
from rlgym.rocket_league.action_parsers import RepeatAction
from rlgym.rocket_league.done_conditions import GoalCondition, TimeoutCondition
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import CombinedReward, GoalReward, TouchReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence
from rlgym_tools.rocket_league.action_parsers.action_history_wrapper import ActionHistoryWrapper
from rlgym_tools.rocket_league.action_parsers.advanced_lookup_table_action import AdvancedLookupTableAction
from rlgym_tools.rocket_league.action_parsers.delayed_action import DelayedAction
from rlgym_tools.rocket_league.action_parsers.queued_action import QueuedAction
from rlgym_tools.rocket_league.obs_builders.relative_default_obs import RelativeDefaultObs
from rlgym_tools.rocket_league.shared_info_providers.ball_prediction_provider import BallPredictionProvider
from rlgym_tools.rocket_league.shared_info_providers.multi_provider import MultiProvider
from rlgym_tools.rocket_league.shared_info_providers.serialized_provider import SerializedProvider


class Seeing(RelativeDefaultObs):
    # what the wrappers and the provider leave in the shared info is there when the bot sees
    def build_obs(self, agents, state, shared_info):
        assert len(shared_info["ball_prediction"]) >= 4 and shared_info["serialized_state"] is not None
        assert set(shared_info["action_queue"]) >= set(agents)
        assert all(shared_info["delayed_actions"][agent].shape == (3, 8) for agent in agents)
        history = shared_info.get("action_history", {})  # there from the first action on
        assert all(len(history[agent]) in (4, 8) for agent in agents if agent in history)
        return super().build_obs(agents, state, shared_info)


def build(teams=(1, 1), delay=True, repeats=8):
    parser = RepeatAction(AdvancedLookupTableAction(), repeats)
    return RLGym(
        MutatorSequence(FixedTeamSizeMutator(*teams), KickoffMutator()),
        Seeing(zero_padding=None),
        ActionHistoryWrapper(QueuedAction(DelayedAction(parser, 3), 2)),
        CombinedReward((GoalReward(), 10.0), (TouchReward(), 1.0)),
        RocketSimEngine(rlbot_delay=delay),
        GoalCondition(),
        TimeoutCondition(1.0),
        MultiProvider(SerializedProvider(), BallPredictionProvider(2.0, 0.5)),
    )


def of_two():
    return build((2, 2))


def at_once():
    return build(delay=False)


def short():
    return build(repeats=4)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_module(tmp_path, monkeypatch, "tools_env", ENV)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(here: Path, **changes: Any) -> TrainingSettings:
    return check_settings({
        "env": "tools_env:build", "out": str(here / "run"), "collectors": 1, "matches": 4,
        "rollout_steps": 20, "steps": 200, "policy_layers": [16], "critic_layers": [16], **changes,
    })  # fmt: skip


@pytest.mark.slow
def test_rlgym_tools_components_go_on_training(here: Path) -> None:
    train(settings(here), quiet=True)
    train(settings(here, steps=300), resume=True, quiet=True)


@pytest.mark.slow
def test_rlgym_tools_components_and_shared_info_train_and_play(here: Path) -> None:
    checkpoint = train(settings(here), quiet=True).checkpoint
    words = ["--blue", str(checkpoint), "--orange", "chaser"]
    assert bridge(["match", *words, "--pace", "lockstep", "--seconds", "1", "--max-overtime", "0", "-q"]) == 0


def test_in_packets_they_make_what_they_make_in_the_simulator(here: Path) -> None:
    words = ["parity", "--env", "tools_env:build", "--ticks", "500", "--json", "found.json"]
    assert bridge(words) == 1
    found = json.loads((here / "found.json").read_text())
    # `math/relative.py` of rlgym-tools 2.6.5 multiplies the other cars' rotations the wrong way round:
    # orange is shown others than blue.
    assert [one["name"] for one in found["mismatches"]] == [f"mirrored: number {n}" for n in (77, 78, 79)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"env": "tools_env:at_once"},
            r"action_delay is \[1, 1\], .* has a delay of 0 .*expected .*\[0, 0\]",
        ),
        ({"env": "tools_env:short"}, r"tick_skip is 8, and the parser of tools_env:short gives 4 ticks"),
        ({"env": "tools_env:none"}, r'env is "tools_env:none": tools_env has no none'),
        ({"env": "nowhere:build"}, r'env is "nowhere:build": .*nowhere'),
        ({"components": "mine"}, r'env is "tools_env:build" and components "mine", expected one of them'),
    ],
)
def test_an_unfit_environment_is_refused_before_training(
    here: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        train(settings(here, **changes), quiet=True)
    assert not (here / "run" / "checkpoints").exists()


def test_its_bot_plays_with_the_delay_of_its_engine(here: Path) -> None:
    learner = PPOLearner(settings(here, action_delay=[1, 9]))
    assert read_files(learner.save(Checkpoints(here / "run", 1)))[0].action_delay == 1


def test_an_environment_of_other_team_sizes_is_refused(here: Path) -> None:
    with pytest.raises(SettingsError, match=r"2 blue and 2 orange cars.*team_sizes"):
        train(settings(here, env="tools_env:of_two"), quiet=True)
