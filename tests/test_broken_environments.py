"""Refuse an environment that a user left broken, with his class, file and line."""

import re
from pathlib import Path

import pytest

from rlgym_bridge.cli import main as bridge
from tests.support.foreign_checkpoints import network, save_ppo
from tests.support.policy_folders import make_module

ODD = """
import numpy as np
from rlgym.api import ObsBuilder, StateMutator
from rlgym.rocket_league.state_mutators import MutatorSequence
from rlgym.api import RLGym
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.done_conditions import GoalCondition
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import TouchReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator

def build():
    return RLGym(
        MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator()), DefaultObs(zero_padding=None),
        RepeatAction(LookupTableAction(), 8), TouchReward(), RocketSimEngine(), GoalCondition(),
    )

class Setting(StateMutator):
    def __init__(self, change): self.change = change
    def apply(self, state, shared_info):
        self.change(state)

class Unfinished(ObsBuilder):
    def reset(self, agents, initial_state, shared_info): pass

def of(change):
    env = build()
    kickoff = MutatorSequence(env.state_mutator)
    env.state_mutator = MutatorSequence(kickoff, Setting(change), Setting(lambda state: len(state.cars)))
    return env
def cars_none(): return of(lambda state: setattr(state, "cars", None))
def cars_list(): return of(lambda state: setattr(state, "cars", [1, 2]))
def car_none(): return of(lambda state: state.cars.update(dict.fromkeys(state.cars)))
def crowd(): return of(lambda state: state.cars.update({n: list(state.cars.values())[0] for n in range(20)}))
def ball_nan(): return of(lambda state: setattr(state.ball, "position", np.array([np.nan, 0, 93])))
def with_obs(obs):
    env = build()
    env.obs_builder = obs
    return env
def abstract(): return with_obs(ObsBuilder())
def unfinished(): return with_obs(Unfinished())
def abstract_mutator():
    env = build()
    env.state_mutator = MutatorSequence(env.state_mutator, StateMutator())
    return env
"""


def refused(env: str, command: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Return how errors begin with the place of an environment of `ODD`, and what a command says of it."""
    name = f"odd_env:{env}"
    words = {"parity": ["--env", name], "train": ["odd.toml"]}
    here = Path.cwd()
    (here / "odd.toml").write_text(f'env = "{name}"\nout = "run"\n')
    if command == "import":
        save_ppo(here / "5", network(90))
        words["import"] = [str(here / "5"), "--env", name, "--out", "bot"]
    assert bridge([command, *words[command], "-q"]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    line = 1 + ODD[: ODD.index(f"def {env}()")].count("\n")
    return rf"{name} \({re.escape(str(here / 'odd_env.py'))}, line {line}\)", said


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_module(tmp_path, monkeypatch, "odd_env", ODD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ["parity", "import", "train"])
@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("cars_none", r"cars of the state is None, expected a dict with a Car for each agent"),
        ("cars_list", r"cars of the state is \[1, 2\], expected a dict with a Car for each agent"),
        ("car_none", r"car of blue-0 is None, expected a Car"),
        ("crowd", r"number of blue cars is 21, expected up to 4"),
        ("ball_nan", r"position of the ball is \[nan 0. 93.\], expected three numbers up to 10000"),
    ],
)
def test_an_impossible_value_is_refused_with_its_mutator(
    env: str, message: str, command: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, said = refused(env, command, capsys)
    line = 1 + ODD[: ODD.index("def apply")].count("\n")
    where = re.escape(f"({here / 'odd_env.py'}, line {line})")
    assert re.search(f"{place}: {message}; Setting set it {where}", said), said


@pytest.mark.parametrize("command", ["parity", "import", "train"])
@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("abstract", r"ObsBuilder has no reset of its own, expected a subclass of .*ObsBuilder with reset\("),
        ("unfinished", r"Unfinished \(.*odd_env.py, line 24\) has no build_obs of its own, expected .*\("),
        ("abstract_mutator", r"StateMutator has no apply of its own, expected .* with apply\(self, state, "),
    ],
)
def test_a_component_without_a_method_is_refused_by_its_class(
    env: str, message: str, command: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, said = refused(env, command, capsys)
    assert re.search(f"{place}: {message}", said), said
