"""Measure what following a match costs a packet: `python -m tests.benchmarks.state_estimator [CARS...]`.

A simulator plays a match, and a state estimator with the same simulator follows it. Its processor time is
that of `StateEstimator.refine` alone. Before it a decoder reads a packet, as beside a bot: caches are no
fuller than there. Each tick counts with the median of all rounds.
"""

import argparse
import time
from typing import Final

import numpy as np

from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.sim.simulator import SIMULATORS
from rlgym_bridge.sim.state_estimator import StateEstimator
from rlgym_bridge.state import MatchState
from tests.parity.world import make_match
from tests.support.followed_matches import record
from tests.support.packet_streams import playing

_TICKS: Final = 1500
_ROUNDS: Final = 9


def time_ticks(name: str, cars: int) -> np.ndarray:
    """Return the processor time of each tick of a match, `(ticks,)` in us.

    Args:
        name: Of the simulator that plays and of the one that follows.
        cars: In each team.
    """
    states, shown = record(name, cars, _TICKS), MatchState(cars, cars)
    packets = playing(make_match(cars, 0), _TICKS)
    rounds = []
    for _ in range(_ROUNDS):
        estimator, times = StateEstimator(cars, cars, simulator=name), []
        decoder = Decoder(field_info(), shadow=False)
        for packet, (state, at_rest) in zip(packets, states, strict=True):
            decoder.update(packet)
            np.copyto(shown.buffer, state.buffer)
            began = time.process_time_ns()
            estimator.refine(shown, 1, at_rest)
            times.append(time.process_time_ns() - began)
        rounds.append(times)
    medians: np.ndarray = np.median(rounds, axis=0) / 1000
    return medians


def main() -> None:
    """Print the median and the mean over the ticks, for each simulator and number of cars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cars", nargs="*", type=int, default=[1, 3], help="in each team")
    for cars in parser.parse_args().cars:
        for name in SIMULATORS:
            times = time_ticks(name, cars)
            print(f"{name}, {cars}v{cars}: median {np.median(times):.1f} us, mean {times.mean():.1f} us")


if __name__ == "__main__":
    main()
