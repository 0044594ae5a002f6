"""Measure what the ball to come costs an environment: `python -m tests.benchmarks.ball_to_come [CARS...]`.

Two environments with RelativeObs step 64 matches in turns, one of them with `ball_ahead`. Actions are random,
where the ball mostly rests, or those of the shipped policy, where each touch begins a new flight. A round is
the processor time of `VectorEnv.step` alone. `bench` has the cost of a packet in a match.
"""

import argparse
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge import RelativeObs, VectorEnv
from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.ball_ahead import SECONDS
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.spec import Components
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from tests.benchmarks.forecast import time_packets
from tests.benchmarks.live_path import draw_weights
from tests.benchmarks.runner import compared
from tests.support.late_match import LateMatch
from tests.support.vector_parts import components

_SHIPPED: Final = Path(__file__).parents[2] / "bot" / "policy"
_MATCHES: Final = 64
_PACKETS: Final = 2400  # 20 s with a kickoff
_SETTLED: Final = 200  # of play, before packets count


def packet_with_ball_ahead(cars: int, rounds: int) -> dict[str, Any]:
    """Time the decisions of two players with RelativeObs on the same packets, one of them with `ball_ahead`.

    The shipped policy plays the match. A round is the mean processor time of a packet that is decided on.

    Args:
        cars: In each team.
        rounds: Measured in turns; the medians are given.
    """
    match = LateMatch([load_player(_SHIPPED)] * 2 * cars, 1, team_size=cars)
    packets = [match.tick() for _ in range(_PACKETS)]
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(rounds):
        for with_it, found in times.items():
            spent, decided = time_packets(_player(cars, SECONDS if with_it else None), packets)
            found.append(float(spent[decided][_SETTLED // 8 :].mean()))
    unit, peer = "us a packet that is decided on", "the same without the ball ahead"
    return compared(times[True], times[False], unit, peer, less_is_better=True)


def _player(cars: int, ahead: tuple[float, ...] | None) -> PlayerSpec:
    """Return a player of drawn weights, whose observation may have the ball to come."""

    def policy() -> NetworkPolicy:
        size = RelativeObs(3, ball_ahead=ahead).size(cars, cars)
        return NetworkPolicy(draw_weights(size), "categorical", (90,), "argmax")

    parser = RepeatAction(LookupTableAction(), 8)
    return PlayerSpec(policy, lambda: Components(RelativeObs(3, ball_ahead=ahead), parser))


def time_round(env: VectorEnv, cars: int, shipped: bool, steps: int) -> float:
    """Return us of a step and match; the episodes are the same in every round."""
    spec, random, nanoseconds = load_player(_SHIPPED), np.random.default_rng(0), 0
    policy, builder = spec.policy(), spec.components().obs_builder
    policy.reset(range(2 * cars), 1)
    env.reset(seed=2)
    for _ in range(steps):
        actions: Any = random.integers(90, size=(_MATCHES, 2 * cars))
        if shipped:
            actions = policy.act(builder.build_batch(env.state), env.state)
        began = time.process_time_ns()
        env.step(actions)
        nanoseconds += time.process_time_ns() - began
    return nanoseconds / steps / _MATCHES / 1e3


def main() -> None:
    """Print the ratio of the speeds for each number of cars in a team, and for both kinds of actions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cars", nargs="*", type=int, default=[1, 3], help="in each team")
    parser.add_argument("--rounds", type=int, default=5, help="(default: 5)")
    parser.add_argument("--steps", type=int, default=150, help="of a round (default: 150)")
    options = parser.parse_args()
    for cars in options.cars:
        for shipped in (False, True):
            envs = [
                VectorEnv(
                    _MATCHES, lambda ahead=ahead: components(obs_builder=RelativeObs(3, ball_ahead=ahead)),
                    (cars, cars), seed=1,
                )
                for ahead in (None, SECONDS)
            ]  # fmt: skip
            rounds = [
                [time_round(env, cars, shipped, options.steps) for env in envs] for _ in range(options.rounds)
            ]
            ratios = sorted(without / with_it for without, with_it in rounds)
            without, with_it = np.median(rounds, axis=0)
            print(
                f"{cars}v{cars}, {'the shipped policy' if shipped else 'random actions'}: {without:.1f} us a "
                f"step and match, with the ball to come {with_it:.1f}: {ratios[len(ratios) // 2]:.3f} of the "
                f"speed ({ratios[0]:.3f} to {ratios[-1]:.3f})"
            )


if __name__ == "__main__":
    main()
