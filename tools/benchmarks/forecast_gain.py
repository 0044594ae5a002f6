"""Measure what a forecast wins at some latencies: `python -m tools.benchmarks.forecast_gain [--matches N]`.

A policy plays in RocketSim 3 by itself, as `rlgym-bridge evaluate` lets it: far faster than over a server.
Actions act as late as over a connection with that latency: never before the action delay that a policy was
trained with. A side that looks ahead decides on copies of the matches, stepped on by its inputs on their way
while the others hold their last ones, as `live.forecaster` does with the state estimator.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.mutators import KickoffMutator, blank_state
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.game import TICKS_PER_SECOND, Phase
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.sim.simulator import ROCKETSIM3, EventKind, Simulator, make_simulator
from rlgym_bridge.sim.touches import TouchCounter
from rlgym_bridge.state import MatchState, derive
from rlgym_bridge.training.evaluate import make_side, share_interval

_SHIPPED: Final = Path(__file__).parents[2] / "bot" / "policy"
_LATENCIES: Final = (0, 2, 4, 8, 12, 16)
_AT_ONCE: Final = 50


class LateSide:
    """One team of all matches, whose inputs act late.

    Args:
        spec: The player.
        seats: Its cars, by their place in the state.
        latency: Ticks by which inputs act late.
        looks_ahead: Whether it decides on a forecast.
        matches: How many there are.
        seed: Of its actions.

    Attributes:
        delay: Ticks after which its actions act.
    """

    def __init__(
        self, spec: PlayerSpec, seats: list[int], latency: int, looks_ahead: bool, matches: int, seed: int
    ) -> None:
        trained = spec.timing.action_delay
        self.delay = max(trained, latency)
        self._ahead = self.delay - trained if looks_ahead else 0
        self._side, self._seats = make_side(spec, seats, seed, matches), seats
        self._on_their_way = np.zeros((matches, len(seats), self.delay, 8), np.float32)

    def begin(self, state: MatchState, matches: np.ndarray) -> None:
        """Begin at a kickoff in some matches, `(n,)` int."""
        self._side.begin(state, matches.tolist())
        self._on_their_way[matches] = 0

    def rows(self, simulator: Simulator) -> np.ndarray:
        """Return control vectors `(matches, seats, ticks, 8)`, which act after `delay`."""
        state = simulator.state
        if self._ahead:
            controls = state.car_controls[:, :, None].repeat(self._ahead, 2)
            controls[:, self._seats] = self._on_their_way[:, :, : self._ahead]
            ahead = state.copy()
            simulator.forecast(range(state.matches), controls, ahead)
            ahead.car_ball_touches[:], ahead.goal_scored[:] = state.car_ball_touches, state.goal_scored
            state = ahead
        rows = self._side.rows(state)
        every = np.concatenate([self._on_their_way, rows], 2)
        self._on_their_way = every[:, :, rows.shape[2] :]
        return rows


@dataclass
class Totals:
    """Goals, touches and shots of the two sides, `(matches, 2)` int each."""

    goals: np.ndarray
    touches: np.ndarray
    shots: np.ndarray
    minutes: float = 0.0
    more: dict[str, Any] = field(default_factory=dict)


def play(specs: list[PlayerSpec], latencies: list[int], ahead: list[bool], matches: int, seed: int,
         seconds: float) -> Totals:  # fmt: skip
    """Play some 1v1 matches at once: the first player is blue."""
    arenas = make_simulator(ROCKETSIM3, matches, 1, 1, seed=seed)
    sides = [
        LateSide(spec, [seat], latencies[seat], ahead[seat], matches, seed + seat)
        for seat, spec in enumerate(specs)
    ]
    random, tick, end = np.random.default_rng((seed, 2)), 0, round(seconds * TICKS_PER_SECOND)
    totals = Totals(*(np.zeros((matches, 2), np.int64) for _ in range(3)))
    counter, delays = TouchCounter(matches, 2), np.tile([side.delay for side in sides], (matches, 1))
    _kick_off(arenas, sides, np.arange(matches), random)
    while tick < end:
        parts = [side.rows(arenas) for side in sides]
        arenas.step(np.concatenate(parts, 1), delays)
        tick += parts[0].shape[2]
        state, events = arenas.state, arenas.events()
        totals.touches += counter.new(state.car_ball_touches > 0, parts[0].shape[2])
        shots = events[events["kind"] == EventKind.SHOT]
        np.add.at(totals.shots, (shots["match"], shots["car"]), 1)
        if len(scored := np.flatnonzero(state.goal_scored)):
            totals.goals[scored, (state.ball_position[scored, 1] < 0).astype(int)] += 1
            _kick_off(arenas, sides, scored, random)
    totals.minutes = tick / TICKS_PER_SECOND / 60
    return totals


def _kick_off(
    arenas: Simulator, sides: list[LateSide], matches: np.ndarray, random: np.random.Generator
) -> None:
    state = blank_state(1, 1, len(matches))
    KickoffMutator().apply_batch(state, random)
    derive(state)
    state.phase[:] = Phase.KICKOFF
    arenas.put(matches.tolist(), state)
    for side in sides:
        side.begin(arenas.state, matches)


def compare(
    names: tuple[str, str], latencies: tuple[int, int], ahead: tuple[bool, bool], matches: int,
    seconds: float, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Let A and B play, half of the matches from each side; return A's win rate and more."""
    specs = [load_player(name) for name in names]
    goals, touches, shots, minutes = [], [], [], 0.0
    for swapped in (False, True):
        order = [1, 0] if swapped else [0, 1]
        for part, size in enumerate(_parts(matches // 2)):
            found = play(
                [specs[one] for one in order], [latencies[one] for one in order],
                [ahead[one] for one in order], size, 1_000_003 * seed + 10 * part + 5 * swapped, seconds,
            )  # fmt: skip
            goals.append(found.goals[:, order])
            touches.append(found.touches[:, order])
            shots.append(found.shots[:, order])
            minutes += found.minutes * size
    leads = np.concatenate(goals) @ (1, -1)
    rate = float((leads > 0).mean() + (leads == 0).mean() / 2)
    of_both = {
        name: np.concatenate(counts).sum(0).tolist()
        for name, counts in (("goals", goals), ("touches", touches), ("shots", shots))
    }
    results = [int(count) for count in ((leads > 0).sum(), (leads == 0).sum(), (leads < 0).sum())]
    low, high = share_interval(rate, len(leads))
    return {"matches": len(leads), "won_drawn_lost": results, "win_rate": rate, "interval": [low, high],
            "minutes": minutes, **of_both}  # fmt: skip


def _parts(matches: int) -> Iterator[int]:
    for begun in range(0, matches, _AT_ONCE):
        yield min(_AT_ONCE, matches - begun)


def main() -> None:
    """Print a row for each latency and opponent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default=str(_SHIPPED), help="policy folder (default: the shipped one)")
    parser.add_argument("--matches", type=int, default=200, help="of each row, an even number (default: 200)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each match (default: 60)")
    parser.add_argument("--latency", type=int, nargs="+", default=_LATENCIES, help="ticks")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    itself = options.policy
    rows = []
    print("| latency | A against B | won, drawn, lost | win rate of A | goals | touches a minute | shots |")
    print("|---|---|---|---|---|---|---|")
    for latency in options.latency:
        for title, opponent, theirs, ahead in (
            ("forecast against none", itself, latency, (True, False)),
            ("none against Chaser", "chaser", latency, (False, False)),
            ("forecast against Chaser", "chaser", latency, (True, False)),
            ("none against Chaser without latency", "chaser", 0, (False, False)),
            ("forecast against Chaser without latency", "chaser", 0, (True, False)),
        ):
            found = compare(
                (itself, opponent), (latency, theirs), ahead, options.matches, options.seconds, options.seed
            )
            rows.append({"latency": latency, "title": title, **found})
            low, high = found["interval"]
            touches = " : ".join(f"{count / found['minutes']:.1f}" for count in found["touches"])
            print(
                f"| {latency} | {title} | {', '.join(map(str, found['won_drawn_lost']))} | "
                f"{found['win_rate']:.1%} ({low:.1%} to {high:.1%}) | "
                f"{found['goals'][0]} : {found['goals'][1]} | {touches} | "
                f"{found['shots'][0]} : {found['shots'][1]} |",
                flush=True,
            )
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
