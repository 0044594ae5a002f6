"""Play kept matches in RocketSim without a server, many at once in several processes."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from typing import Any, Final

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.training.contests.kept_matches import KeptMatches, MatchKey, Progress
from rlgym_bridge.training.contests.served_match import ServedResult
from rlgym_bridge.training.contests.standings import is_swapped
from rlgym_bridge.training.play_pool import open_pool
from rlgym_bridge.training.policy_matches import play_matches
from rlgym_bridge.user_input.stop_signals import stopped_by_signals

_AT_ONCE: Final = 25  # matches of a job; seeds follow from it
_LOOK_SECONDS: Final = 0.2  # between two looks whether to stop


@dataclass(frozen=True)
class SimulatedJob:
    """Some matches of two players in RocketSim, all from one side.

    Attributes:
        keys: Names of the matches.
        players: Paths of blue's and orange's policies.
        arguments: Keyword arguments of `play_matches`.
    """

    keys: list[MatchKey]
    players: tuple[str, str]
    arguments: dict[str, Any]

    def play(self) -> dict[MatchKey, ServedResult]:
        """Play the matches, in any process."""
        found = play_matches(*self.players, len(self.keys), **self.arguments)
        cars = found.touches.shape[1] // 2
        touches = found.touches.reshape(len(self.keys), 2, cars).sum(2).tolist()
        ticks = round(found.minutes * 60 * TICKS_PER_SECOND)
        return {
            key: ServedResult(tuple(goals), tuple(its), ticks, course)
            for key, goals, its, course in zip(
                self.keys, found.goals.tolist(), touches, found.courses.tolist(), strict=True
            )
        }


def cut_keys(keys: Sequence[MatchKey], seed: int) -> Iterator[tuple[list[MatchKey], bool, int]]:
    """Divide the matches of two players into jobs.

    Yields:
        Keys of a job; whether the player that is named first plays orange; the seed of the job.
    """
    for swapped in (False, True):
        its = [key for key in keys if is_swapped(key[2]) == swapped]
        for first in range(0, len(its), _AT_ONCE):
            own = 1_000_003 * seed + 10 * first + 5 * swapped  # as `evaluate` has them
            yield its[first : first + _AT_ONCE], swapped, own


def play_jobs(kept: KeptMatches, jobs: Sequence[SimulatedJob], processes: int, show: Progress) -> None:
    """Play the jobs that are not kept yet, and keep each as soon as it has ended.

    Args:
        kept: Results so far; new ones are added.
        jobs: All jobs.
        processes: At once.
        show: Called after each job.

    Raises:
        KeyboardInterrupt: Ctrl-C or another program ended it.
        ValueError: Players cannot play each other.
        RuntimeError: A process was killed.
        OSError: A result cannot be written.
    """
    left = [job for job in jobs if not all(key in kept.results for key in job.keys)]
    count = sum(len(job.keys) for job in jobs)
    done = count - sum(len(job.keys) for job in left)
    if not left:
        return
    stopping = threading.Event()
    with stopped_by_signals(stopping.set), open_pool(min(processes, len(left))) as pool:
        waiting = {pool.submit(job.play) for job in left}
        while waiting:
            ended, waiting = wait(waiting, _LOOK_SECONDS, FIRST_COMPLETED)
            for played in [future.result() for future in ended]:
                kept.add(played)
                done += len(played)
                show(done, count, played)
            if stopping.is_set():
                raise KeyboardInterrupt  # which ends the processes
