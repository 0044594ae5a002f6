"""RLGym components that write down every call, for a bot and for RLGym's own loop alike."""

from typing import Any

import numpy as np
from rlgym.api import ActionParser, DoneCondition, ObsBuilder, RewardFunction, SharedInfoProvider
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.done_conditions import GoalCondition, NoTouchTimeoutCondition
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import CombinedReward, GoalReward, TouchReward

from rlgym_bridge.components.spec import Components
from tests.support.rlgym_worlds import Counter, noted


class CallLog:
    """Calls in their order: name, ticks since the episode began, and numbers that one agent was given."""

    def __init__(self, agent: str = "blue-0") -> None:
        self.agent = agent
        self.entries: list[list[Any]] = []
        self._start = 0

    def note(self, name: str, given: tuple[Any, ...], result: Any) -> None:
        ticks = [int(one.tick_count) for one in given if hasattr(one, "tick_count")]
        if name == "SharedInfoProvider.set_state":
            (self._start,) = ticks
        told = result.get(self.agent, result.get("steps")) if isinstance(result, dict) else None
        numbers = None if told is None else np.ravel(np.asarray(told, float))[:3].round(3).tolist()
        if not name.endswith("_space"):
            self.entries.append([name, ticks[0] - self._start if ticks else None, numbers])


def logged_components(log: CallLog) -> Components:
    """Return one of every kind of component, all of RLGym's own, writing into `log`."""
    return Components(
        obs_builder=noted(DefaultObs(zero_padding=None), ObsBuilder, log),
        parser=noted(RepeatAction(LookupTableAction(), repeats=8), ActionParser, log),
        shared_info_provider=noted(Counter(), SharedInfoProvider, log),
        reward_fn=noted(CombinedReward((GoalReward(), 10.0), (TouchReward(), 1.0)), RewardFunction, log),
        termination_cond=noted(GoalCondition(), DoneCondition, log),
        truncation_cond=noted(NoTouchTimeoutCondition(30.0), DoneCondition, log),
    )
