"""Measure which of two policies is better, with a confidence interval: `rlgym-bridge evaluate`.

Half of the matches are played from each side. A win is more goals, a draw half a win.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rlgym_bridge.server.game.rules import LONGEST_SECONDS
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR
from rlgym_bridge.training.elo import CONFIDENCE_Z
from rlgym_bridge.training.policy_matches import MatchTotals, check_players, play_matches, team_size_of
from rlgym_bridge.training.processes import open_pool

MATCHES: Final = 200
"""Matches when nothing is said."""

_LEAST_SECONDS = 1.0  # shorter ones end before a step
_MOST_MATCHES = 1_000_000
_AT_ONCE = 25  # matches of a job


def share_interval(share: float, count: int) -> tuple[float, float]:
    """Return the bounds of a share (Wilson's interval).

    Args:
        share: What was found, 0..1.
        count: In how many trials, 1 or more.
    """
    z = CONFIDENCE_Z
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def median_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return the median of some values and its bounds: two of the values, by their ranks.

    No shape of the distribution is assumed. With fewer than six values, the bounds are the extremes.

    Args:
        values: `(n,)`, one at least; infinity where a time was not reached.
    """
    ordered, count = np.sort(values), len(values)
    reach = CONFIDENCE_Z * math.sqrt(count) / 2
    low, high = math.floor(count / 2 - reach), math.ceil(count / 2 + reach)
    middle = ordered[[(count - 1) // 2, count // 2]]
    median = middle[0] if middle[0] == middle[1] else middle.mean()
    return float(median), float(ordered[max(low, 1) - 1]), float(ordered[min(high + 1, count) - 1])


@dataclass(frozen=True)
class Evaluation:
    """Some matches of A against B.

    Attributes:
        goals: `(matches, 2)` int64, of A and B.
        touches: `(matches, 2)` int64, of A's cars and B's.
        minutes: `(matches,)` of play.
        team_size: Cars a team.
        delays: Ticks after which the actions of A and of B acted.
    """

    goals: np.ndarray
    touches: np.ndarray
    minutes: np.ndarray
    team_size: int = 1
    delays: tuple[int, int] = (1, 1)

    @property
    def matches(self) -> int:
        """Number of matches."""
        return len(self.goals)

    @property
    def leads(self) -> np.ndarray:
        """`(matches,)` goals of A less those of B."""
        leads: np.ndarray = self.goals[:, 0] - self.goals[:, 1]
        return leads

    @property
    def results(self) -> tuple[int, int, int]:
        """Matches that A won, drew and lost."""
        return int((self.leads > 0).sum()), int((self.leads == 0).sum()), int((self.leads < 0).sum())

    @property
    def touches_per_minute(self) -> tuple[float, float]:
        """Of a car of A and of B."""
        a, b = (self.touches.sum(0) / (self.minutes.sum() * self.team_size)).tolist()
        return a, b

    @property
    def win_rate(self) -> float:
        """Wins and half of the draws, of all matches."""
        won, drawn, _ = self.results
        return (won + drawn / 2) / self.matches

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the win rate, 95 % confidence (Wilson's interval; too wide where matches are drawn)."""
        return share_interval(self.win_rate, self.matches)


def evaluate(
    a: str,
    b: str,
    matches: int = MATCHES,
    *,
    seconds: float = 60.0,
    seed: int = 0,
    team_size: int | None = None,
    selection: str | None = None,
    action_delay: Sequence[int] | None = None,
    allow_modules: Sequence[str] = (),
    processes: int = 2,
    simulator: str = DEFAULT_SIMULATOR,
) -> Evaluation:
    """Let A and B play, half of the matches from each side.

    Args:
        a: A policy folder (a checkpoint is one), `"chaser"`, `"charger"` or `"random"`.
        b: The other policy, in the same form.
        matches: How many, an even number.
        seconds: Game time of each.
        seed: Of everything.
        team_size: Cars a team; None for what A was trained for.
        selection: `"sample"` or `"argmax"` in place of the folders' own.
        action_delay: Ticks after which the actions of A and of B act, in place of the folders' own.
        allow_modules: Modules that the folders may name.
        processes: At once.
        simulator: What plays, one of `simulator.SIMULATORS`.

    Raises:
        ValueError: The number of matches is odd, below 2 or above 1,000,000; else as `play_matches`.
    """
    check_numbers(matches, seconds, seed=(seed, 0), processes=(processes, 1))
    team_size = team_size_of(a, b) if team_size is None else team_size
    check_numbers(matches, seconds, team_size=(team_size, 1))
    check_players((a, b), team_size, action_delay)
    jobs = _jobs(matches, seed)
    goals, touches, minutes = [], [], []
    with open_pool(processes) as pool:
        futures = [
            pool.submit(
                play_matches, *((b, a) if swapped else (a, b)), size, seconds=seconds, seed=one,
                team_size=team_size, selection=selection,
                action_delay=action_delay[::-1] if swapped and action_delay else action_delay,
                allow_modules=allow_modules, simulator=simulator,
            )
            for swapped, size, one in jobs
        ]  # fmt: skip
        for (swapped, size, _), future in zip(jobs, futures, strict=True):
            scores: MatchTotals = future.result()
            order = [1, 0] if swapped else [0, 1]
            delays = scores.delays[order[0]], scores.delays[order[1]]
            goals.append(scores.goals[:, order])
            touches.append(scores.touches.reshape(size, 2, team_size).sum(2)[:, order])
            minutes.append(np.full(size, scores.minutes))
    every = [np.concatenate(found) for found in (goals, touches, minutes)]
    return Evaluation(every[0], every[1], every[2], team_size, delays)


def check_numbers(matches: int, seconds: float, **least: tuple[int, int]) -> None:
    """Check the numbers by which matches are played; `least` has value and lower bound by name.

    Raises:
        ValueError: One is out of range.
    """
    if matches < 2 or matches % 2:
        raise ValueError(
            f"matches is {matches}, expected an even number, 2 or more: half are played from each side"
        )
    if matches > _MOST_MATCHES:
        raise ValueError(f"matches is {matches}, expected {_MOST_MATCHES:,} at most")
    if not _LEAST_SECONDS <= seconds <= LONGEST_SECONDS:
        raise ValueError(
            f"seconds is {seconds:g}, expected {_LEAST_SECONDS:g} to {LONGEST_SECONDS:g} (a day)"
        )
    for name, (value, bound) in least.items():
        if value < bound:
            raise ValueError(f"{name} is {value}, expected {bound} or more")


def _jobs(matches: int, seed: int) -> list[tuple[bool, int, int]]:
    """Return jobs of some matches each: whether A is orange, number of matches, seed."""
    half = matches // 2
    jobs: list[tuple[bool, int, int]] = []
    for swapped in (False, True):
        left, number = half, 0
        while left:
            size = min(left, _AT_ONCE)  # not by the processes: seeds follow from it
            jobs.append((swapped, size, 1_000_003 * seed + 10 * number + 5 * swapped))
            left, number = left - size, number + 1
    return jobs


if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("evaluate")
