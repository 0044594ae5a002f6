"""Components as RLGym's documentation has users write them train here and play here.

https://rlgym.org/Rocket%20League/Configuration%20Objects/action_parsers/ and done_conditions/, read on
2026-11-22: the parser's space is size and name, in this order, and its rows are (8,) without ticks. Their
`get_action_space(self)` and `reset(self, initial_state, shared_info)` are what RLGym 2.0.1 itself refuses.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlgym.api import RLGym
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence

from rlgym_bridge.cli import main as bridge
from rlgym_bridge.components.actions import action_space
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutators import KickoffMutator
from rlgym_bridge.components.rewards import GoalReward
from rlgym_bridge.components.spec import ComponentSpec, component_factory
from rlgym_bridge.engines.live import LiveEngine
from rlgym_bridge.engines.sim import SimEngine
from rlgym_bridge.policy.folder import load_policy, save_policy
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.training.ppo import main as train
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.policy_folders import make_module
from tests.support.rlgym_worlds import STANDARD, Env, serving

PARTS = """
import numpy as np
from rlgym.api import ActionParser, DoneCondition


class ContinuousAction(ActionParser):
    def __init__(self):
        super().__init__()
        self._inputs = 8

    def get_action_space(self, agent):
        return float(self._inputs), "continuous"

    def reset(self, agents, initial_state, shared_info):
        pass

    def parse_actions(self, actions, state, shared_info):
        rows = {}
        for agent, action in actions.items():
            row = np.zeros(self._inputs)
            row[:] = action[:]
            row[-3:] = np.round((row[-3:] + 1) / 2)
            rows[agent] = row
        return rows


class BallHigh(DoneCondition):
    def reset(self, agents, initial_state, shared_info):
        pass

    def is_done(self, agents, state, shared_info):
        high = state.ball.position[2] > 1500
        return {agent: high for agent in agents}
"""
BOT = """
from rlgym.rocket_league.done_conditions import AnyCondition, GoalCondition
from rlgym.rocket_league.done_conditions import NoTouchTimeoutCondition, TimeoutCondition
from rlgym_bridge.components.spec import ComponentSpec
from rlgym_bridge.training.components import *
from published_parts import BallHigh, ContinuousAction


def parser(settings):
    return ComponentSpec.of(ContinuousAction)


def conditions(settings):
    return (
        AnyCondition(GoalCondition(), BallHigh()),
        AnyCondition(NoTouchTimeoutCondition(timeout_seconds=5), TimeoutCondition(timeout_seconds=10)),
    )
"""
ENV = """
from rlgym.api import RLGym
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.rewards import GoalReward
from rlgym_bridge.engines.sim import SimEngine
from published_parts import ContinuousAction


def build():
    return RLGym(
        state_mutator=MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator()),
        obs_builder=DefaultObs(zero_padding=None),
        action_parser=ContinuousAction(),
        reward_fn=GoalReward(),
        transition_engine=SimEngine(tick_skip=5),
    )
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_module(tmp_path, monkeypatch, "published_parts", PARTS)
    make_module(tmp_path, monkeypatch, "published_bot", BOT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_documented_components_train_and_play(here: Path) -> None:
    changes = {"components": "published_bot", "out": str(here / "run"), "collectors": 1, "matches": 4,
               "rollout_steps": 16, "steps": 200, "policy_layers": [16], "critic_layers": [16],
               "tick_skip": 6}  # fmt: skip
    checkpoint = train(check_settings(changes), quiet=True).checkpoint
    assert load_policy(checkpoint, ["published_parts"]).manifest.tick_skip == 6
    recording = here / "match.mcap"
    words = ["--blue", str(checkpoint), "--orange", "chaser", "--allow-modules", "published_parts"]
    words += ["--pace", "lockstep", "--seconds", "2", "--max-overtime", "0", "-q", "--record", str(recording)]
    assert bridge(["match", *words]) == 0
    blue = next(
        one for one in open_recording(recording).agents.values() if one.decisions[0].seats.tolist() == [0]
    )
    between = np.diff([one.frame for one in blue.decisions])
    assert set(between[:50].tolist()) == {6}


@pytest.mark.parametrize("tick_skip", [None, 5])
def test_its_rows_without_ticks_are_held_as_long_in_both_worlds(here: Path, tick_skip: int | None) -> None:
    from published_parts import ContinuousAction  # type: ignore[import-not-found]

    settings = {} if tick_skip is None else {"tick_skip": tick_skip}
    random, seen = np.random.default_rng(5), []
    chosen = random.uniform(-1, 1, (30, 2, 8)).astype(np.float32)
    with serving() as server:
        for engine in (
            SimEngine(as_in_a_match=True, thrust=True, **settings),
            LiveEngine((1, 1), server, dialect=STANDARD, patience=20.0, **settings),
        ):
            env: Env = RLGym(
                MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator(seed=1)),
                DefaultObs(zero_padding=None), ContinuousAction(), GoalReward(), engine,
            )  # fmt: skip
            obs = env.reset()
            began = env.state.tick_count
            for pair in chosen:
                obs, *_ = env.step(dict(zip(env.agents, pair, strict=True)))
            assert env.state.tick_count - began == 30 * (tick_skip or 8)
            seen.append(np.stack([obs[agent] for agent in env.agents]))
            env.close()
    np.testing.assert_allclose(seen[0], seen[1], atol=3e-4)


def test_an_environment_tells_how_long_its_engine_holds_a_row(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_module(here, monkeypatch, "published_env", ENV)
    weights = {"layers.0.weight": np.zeros((16, 92)), "layers.0.bias": np.zeros(16)}
    manifest = save_policy(here / "policy", weights, distribution="gaussian", team_sizes=[(1, 1)],
                           env="published_env:build")  # fmt: skip
    assert manifest.tick_skip == 5
    with pytest.raises(
        SettingsError, match=r"tick_skip is 8, and the engine of published_env:build holds .* 5"
    ):
        train(
            check_settings({"env": "published_env:build", "out": str(here / "run"), "steps": 200}), quiet=True
        )


def test_a_space_of_size_and_name_is_one_of_name_and_size() -> None:
    assert action_space((8.0, "continuous")) == action_space(("continuous", 8)) == ("gaussian", (8,))
    assert action_space((90, "discrete")) == ("categorical", (90,))


@pytest.mark.parametrize("space", [(8, 1), "discrete", 7, (), ("discrete",), {"n": 3}])
def test_a_space_that_is_neither_is_refused(space: Any) -> None:
    with pytest.raises(ValueError, match=r"expected a pair such as \("):
        action_space(space)


def test_numbers_beyond_the_stick_reach_a_parser_clipped(here: Path) -> None:
    from rlgym_bridge.components.batch_form import control_rows
    from rlgym_bridge.policy.fingerprint import probe_states

    names = ("rlgym_bridge:DefaultObs", "published_parts:ContinuousAction")
    parser = component_factory(*map(ComponentSpec, names), None, None)().parser
    actions = np.full((1, 2, 8), 3.0, np.float32)
    rows = control_rows(parser, actions, (0, 1), probe_states(1, 1, 0)[0])
    np.testing.assert_array_equal(rows, np.ones((2, 8)))
    assert (actions == 3.0).all()  # the policy's own numbers are as they were
