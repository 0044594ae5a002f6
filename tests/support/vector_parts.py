"""Components and play of many matches at once."""

from typing import Any

import numpy as np
from rlgym.rocket_league.action_parsers import LookupTableAction as PeerLookup
from rlgym.rocket_league.action_parsers import RepeatAction as PeerRepeat
from rlgym.rocket_league.done_conditions import GoalCondition as PeerGoal
from rlgym.rocket_league.done_conditions import NoTouchTimeoutCondition as PeerNoTouch
from rlgym.rocket_league.obs_builders import DefaultObs as PeerObs
from rlgym.rocket_league.reward_functions import CombinedReward
from rlgym.rocket_league.reward_functions import GoalReward as PeerGoalReward
from rlgym.rocket_league.reward_functions import TouchReward as PeerTouch
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.conditions import GoalCondition, NoTouchTimeoutCondition
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutator_base import BatchMutator
from rlgym_bridge.components.mutators import KickoffMutator
from rlgym_bridge.components.rewards import (
    GoalReward,
    TouchReward,
    WeightedSum,
)
from rlgym_bridge.components.spec import Components
from rlgym_bridge.sim.vector_env import Step, VectorEnv
from rlgym_bridge.state import MatchState


class BallAhead(BatchMutator):
    """The same for every match: a ball on its way into orange's goal, which a blue car follows."""

    def apply_batch(self, state: MatchState, rng: np.random.Generator) -> None:
        KickoffMutator().apply_batch(state, np.random.default_rng(0))
        state.ball_position[:], state.ball_linear_velocity[:] = (0, 3500, 93.15), (0, 900, 0)
        state.car_position[:, 0], state.car_position[:, 1] = (0, 2500, 17), (-256, 3840, 17)
        state.car_rotation[:, 1] = [[0, 1, 0], [-1, 0, 0], [0, 0, 1]]
        state.car_rotation[:, 0] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
        state.car_linear_velocity[:, 0] = (0, 1400, 0)
        state.boost_consumption[:] = 1  # RLGym's own


def components(**changes: Any) -> Components:
    parts = {
        "obs_builder": DefaultObs(zero_padding=None),
        "parser": RepeatAction(LookupTableAction(), 8),
        "reward_fn": WeightedSum([(GoalReward(), 10.0), (TouchReward(), 1.0)]),
        "termination_cond": GoalCondition(),
        "truncation_cond": NoTouchTimeoutCondition(10),
        "state_mutator": KickoffMutator(),
    }
    return Components(**parts | changes)


def begun(matches: int, **changes: Any) -> VectorEnv:
    """Return matches of the standard components, some changed, at their first states."""
    env = VectorEnv(matches, lambda: components(**changes))
    env.reset()
    return env


def peers() -> Components:
    return Components(
        PeerObs(zero_padding=None),
        PeerRepeat(PeerLookup(), 8),
        reward_fn=CombinedReward((PeerGoalReward(), 10.0), (PeerTouch(), 1.0)),
        termination_cond=PeerGoal(),
        truncation_cond=PeerNoTouch(10),
        state_mutator=MutatorSequence(FixedTeamSizeMutator(1, 1), BallAhead()),
    )


def play(env: VectorEnv, steps: int, seed: int = 0, forward: bool = False) -> list[Step]:
    rng = np.random.default_rng(seed)
    straight = int(np.flatnonzero((PeerLookup.make_lookup_table() == [1, 0, 0, 0, 0, 0, 1, 0]).all(1))[0])
    found = []
    for _ in range(steps):
        actions = rng.integers(90, size=(env.state.matches, env.cars))
        if forward:
            actions[:, 0] = straight
        found.append(env.step(actions))
    return found
