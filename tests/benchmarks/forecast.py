"""Measure what a forecast costs a packet: `python -m tests.benchmarks.forecast [CARS...]`.

The shipped policy plays a match whose inputs act late, and measures the latency. Its packets are then shown
to players with and without a forecast, in turns. A packet counts with the median over all rounds of its
processor time.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from rlbot import flat

from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.policy.load_player import load_player
from tests.support.late_match import LateMatch
from tests.support.players_by_hand import player_of

_SHIPPED: Final = Path(__file__).parents[2] / "bot" / "policy"
_TICKS: Final = 1200  # of play
_COUNTDOWN: Final = 480


def time_packets(spec: PlayerSpec, packets: list[flat.GamePacket]) -> tuple[np.ndarray, np.ndarray]:
    """Return the processor time of each packet, `(packets,)` in us, and whether it was decided on."""
    player = player_of(spec, [packets[0].players[0].player_id], seed=0)
    player.decoder.prepare(len(packets[0].players) // 2, len(packets[0].players) // 2)
    times, decided = [], []
    for packet in packets:
        before, began = player.decisions, time.process_time_ns()
        if not player.foresee(packet):
            player.see(packet)
            player.inputs()
        else:
            player.inputs()
            player.see(packet)
        times.append(time.process_time_ns() - began)
        decided.append(player.decisions > before)
    return np.array(times) / 1e3, np.array(decided)


def measure(cars: int, ticks: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Return us of a packet in the mean, and of one that is decided on, without and with a forecast."""
    shipped = load_player(_SHIPPED)
    specs = {"off": shipped, "on": replace(shipped, forecast="auto")}
    match = LateMatch([specs["on"]] * 2 * cars, shipped.timing.action_delay + ticks, team_size=cars)
    packets = [match.tick() for _ in range(_COUNTDOWN + _TICKS)]
    found: dict[str, list[np.ndarray]] = {name: [] for name in specs}
    for _ in range(rounds):
        for name, spec in specs.items():
            times, decided = time_packets(spec, packets)
            found[name].append(times)
    medians = {name: np.median(times, axis=0)[_COUNTDOWN + 200 :] for name, times in found.items()}
    late = decided[_COUNTDOWN + 200 :]
    return {name: (float(times.mean()), float(times[late].mean())) for name, times in medians.items()}


def main() -> None:
    """Print the costs for each number of cars in a team."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cars", nargs="*", type=int, default=[1, 3], help="in each team")
    parser.add_argument("--ticks", type=int, default=8, help="to look ahead over (default: 8)")
    parser.add_argument("--rounds", type=int, default=7, help="(default: 7)")
    options = parser.parse_args()
    for cars in options.cars:
        found = measure(cars, options.ticks, options.rounds)
        (every, decided), (more, decided_more) = found["off"], found["on"]
        print(
            f"{cars}v{cars}, {options.ticks} ticks: a packet {every:.1f} us, with forecast {more:.1f} "
            f"({more - every:+.1f}); one that is decided on {decided:.1f}, with forecast {decided_more:.1f} "
            f"({decided_more - decided:+.1f})"
        )


if __name__ == "__main__":
    main()
