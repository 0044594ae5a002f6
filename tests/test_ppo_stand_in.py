"""Modules written for rlgym-ppo give their environments where rlgym-ppo is not installed, and where it is."""

import importlib.util
import sys
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.components.spec import component_factory, environment
from tests.support.foreign_checkpoints import network, save_ppo
from tests.support.policy_folders import make_module

BODY = """
    from rlgym.api import RLGym
    from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
    from rlgym.rocket_league.done_conditions import GoalCondition, NoTouchTimeoutCondition
    from rlgym.rocket_league.obs_builders import DefaultObs
    from rlgym.rocket_league.reward_functions import CombinedReward, GoalReward, TouchReward
    from rlgym.rocket_league.sim import RocketSimEngine
    from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

    env = RLGym(
        state_mutator=MutatorSequence(FixedTeamSizeMutator(blue_size=1, orange_size=1), KickoffMutator()),
        obs_builder=DefaultObs(zero_padding=None),
        action_parser=RepeatAction(LookupTableAction(), repeats=8),
        reward_fn=CombinedReward((GoalReward(), 10), (TouchReward(), 0.1)),
        termination_cond=GoalCondition(),
        truncation_cond=NoTouchTimeoutCondition(timeout_seconds=10),
        transition_engine=RocketSimEngine(),
    )
    return RLGymV2GymWrapper(env)


if __name__ == "__main__":
    from rlgym_ppo import Learner

    Learner(build, n_proc=32, standardize_obs=False).learn()
"""
MODULES = {
    "inside": "def build():\n    from rlgym_ppo.util import RLGymV2GymWrapper" + BODY,
    "above": (
        "import numpy as np\nfrom rlgym_ppo import Learner\n"
        "from rlgym_ppo.util import MetricsLogger, RLGymV2GymWrapper\n"
        "class Logger(MetricsLogger):\n    def _report_metrics(self, *args): pass\n"
        "def build():" + BODY
    ),
    "by file": "def build():\n    from rlgym_ppo.util.rlgym_v2_gym_wrapper import RLGymV2GymWrapper" + BODY,
}
WORDS = ["--env", "their_env:build", "--out", "bot", "-q"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("rlgym_ppo") is not None, reason="rlgym-ppo is installed here"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    save_ppo(tmp_path / "5000", network(90))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def left() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] == "rlgym_ppo"]


@pytest.mark.parametrize("layout", MODULES)
def test_a_bot_of_rlgym_ppo_is_imported(layout: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_module(here, monkeypatch, "their_env", MODULES[layout])
    assert main(["import", "5000", *WORDS]) == 0
    assert not left()


def test_an_installed_rlgym_ppo_is_the_one_that_is_used(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_module(here, monkeypatch, "their_env", MODULES["inside"])
    util = here / "rlgym_ppo" / "util"
    util.mkdir(parents=True)
    (util.parent / "__init__.py").write_text("")
    (util / "__init__.py").write_text(
        "made = []\nclass RLGymV2GymWrapper:\n"
        "    def __init__(self, rlgym_env):\n        self.rlgym_env = rlgym_env\n        made.append(self)\n"
    )
    try:
        environment("their_env:build").close()
        assert len(sys.modules["rlgym_ppo.util"].made) == 1
    finally:
        for name in left():
            del sys.modules[name]


def test_the_stand_in_is_gone_when_a_function_fails(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_module(
        here, monkeypatch, "their_env", "def build():\n    import rlgym_ppo\n    raise KeyError('boost')\n"
    )
    with pytest.raises(KeyError, match="boost"):
        component_factory(None, None, "their_env:build", allow=None)()
    assert not left()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "from rlgym_ppo import Learner\nLearner(None)\n",
            "its Learner cannot train; expected training under",
        ),
        (
            "import rlgym_ppo.ppo\n",
            "their_env (for their_env:build) imports rlgym_ppo.ppo, which is not installed",
        ),
    ],
)
def test_a_module_that_needs_more_of_rlgym_ppo_is_told_so(
    text: str, message: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_module(here, monkeypatch, "their_env", text)
    assert main(["import", "5000", *WORDS]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not left()
