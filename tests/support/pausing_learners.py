"""`python -m tests.support.pausing_learners`: learners that pause, over a match in lockstep and in real time.

Four runs at once, of each pace with an idle and with a random policy; each steps for some seconds, pauses,
and goes on. In lockstep every step has to span its ticks, in real time every gap has to be told, and the
state after a pause has to be the present one. Exit status 1 where one is not.
"""

import argparse
import itertools
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from rlgym.api import RLGym
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.conditions import (
    AnyCondition,
    GapCondition,
    GoalCondition,
    NoTouchTimeoutCondition,
)
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutators import KickoffMutator
from rlgym_bridge.components.rewards import TouchReward
from rlgym_bridge.engines.live import LiveEngine
from rlgym_bridge.game import TICK_SKIP, TICKS_PER_SECOND
from rlgym_bridge.server import MatchServer
from tests.support.rlgym_worlds import Env

PAUSES: Final = (0.5, 3.0, 12.0, 40.0)  # s
_BETWEEN: Final = 10.0  # s of steps between two pauses
_IDLE: Final = 8  # of the lookup table
_BEHIND_SECONDS: Final = 0.5  # of the present, that a state may be

Pace = Literal["realtime", "lockstep"]


@dataclass
class Run:
    """The result of one run."""

    pace: str
    policy: str
    steps: int = 0
    episodes: int = 1
    pauses: int = 0
    gaps: int = 0
    lost_ticks: int = 0
    longest: int = 0  # ticks of a step that no pause came before
    faults: list[str] = field(default_factory=list)


def _serve(pace: Pace, port: Any) -> None:
    with MatchServer(pace=pace) as server:
        port.send(server.port)
        server.serve_forever()


def _env_of(engine: LiveEngine) -> Env:
    return RLGym(
        MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator(seed=0)),
        DefaultObs(zero_padding=None),
        RepeatAction(LookupTableAction(), TICK_SKIP),
        TouchReward(),
        engine,
        GoalCondition(),
        AnyCondition(NoTouchTimeoutCondition(30.0), GapCondition()),
    )


def train(pace: Pace, policy: str, seconds: float) -> Run:
    """Step over a match of its own for some seconds, pausing now and then."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(pace, theirs), daemon=True)
    server.start()
    engine = LiveEngine((1, 1), ("127.0.0.1", ours.recv()), truncate_on_gap=True)
    run = Run(pace, policy)
    try:
        _train(engine, run, seconds)
    except Exception as error:
        run.faults.append(f"{type(error).__name__}: {error}")
    finally:
        engine.close()
        server.terminate()
        server.join(10.0)
    return run


def _train(engine: LiveEngine, run: Run, seconds: float) -> None:
    env, random, pauses = _env_of(engine), np.random.default_rng(0), itertools.cycle(PAUSES)
    env.reset()
    ends, pause_at, paused = time.monotonic() + seconds, time.monotonic() + _BETWEEN, False
    began, first = time.monotonic(), env.state.tick_count
    while time.monotonic() < ends:
        if time.monotonic() >= pause_at:
            time.sleep(next(pauses))
            run.pauses, paused, pause_at = run.pauses + 1, True, time.monotonic() + _BETWEEN
        before, lost = env.state.tick_count, engine.lost_ticks
        chosen = random.integers(90, size=2) if run.policy == "random" else (_IDLE, _IDLE)
        actions = {agent: np.array([one]) for agent, one in zip(env.agents, chosen, strict=True)}
        _, _, terminated, truncated = env.step(actions)
        spanned, goal = env.state.tick_count - before, any(terminated.values())
        run.steps += 1
        _judge(run, spanned, engine.lost_ticks - lost, goal, any(truncated.values()), paused)
        if run.pace == "realtime":
            behind = time.monotonic() - began - (env.state.tick_count - first) / TICKS_PER_SECOND
            if behind > _BEHIND_SECONDS and not goal:
                run.faults.append(f"step {run.steps} shows what was {behind:.2f} s ago")
        paused = False
        if goal or any(truncated.values()):
            env.reset()
            run.episodes += 1
            began, first = time.monotonic(), env.state.tick_count
    run.lost_ticks = engine.lost_ticks


def _judge(run: Run, spanned: int, lost: int, goal: bool, truncated: bool, paused: bool) -> None:
    if not paused:
        run.longest = max(run.longest, spanned)
    if run.pace == "lockstep":
        if spanned != TICK_SKIP and not (goal and spanned < TICK_SKIP):
            run.faults.append(f"step {run.steps} spanned {spanned} ticks")
        return
    run.gaps += spanned >= 2 * TICK_SKIP
    if not goal and spanned > TICK_SKIP and lost < spanned - TICK_SKIP:
        run.faults.append(f"step {run.steps} spanned {spanned} ticks and told of {lost} lost")
    if spanned >= 2 * TICK_SKIP and not truncated:
        run.faults.append(f"step {run.steps} spanned {spanned} ticks and did not end the episode")
    if paused and spanned < 2 * TICK_SKIP and not goal:
        run.faults.append(f"step {run.steps} spanned {spanned} ticks after a pause: it cannot be the present")


def main() -> int:
    """Run all four; 1 where one has a fault."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each run (default: %(default)s)")
    options = parser.parse_args()
    cases = [(pace, policy) for pace in ("lockstep", "realtime") for policy in ("idle", "random")]
    with ProcessPoolExecutor(len(cases), multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(train, pace, policy, 60.0 * options.minutes) for pace, policy in cases]  # type: ignore[arg-type]
        runs = [one.result() for one in futures]
    for run in runs:
        print(
            f"{run.pace:9} {run.policy:7} {run.steps} steps, {run.episodes} episodes, {run.pauses} pauses, "
            f"{run.gaps} gaps, {run.lost_ticks} lost ticks, longest other step {run.longest} ticks, "
            f"{len(run.faults)} faults {run.faults[:3] or ''}"
        )
    return 1 if any(run.faults for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
