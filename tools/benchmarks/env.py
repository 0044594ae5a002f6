"""Stepping many matches without a policy: against RocketSim alone, and against RLGym's own loop.

Seconds are of the processor, not of the clock, so that what else runs on the machine counts less.
"""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count, cycle
from typing import Any

import numpy as np
import RocketSim as rsim
from rlgym.api import RLGym
from rlgym.rocket_league.action_parsers import LookupTableAction as PeerLookup
from rlgym.rocket_league.action_parsers import RepeatAction as PeerRepeat
from rlgym.rocket_league.done_conditions import GoalCondition as PeerGoal
from rlgym.rocket_league.done_conditions import NoTouchTimeoutCondition as PeerNoTouch
from rlgym.rocket_league.obs_builders import DefaultObs as PeerObs
from rlgym.rocket_league.reward_functions import CombinedReward
from rlgym.rocket_league.reward_functions import GoalReward as PeerGoalReward
from rlgym.rocket_league.reward_functions import TouchReward as PeerTouch
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence
from rlgym.rocket_league.state_mutators import KickoffMutator as PeerKickoff

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.batch_form import FORMS
from rlgym_bridge.components.conditions import GoalCondition, NoTouchTimeoutCondition
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutators import KickoffMutator, blank_state
from rlgym_bridge.components.rewards import GoalReward, TouchReward, WeightedSum
from rlgym_bridge.components.spec import Components
from rlgym_bridge.sim.arena import control_of, make_arena
from rlgym_bridge.sim.native_parts import provide_native_forms
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3
from rlgym_bridge.sim.vector_env import VectorEnv, without_warnings
from rlgym_bridge.state import derive
from tools.benchmarks.runner import compared

_TICK_SKIP, _TIMEOUT = 8, 30.0
_MATCHES = 128
_MODULE_MATCHES = 64
_FEW_MATCHES = 16  # where components are called match by match
_TURN = 0.25  # s of processor time


def components() -> Components:
    """Return the components of a first training run: kickoffs, goals and touches."""
    return Components(
        DefaultObs(zero_padding=None),
        RepeatAction(LookupTableAction(), _TICK_SKIP),
        reward_fn=WeightedSum([(GoalReward(), 10.0), (TouchReward(), 1.0)]),
        termination_cond=GoalCondition(),
        truncation_cond=NoTouchTimeoutCondition(_TIMEOUT),
        state_mutator=KickoffMutator(),
    )


def mixed_components() -> Components:
    """Return the same with one component of RLGym's among ours: its reward for touches."""
    return replace(components(), reward_fn=WeightedSum([(GoalReward(), 10.0), (PeerTouch(), 1.0)]))


def rlgym_components(team_size: int) -> Components:
    """Return the same of RLGym's alone."""
    return Components(
        PeerObs(zero_padding=None),
        PeerRepeat(PeerLookup(), _TICK_SKIP),
        reward_fn=CombinedReward((PeerGoalReward(), 10.0), (PeerTouch(), 1.0)),
        termination_cond=PeerGoal(),
        truncation_cond=PeerNoTouch(_TIMEOUT),
        state_mutator=MutatorSequence(FixedTeamSizeMutator(team_size, team_size), PeerKickoff()),
    )


def _step_ours(
    team_size: int, seed: int, matches: int = _MATCHES, simulator: str = ROCKETSIM2
) -> Callable[[], int]:
    """Return a function that steps all matches of our `VectorEnv` once and returns their number."""
    env = _env(team_size, seed, matches, simulator)
    rng = np.random.default_rng(seed)
    draws = cycle([rng.integers(90, size=(matches, 2 * team_size)) for _ in range(64)])

    def step() -> int:
        env.step(next(draws))
        return matches

    for _ in range(30):
        step()
    return step


@lru_cache(maxsize=1)
def _env(team_size: int, seed: int, matches: int, simulator: str) -> VectorEnv:
    """Make an environment, which takes longer than to measure it."""
    sizes = (team_size, team_size)
    env = VectorEnv(matches, components, sizes, seed=seed, thrust=False, simulator=simulator)
    env.reset()
    return env


