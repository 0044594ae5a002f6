"""RLGym over a match in lockstep, beside RLGym over its own engine: equal environments and actions."""

import subprocess
import time
from typing import Any

import numpy as np
from rlgym.api import RLGym
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.done_conditions import GoalCondition, NoTouchTimeoutCondition
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import TouchReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

from rlgym_bridge.engines.live import LiveEngine
from tests.support.servers import match_server
from tools.benchmarks.runner import compared


def steps_a_second(engine: Any, seconds: float) -> float:
    """Play random actions for a while."""
    env: RLGym[Any, Any, Any, Any, Any, Any, Any, Any] = RLGym(
        MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator()), DefaultObs(zero_padding=None),
        RepeatAction(LookupTableAction(), 8), TouchReward(), engine, GoalCondition(),
        NoTouchTimeoutCondition(30.0),
    )  # fmt: skip
    env.reset()
    random, steps, began = np.random.default_rng(0), 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        *_, terminated, truncated = env.step({agent: random.integers(90, size=1) for agent in env.agents})
        if any(terminated.values()) or any(truncated.values()):
            env.reset()
        steps += 1
    return steps / (time.perf_counter() - began)


def live_engine(rounds: int, seconds: float = 4.0) -> dict[str, Any]:
    """Run both in turns; medians."""
    values, peers = [], []
    with match_server(stderr=subprocess.DEVNULL) as port:
        engine, peer = LiveEngine((1, 1), ("127.0.0.1", port)), RocketSimEngine[Any]()
        for _ in range(rounds):
            values.append(steps_a_second(engine, seconds))
            peers.append(steps_a_second(peer, seconds))
        engine.close()
    unit = "environment steps per second, 8 ticks each, 1v1, RLGym's components"
    return compared(values, peers, unit, "RLGym 2.0.1 with RocketSimEngine")
