"""One conformance test that any component can be passed through, over the simulator and over a match."""

from typing import Any

import numpy as np
import pytest
from rlgym.api import ActionParser, DoneCondition, ObsBuilder, RewardFunction, StateMutator, TransitionEngine
from rlgym.rocket_league import (
    action_parsers,
    done_conditions,
    obs_builders,
    reward_functions,
    state_mutators,
)
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence
from rlgym_tools.rocket_league.action_parsers.action_history_wrapper import ActionHistoryWrapper
from rlgym_tools.rocket_league.action_parsers.advanced_lookup_table_action import AdvancedLookupTableAction
from rlgym_tools.rocket_league.action_parsers.delayed_action import DelayedAction
from rlgym_tools.rocket_league.action_parsers.queued_action import QueuedAction
from rlgym_tools.rocket_league.obs_builders.relative_default_obs import RelativeDefaultObs

from rlgym_bridge import conditions, mutators, rewards
from rlgym_bridge.components import actions, relative_obs
from rlgym_bridge.components import default_obs as observations
from rlgym_bridge.components.actions import action_space
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.engines.sim import SimEngine
from tests.support.rlgym_members import CHECKS, members
from tests.support.rlgym_worlds import WORLDS, Env, engine_of, world_of
from tools.rlgym_table import FILE, rows, text

COMPONENTS = {
    "our DefaultObs": lambda: observations.DefaultObs(),
    "our RelativeObs": lambda: relative_obs.RelativeObs(zero_padding=None),
    "our TeamObs": lambda: relative_obs.TeamObs(),
    "RLGym's DefaultObs": lambda: obs_builders.DefaultObs(),
    "rlgym-tools' RelativeDefaultObs": lambda: RelativeDefaultObs(),
    "our LookupTableAction": lambda: actions.RepeatAction(actions.LookupTableAction(), 8),
    "our ContinuousAction": lambda: actions.RepeatAction(actions.ContinuousAction(), 8),
    "our MultiDiscreteAction": lambda: actions.RepeatAction(actions.MultiDiscreteAction(), 8),
    "RLGym's RepeatAction": lambda: action_parsers.RepeatAction(action_parsers.LookupTableAction(), 8),
    "rlgym-tools' DelayedAction": lambda: DelayedAction(_repeated(), 3),
    "rlgym-tools' QueuedAction": lambda: QueuedAction(_repeated(), 2),
    "rlgym-tools' ActionHistoryWrapper": lambda: ActionHistoryWrapper(_repeated()),
    "rlgym-tools' AdvancedLookupTableAction": lambda: action_parsers.RepeatAction(
        AdvancedLookupTableAction(), 8
    ),
    "our GoalCondition": lambda: conditions.GoalCondition(),
    "our AnyCondition of a list": lambda: conditions.AnyCondition([conditions.TimeoutCondition(1.0)]),
    "our AllCondition of two": lambda: conditions.AllCondition(
        conditions.TimeoutCondition(1.0), conditions.NoTouchTimeoutCondition(1.0)
    ),
    "RLGym's NoTouchTimeoutCondition": lambda: done_conditions.NoTouchTimeoutCondition(1.0),
    "RLGym's AnyCondition": lambda: done_conditions.AnyCondition(done_conditions.TimeoutCondition(1.0)),
    "our TouchReward": lambda: rewards.TouchReward(),
    "our WeightedSum": lambda: rewards.WeightedSum(
        [(rewards.GoalReward(), 10.0), (rewards.FaceBallReward(), 0.1)]
    ),
    "RLGym's CombinedReward": lambda: reward_functions.CombinedReward((reward_functions.TouchReward(), 1.0)),
    "our KickoffMutator": lambda: mutators.KickoffMutator(),
    "our RandomStateMutator": lambda: mutators.RandomStateMutator(),
    "RLGym's KickoffMutator": lambda: state_mutators.KickoffMutator(),
}


def _repeated() -> Any:
    return action_parsers.RepeatAction(action_parsers.LookupTableAction(), 8)


def conforms(component: Any, engine: TransitionEngine[Any, Any, Any]) -> None:
    """Play two short episodes with a component, and hold it to what RLGym's API says of its kind."""
    mutator = component if isinstance(component, StateMutator) else mutators.KickoffMutator(seed=0)
    parts: dict[str, Any] = {
        "obs_builder": observations.DefaultObs(zero_padding=None),
        "action_parser": actions.RepeatAction(actions.LookupTableAction(), 8),
        "reward_fn": rewards.TouchReward(),
        "termination_cond": None,
    }
    for name, kind in (("obs_builder", ObsBuilder), ("action_parser", ActionParser),
                       ("reward_fn", RewardFunction), ("termination_cond", DoneCondition)):  # fmt: skip
        if isinstance(component, kind):
            parts[name] = component
    env: Env = Env(MutatorSequence(FixedTeamSizeMutator(1, 1), mutator), transition_engine=engine, **parts)
    distribution, sizes = action_space(env.action_parser.get_action_space("blue-0"))
    random = np.random.default_rng(0)

    def drawn() -> np.ndarray:
        if distribution == "gaussian":
            return random.uniform(-1, 1, sizes[0]).astype(np.float32)
        return random.integers(np.array(sizes))

    for _ in range(2):
        obs = env.reset()
        for _ in range(6):
            for agent in ("blue-0", "orange-0"):
                size = env.observation_space(agent)[1]
                assert obs[agent].shape == (size,) and np.isfinite(obs[agent]).all()
            chosen = {agent: drawn() for agent in env.agents}
            parsed = env.action_parser.parse_actions(dict(chosen), env.state, env.shared_info)
            for agent, vectors in parsed.items():
                checked_rows(vectors, 8, f"the parser for {agent}")
            obs, given, *flags = env.step(chosen)
            assert all(np.isfinite(float(value)) for value in given.values())
            assert all(isinstance(flag, (bool, np.bool_)) for one in flags for flag in one.values())
            assert all(list(one) == env.agents for one in (obs, given, *flags))


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_component_conforms_in_the_simulator(name: str) -> None:
    conforms(COMPONENTS[name](), SimEngine())


@pytest.mark.slow
def test_all_components_conform_in_a_match() -> None:
    with engine_of("match server") as engine:
        for name, make in COMPONENTS.items():
            try:
                conforms(make(), engine)
            except Exception as error:
                raise AssertionError(f"{name} does not conform") from error


def test_what_does_not_conform_is_found() -> None:
    class Short(observations.DefaultObs):
        def build_obs(self, agents: Any, state: Any, shared_info: Any) -> Any:
            return {agent: seen[:-1] for agent, seen in super().build_obs(agents, state, shared_info).items()}

    with pytest.raises(AssertionError):
        conforms(Short(), SimEngine())


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("check", dict.fromkeys(CHECKS.values()), ids=lambda check: check.__name__)
def test_rlgyms_members_do_what_they_do_there(check, world: str) -> None:
    with world_of(world) as one:
        check(one)


@pytest.mark.parametrize("member", members())
def test_every_public_member_of_rlgym_has_a_check(member: str) -> None:
    assert member in CHECKS, f"rlgym.api has {member}; no check in tests/support/rlgym_members.py names it"


def test_the_table_in_the_docs_is_the_one_that_the_checks_give() -> None:
    described = FILE.read_text(encoding="utf-8")
    for row in rows(None):
        assert row.partition(" | ")[0] in described, f"{row} is missing: python -m tools.rlgym_table"
    assert text(None).splitlines()[0] == described.splitlines()[0]