def _step_raw(team_size: int, seed: int) -> Callable[[], int]:
    """Return the same for arenas that are given controls and stepped, and never looked at.

    They begin at kickoffs and are set back to one as often as ours are on average, by RocketSim itself.
    """
    table = [_controls(row) for row in PeerLookup.make_lookup_table()]
    made = [make_arena([0] * team_size + [1] * team_size) for _ in range(_MATCHES)]
    rng = random.Random(seed)
    draws = [[table[rng.randrange(90)] for _ in range(2 * team_size * _MATCHES)] for _ in range(64)]
    every, numbers = round(_TIMEOUT * 120 / _TICK_SKIP), count()

    def step() -> int:
        number = next(numbers)
        chosen = iter(draws[number % 64])
        for arena, cars in made:
            arena.step(1)
            for car in cars:
                car.set_controls(next(chosen))
            arena.step(_TICK_SKIP - 1)
        if number % every == every - 1:
            for arena, _ in made:
                arena.reset_kickoff(number)
        return _MATCHES

    for _ in range(30):
        step()
    return step


def _controls(row: np.ndarray) -> rsim.CarControls:
    throttle, steer, pitch, yaw, roll, jump, boost, handbrake = row.tolist()
    return rsim.CarControls(
        throttle, steer, pitch, yaw, roll, jump=jump > 0, boost=boost > 0, handbrake=handbrake > 0
    )


def _step_rlgym(team_size: int, seed: int) -> Callable[[], int]:
    """Return the same for RLGym's own environment with its own components."""
    env: RLGym[Any, Any, Any, Any, Any, Any, Any, Any] = RLGym(
        state_mutator=MutatorSequence(FixedTeamSizeMutator(team_size, team_size), PeerKickoff()),
        obs_builder=PeerObs(zero_padding=None),
        action_parser=PeerRepeat(PeerLookup(), _TICK_SKIP),
        reward_fn=CombinedReward((PeerGoalReward(), 10.0), (PeerTouch(), 1.0)),
        transition_engine=RocketSimEngine(rlbot_delay=True),
        termination_cond=PeerGoal(),
        truncation_cond=PeerNoTouch(_TIMEOUT),
    )
    random.seed(seed)
    env.reset()
    rng = np.random.default_rng(seed)
    agents = env.agents
    draws = cycle([{agent: rng.integers(90, size=1) for agent in agents} for _ in range(256)])

    def step() -> int:
        _, _, terminated, truncated = env.step(next(draws))
        if any(terminated.values()) or any(truncated.values()):
            env.reset()
        return 1

    return step


def _step_module(team_size: int, seed: int, is_held: bool) -> Callable[[], int]:
    """Return the same for RocketSim 3 in batches, whole states read; controls new in each step, or random."""
    from rlgym_bridge.sim.rocketsim3 import RocketSim3

    simulator = RocketSim3(_MODULE_MATCHES, team_size, team_size, seed=seed)
    rng = np.random.default_rng(seed)
    kickoffs = blank_state(team_size, team_size, _MODULE_MATCHES)
    KickoffMutator().apply_batch(kickoffs, rng)
    derive(kickoffs)
    shape = (64, _MODULE_MATCHES, 2 * team_size, 1)
    draws = _random_rows(rng, shape)
    if is_held:
        draws = PeerLookup.make_lookup_table()[rng.integers(90, size=shape)].astype(np.float32)
    every, numbers = round(_TIMEOUT * 120 / _TICK_SKIP), count()

    def step() -> int:
        number = next(numbers)
        if number % every == 0:
            simulator.put(range(_MODULE_MATCHES), kickoffs)
        rows = draws[number % 64]
        simulator.step(np.broadcast_to(rows, (*rows.shape[:2], _TICK_SKIP, 8)))
        return _MODULE_MATCHES

    for _ in range(30):
        step()
    return step


