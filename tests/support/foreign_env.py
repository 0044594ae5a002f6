"""The text of a module with environments as users of RLGym write them."""

from typing import Final

ENV: Final = """
import numpy as np
from rlgym.api import ActionParser, RLGym
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.done_conditions import GoalCondition
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import GoalReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence


class Eight(ActionParser):
    def __init__(self, space): self.space = space
    def get_action_space(self, agent): return self.space
    def reset(self, agents, initial_state, shared_info): pass


class Continuous(Eight):
    def parse_actions(self, actions, state, shared_info):
        made = {}
        for agent, action in actions.items():
            row = np.clip(action, -1, 1).astype(np.float32)
            row[5:] = row[5:] > 0
            made[agent] = row
        return made


class Buttons(Eight):
    def parse_actions(self, actions, state, shared_info):
        rows = {agent: action.astype(np.float32) for agent, action in actions.items()}
        for row in rows.values():
            row[:5] -= 1
        return rows


class Wrapper:
    def __init__(self, env): self.rlgym_env = env


def make(parser, size=1):
    return RLGym(
        MutatorSequence(FixedTeamSizeMutator(size, size), KickoffMutator()), DefaultObs(zero_padding=None),
        RepeatAction(parser, 8), GoalReward(), RocketSimEngine(), GoalCondition(),
    )


def discrete(): return make(LookupTableAction())
def wrapped(): return Wrapper(discrete())
def continuous(): return make(Continuous(("continuous", 8)))
def buttons(): return make(Buttons(("multi_discrete", (3, 3, 3, 3, 3, 2, 2, 2))))
def twos(): return make(LookupTableAction(), 2)
def nothing(): return 7
"""
