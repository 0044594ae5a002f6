"""What is trained: what a bot sees and can do, what it is rewarded for, how matches begin and end.

This is the file to edit for a bot of one's own, or to copy: `components = "my_bot"` in config.toml names
another module with the same three functions.
"""

from dataclasses import replace
from functools import partial

from rlgym_bridge.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components import Components, ComponentSpec, component_factory
from rlgym_bridge.conditions import AnyCondition, GoalCondition, NoTouchTimeoutCondition, TimeoutCondition
from rlgym_bridge.mutators import KickoffMutator, RandomStateMutator, WeightedMutator
from rlgym_bridge.relative_obs import RelativeObs
from rlgym_bridge.rewards import (
    AirTouchReward,
    BoostKeptReward,
    BoostPickedUpReward,
    DemolitionReward,
    FaceBallReward,
    GoalReward,
    InAirReward,
    SaveReward,
    TouchReward,
    VelocityBallToGoalReward,
    VelocityPlayerToBallReward,
    WeightedSum,
)
from rlgym_bridge.sim.vector_env import VectorEnv
from training.config import Settings, hitbox_number


def obs(settings: Settings) -> ComponentSpec:
    """Return what a car sees; for teams of changing size give `zero_padding`."""
    return ComponentSpec.of(RelativeObs, zero_padding=None)


def parser(settings: Settings) -> ComponentSpec:
    """Return what an action means: one of 90 rows of controls, held for `tick_skip` ticks.

    `MultiDiscreteAction` or `ContinuousAction` in place of `LookupTableAction` is all that another kind of
    policy needs.
    """
    return ComponentSpec.of(RepeatAction, ComponentSpec.of(LookupTableAction), repeats=settings.tick_skip)


def make_components(settings: Settings) -> Components:
    """Return the components of a batch of matches."""
    weighted = [
        (GoalReward(), settings.goal),
        (TouchReward(), settings.touch),
        (TouchReward(strength=True), settings.touch_strength),
        (AirTouchReward(), settings.air_touch),
        (SaveReward(), settings.save),
        (DemolitionReward(), settings.demolition),
        (VelocityPlayerToBallReward(), settings.velocity_to_ball),
        (VelocityBallToGoalReward(), settings.velocity_ball_to_goal),
        (FaceBallReward(), settings.face_ball),
        (InAirReward(), settings.in_air),
        (BoostKeptReward(), settings.boost_kept),
        (BoostPickedUpReward(), settings.boost_picked_up),
    ]
    return replace(
        component_factory(obs(settings), parser(settings), None, allow=None)(),
        # What counts nothing is not computed.
        reward_fn=WeightedSum(
            [pair for pair in weighted if pair[1]], settings.team_spirit, settings.zero_sum
        ),
        termination_cond=GoalCondition(),
        truncation_cond=AnyCondition(
            NoTouchTimeoutCondition(settings.no_touch_seconds), TimeoutCondition(settings.episode_seconds)
        ),
        state_mutator=WeightedMutator(
            [(KickoffMutator(), settings.kickoff_share), (RandomStateMutator(), 1 - settings.kickoff_share)]
        ),
    )


def make_env(settings: Settings, matches: int) -> VectorEnv:
    """Return the matches of one collector."""
    return VectorEnv(
        matches,
        partial(make_components, settings),
        settings.team_sizes,
        tick_skip=settings.tick_skip,
        action_delay=settings.action_delay,
        hitbox=hitbox_number(settings),
    )
