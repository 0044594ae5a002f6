"""Bots as other trainers save them, and the environments they were trained in."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

ENV = """
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
OUTPUTS = {"discrete": 90, "wrapped": 90, "continuous": 16, "buttons": 21}
OBS = 92


def network(outputs: int, *layers: int) -> nn.Sequential:
    """rlgym-ppo's: linear layers with ReLU between them, and one more activation where it has one."""
    torch.manual_seed(outputs)
    widths = [OBS, *(layers or (64, 32)), outputs]
    parts: list[nn.Module] = []
    for inputs, size in pairwise(widths):
        parts += [nn.Linear(inputs, size), nn.ReLU()]
    ends = {90: nn.Softmax(dim=-1), 16: nn.Tanh()}
    return nn.Sequential(*parts[:-1], *([ends[outputs]] if outputs in ends else []))


def save_ppo(folder: Path, model: nn.Sequential, stats: dict[str, Any] | None = None) -> Path:
    """Write what rlgym-ppo's `Learner.save` writes of a policy."""
    folder.mkdir(parents=True)
    holder = nn.Module()
    holder.model = model
    torch.save(holder.state_dict(), folder / "PPO_POLICY.pt")
    books = {"cumulative_timesteps": 5000} | ({} if stats is None else {"obs_running_stats": stats})
    (folder / "BOOK_KEEPING_VARS.json").write_text(json.dumps(books))
    return folder
