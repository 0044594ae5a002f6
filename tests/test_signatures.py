"""A component of an older RLGym gets the right signature in its error."""

from collections.abc import Callable
from typing import Any

import pytest
from rlgym.api import ActionParser, ObsBuilder
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.obs_builders import DefaultObs

from rlgym_bridge.components import actions, default_obs
from rlgym_bridge.components.reward_base import BatchReward, WeightedSum
from rlgym_bridge.components.rewards import SpeedReward
from rlgym_bridge.components.spec import Components, check_signatures


class OldParser(ActionParser[Any, Any, Any, Any, Any]):
    def get_action_space(self) -> Any: ...  # type: ignore[override]
    def reset(self, agents: Any, initial_state: Any, shared_info: Any) -> None: ...
    def parse_actions(self, actions: Any, state: Any, shared_info: Any) -> Any: ...


class OldObs(ObsBuilder[Any, Any, Any, Any]):
    def get_obs_space(self, agent: Any) -> Any: ...
    def reset(self, initial_state: Any, shared_info: Any) -> None: ...  # type: ignore[override]
    def build_obs(self, agents: Any, state: Any, shared_info: Any) -> Any: ...


class Generous(LookupTableAction):
    def reset(self, *things: Any, more: int = 0) -> None: ...


@pytest.mark.parametrize(
    ("component", "message"),
    [
        (
            OldParser(),
            r"OldParser.get_action_space\(self\) -> Any does not take what RLGym 2 gives it, "
            r"expected get_action_space\(self, agent\) as in rlgym.api.ActionParser",
        ),
        (
            OldObs(),
            r"OldObs.reset\(self, initial_state: .*"
            r"expected reset\(self, agents, initial_state, shared_info\)",
        ),
    ],
)
def test_an_older_signature_is_refused_with_the_right_one(component: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        check_signatures(component)
    parser = component if isinstance(component, ActionParser) else LookupTableAction()
    obs = component if isinstance(component, ObsBuilder) else None
    with pytest.raises(TypeError, match=message):
        Components(obs, parser)


class ShortReward(BatchReward):
    def reward_batch(self, before: Any, after: Any) -> Any: ...  # type: ignore[override]


class ShortObs(default_obs.DefaultObs):
    def build_batch(self, state: Any) -> Any: ...  # type: ignore[override]


class ShortMasks(actions.LookupTableAction):
    def masks(self) -> Any: ...  # type: ignore[override]


class LongMetrics(SpeedReward):
    def metrics(self, before: Any, after: Any) -> Any: ...


def one_state(after: Any) -> Any: ...


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (ShortReward, r"ShortReward.reward_batch\(before: Any, after: Any\) .* \(before, after, terminated"),
        (lambda: WeightedSum([(ShortReward(), 1.0)]), r"ShortReward.reward_batch\("),
        (lambda: WeightedSum([(one_state, 1.0)]), r"the reward one_state\(after: Any\) .* \(before, after\)"),
        (ShortObs, r"ShortObs.build_batch\(state: Any\) .* expected \(state, cars\)"),
        (lambda: actions.RepeatAction(ShortMasks(), 8), r"ShortMasks.masks\(\) .* expected \(state\)"),
        (LongMetrics, r"LongMetrics.metrics\(before: Any, after: Any\) .* expected \(state\)"),
        (
            lambda: default_obs.add_number(default_obs.DefaultObs)(lambda: 0),
            r"the number <lambda>\(\) .* expected \(state\)",
        ),
    ],
)
def test_methods_with_other_arguments_are_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message + r".*\(.*test_signatures.py, line \d+\)"):
        check_signatures(make())


def test_what_rlgym_calls_passes() -> None:
    for component in (RepeatAction(LookupTableAction()), DefaultObs(), Generous(), None, object()):
        check_signatures(component)
