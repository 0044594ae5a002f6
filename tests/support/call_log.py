"""RLGym components that write down every call, for a bot and for RLGym's own loop alike."""

from typing import Any

from rlgym.api import DoneCondition, RewardFunction, SharedInfoProvider
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.done_conditions import GoalCondition, NoTouchTimeoutCondition
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import CombinedReward, GoalReward, TouchReward

from rlgym_bridge.components.spec import Components


class CallLog:
    """Calls in their order: name, ticks since the episode began, and what one agent was given or returned."""

    def __init__(self, agent: str = "blue-0") -> None:
        self.agent = agent
        self.entries: list[list[Any]] = []
        self._start = 0

    def begin(self, state: Any) -> None:
        self._start = state.tick_count

    def add(self, name: str, state: Any = None, value: Any = None) -> None:
        tick = None if state is None else int(state.tick_count - self._start)
        self.entries.append([name, tick, value])


class _Obs(DefaultObs):
    def __init__(self, log: CallLog) -> None:
        super().__init__(zero_padding=None)
        self.log = log

    def reset(self, agents, initial_state, shared_info):
        self.log.add("obs.reset", initial_state, sorted(shared_info))
        super().reset(agents, initial_state, shared_info)

    def build_obs(self, agents, state, shared_info):
        built = super().build_obs(agents, state, shared_info)
        self.log.add("obs.build_obs", state, [round(float(v), 3) for v in built[self.log.agent][:3]])
        return built


class _Parser(RepeatAction):
    def __init__(self, log: CallLog) -> None:
        super().__init__(LookupTableAction(), repeats=8)
        self.log = log

    def reset(self, agents, initial_state, shared_info):
        self.log.add("parser.reset", initial_state)
        super().reset(agents, initial_state, shared_info)

    def parse_actions(self, actions, state, shared_info):
        self.log.add("parser.parse_actions", state, actions[self.log.agent].tolist())
        return super().parse_actions(actions, state, shared_info)


class _Condition(DoneCondition):
    def __init__(self, log: CallLog, name: str, inner: DoneCondition) -> None:
        self.log, self.name, self.inner = log, name, inner

    def reset(self, agents, initial_state, shared_info):
        self.log.add(f"{self.name}.reset", initial_state)
        self.inner.reset(agents, initial_state, shared_info)

    def is_done(self, agents, state, shared_info):
        done = self.inner.is_done(agents, state, shared_info)
        self.log.add(f"{self.name}.is_done", state, bool(done[self.log.agent]))
        return done


class _Reward(RewardFunction):
    def __init__(self, log: CallLog) -> None:
        self.log = log
        self.inner = CombinedReward((GoalReward(), 10.0), (TouchReward(), 1.0))

    def reset(self, agents, initial_state, shared_info):
        self.log.add("reward.reset", initial_state)
        self.inner.reset(agents, initial_state, shared_info)

    def get_rewards(self, agents, state, is_terminated, is_truncated, shared_info):
        rewards = self.inner.get_rewards(agents, state, is_terminated, is_truncated, shared_info)
        self.log.add("reward.get_rewards", state, float(rewards[self.log.agent]))
        return rewards


class _Provider(SharedInfoProvider):
    def __init__(self, log: CallLog) -> None:
        self.log = log

    def create(self, shared_info):
        self.log.add("provider.create")
        return {"steps": 0}

    def set_state(self, agents, initial_state, shared_info):
        self.log.begin(initial_state)
        self.log.add("provider.set_state", initial_state, shared_info["steps"])
        return shared_info

    def step(self, agents, state, shared_info):
        self.log.add("provider.step", state, shared_info["steps"])
        shared_info["steps"] += 1
        return shared_info


def logged_components(log: CallLog) -> Components:
    """Return one of every kind of component, all of RLGym's own, writing into `log`."""
    return Components(
        obs_builder=_Obs(log),
        parser=_Parser(log),
        shared_info_provider=_Provider(log),
        reward_fn=_Reward(log),
        termination_cond=_Condition(log, "termination", GoalCondition()),
        truncation_cond=_Condition(log, "truncation", NoTouchTimeoutCondition(30.0)),
    )