def _random_rows(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return random control vectors `(*shape, 8)` float32: sticks anywhere, buttons up or down."""
    rows = rng.uniform(-1, 1, (*shape, 8)).astype(np.float32)
    rows[..., 5:] = rows[..., 5:] > 0
    return rows


def _step_raw_random(team_size: int, seed: int) -> Callable[[], int]:
    """Return a function that steps RocketSim 2.2.1's arenas by controls that are made for each decision."""
    made = [make_arena([0] * team_size + [1] * team_size) for _ in range(_MODULE_MATCHES)]
    draws = _random_rows(np.random.default_rng(seed), (64, _MODULE_MATCHES, 2 * team_size))
    every, numbers = round(_TIMEOUT * 120 / _TICK_SKIP), count()

    def step() -> int:
        number = next(numbers)
        for (arena, cars), rows in zip(made, draws[number % 64].tolist(), strict=True):
            for car, row in zip(cars, rows, strict=True):
                car.set_controls(control_of(row))
            arena.step(_TICK_SKIP)
        if number % every == every - 1:
            for arena, _ in made:
                arena.reset_kickoff(number)
        return _MODULE_MATCHES

    for _ in range(30):
        step()
    return step


def module_vs(team_size: int, rounds: int, seconds: float = 2.0, is_held: bool = True) -> dict[str, Any]:
    """Run RocketSim 3 in batches and RocketSim 2.2.1 alone in turns, one process and one thread."""
    values, peers = [], []
    raw = _step_raw if is_held else _step_raw_random
    for turn in range(rounds):
        own, other = _turns((_step_module(team_size, turn, is_held), raw(team_size, turn)), seconds)
        values.append(own * _TICK_SKIP)
        peers.append(other * _TICK_SKIP)
    return compared(values, peers, "ticks per second of processor time, one thread", "RocketSim 2.2.1 alone")


def two_threads(team_size: int, rounds: int, seconds: float = 2.0) -> dict[str, Any]:
    """Run RocketSim 3 in batches on two threads and on one, in turns, by the clock."""
    from rlgym_bridge.sim.rocketsim3 import RocketSim3

    rng = np.random.default_rng(0)
    kickoffs = blank_state(team_size, team_size, _MODULE_MATCHES)
    KickoffMutator().apply_batch(kickoffs, rng)
    derive(kickoffs)
    draws = _random_rows(rng, (64, _MODULE_MATCHES, 2 * team_size, 1))
    both = [RocketSim3(_MODULE_MATCHES, team_size, team_size, threads=threads) for threads in (2, 1)]
    speeds: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for simulator, found in zip(both, speeds, strict=True):
            simulator.put(range(_MODULE_MATCHES), kickoffs)
            began, steps = time.perf_counter(), 0
            while time.perf_counter() - began < seconds:
                rows = draws[steps % 64]
                simulator.step(np.broadcast_to(rows, (*rows.shape[:2], _TICK_SKIP, 8)))
                steps += 1
            spent = time.perf_counter() - began
            found.append(steps * _MODULE_MATCHES * _TICK_SKIP / spent)
    return compared(*speeds, "ticks per second, two threads", "one thread")


def mixed_vs_rlgym(
    team_size: int, rounds: int, seconds: float = 3.0, simulator: str = ROCKETSIM2
) -> dict[str, Any]:
    """Run a `VectorEnv` with one component of RLGym's and one with no other in turns, one process."""
    sizes, values, peers = (team_size, team_size), [], []
    for turn in range(rounds):
        sides = []
        for make in (mixed_components, partial(rlgym_components, team_size)):
            with without_warnings():
                env = VectorEnv(_FEW_MATCHES, make, sizes, seed=turn, thrust=False, simulator=simulator)
            env.reset()
            sides.append(partial(_step_env, env, np.random.default_rng(turn)))
        mixed, rlgym = _turns((sides[0], sides[1]), seconds)
        values.append(mixed)
        peers.append(rlgym)
    unit = f"environment steps per second of processor time, one process, {_TICK_SKIP} ticks each"
    return compared(values, peers, unit, "the same environment with RLGym's components alone")


def training_vs_rocketsim2(team_size: int, rounds: int, seconds: float = 3.0) -> dict[str, Any]:
    """Run the matches of a collector, with all components of training's default settings, on both simulators.

    They take turns in one process.

    Args:
        team_size: Cars a team.
        rounds: How often.
        seconds: Of each, in each round.
    """
    values, peers = [], []
    for turn in range(rounds):
        own, other = (step_training(team_size, turn, simulator) for simulator in (ROCKETSIM3, ROCKETSIM2))
        value, peer = _turns((own, other), seconds)
        values.append(value)
        peers.append(peer)
    unit = f"environment steps per second of processor time, one process, {_TICK_SKIP} ticks each"
    return compared(values, peers, unit, "the same on RocketSim 2.2.1")


def training_compiled(team_size: int, rounds: int, seconds: float = 3.0) -> dict[str, Any]:
    """Run the matches of a collector with compiled components and with numpy's, in turns, in one process."""
    provide_native_forms()
    forms, values, peers = dict(FORMS), [], []

    def with_forms(step: Callable[[], int], given: dict[str, Any]) -> int:
        FORMS.clear()
        FORMS.update(given)
        return step()

    for turn in range(rounds):
        own, other = (step_training(team_size, turn, ROCKETSIM3) for _ in range(2))
        value, peer = _turns((partial(with_forms, own, forms), partial(with_forms, other, {})), seconds)
        FORMS.update(forms)
        values.append(value)
        peers.append(peer)
    unit = f"environment steps per second of processor time, one process, {_TICK_SKIP} ticks each"
    return compared(values, peers, unit, "the same with components in numpy")


def step_training(team_size: int, seed: int, simulator: str) -> Callable[[], int]:
    """Return a function that steps a collector's matches once by random actions and returns their number."""
    from rlgym_bridge.training.environment import Task
    from rlgym_bridge.training.settings import TrainingSettings

    settings = TrainingSettings(
        team_sizes=(team_size, team_size), tick_skip=_TICK_SKIP, matches=_MODULE_MATCHES, simulator=simulator
    )
    env = Task(settings).make_env()
    env.reset(seed)
    step = partial(_step_env, env, np.random.default_rng(seed))
    for _ in range(30):
        step()
    return step


def _step_env(env: VectorEnv, rng: np.random.Generator) -> int:
    """Step all matches once by random actions, and return their number."""
    env.step(rng.integers(90, size=(env.state.matches, env.cars)))
    return env.state.matches


def in_turns(
    peer: str, team_size: int, seconds: float, seed: int, simulator: str = ROCKETSIM2
) -> tuple[float, float]:
    """Return environment steps a second of ours and of a peer, which take turns in one process.

    A shared machine changes its speed within seconds, so turns are short.

    Args:
        peer: `"raw"` or `"rlgym"`.
        team_size: Cars a team.
        seconds: Of each.
        seed: Of both.
        simulator: Of ours.
    """
    ours = _step_ours(team_size, seed, simulator=simulator)
    return _turns((ours, {"raw": _step_raw, "rlgym": _step_rlgym}[peer](team_size, seed)), seconds)


def _turns(sides: tuple[Callable[[], int], Callable[[], int]], seconds: float) -> tuple[float, float]:
    """Return how many a second of processor time each of two sides does; they take turns."""
    steps, spent = [0, 0], [0.0, 0.0]
    while spent[0] < seconds:
        for side, step in enumerate(sides):
            began = time.process_time()
            while time.process_time() - began < _TURN:
                steps[side] += step()
            spent[side] += time.process_time() - began
    return steps[0] / spent[0], steps[1] / spent[1]


def env_vs(
    peer: str, team_size: int, rounds: int, seconds: float = 3.0, simulator: str = ROCKETSIM2
) -> dict[str, Any]:
    """Run ours and a peer in turns, in two processes at once; medians of all rounds."""
    from concurrent.futures import ProcessPoolExecutor

    names = {"raw": "RocketSim alone: controls and steps", "rlgym": "RLGym 2.0.1's own loop"}
    values, peers = [], []
    with ProcessPoolExecutor(2) as pool:
        for turn in range(rounds):
            jobs = [
                pool.submit(in_turns, peer, team_size, seconds, 2 * turn + i, simulator) for i in range(2)
            ]
            own, other = zip(*(job.result() for job in jobs), strict=True)
            values.append(sum(own))
            peers.append(sum(other))
    unit = f"environment steps per second of processor time, two processes, {_TICK_SKIP} ticks each"
    return compared(values, peers, unit, names[peer])
