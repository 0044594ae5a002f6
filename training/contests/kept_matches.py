"""Play matches and keep each result as a line of a file, so that an interrupted command goes on with them.

{"settings": {...}}                                                    the first line
{"match": ["Bridge", "Chaser", 3], "goals": [2, 0], ...}               every other
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.server import ConfigError
from rlgym_bridge.training.evaluate import Evaluation, play_matches
from rlgym_bridge.training.processes import open_pool
from rlgym_bridge.user_input.arguments import show_value
from rlgym_bridge.user_input.durable_files import write_durably
from rlgym_bridge.user_input.stop_signals import stopped_by_signals
from rlgym_bridge.user_input.text_files import parse_json, read_text

MatchKey = tuple[str, str, int]
"""Two names (of entries; of a cause and its opponent), and the number of their match."""


@dataclass(frozen=True)
class ServedResult:
    """The result of a match."""

    goals: tuple[int, int] = (0, 0)  # of blue and of orange
    touches: tuple[int, int] = (0, 0)  # of all cars of blue and of orange
    ticks: int = 0  # of the match; 0 where it did not begin
    course: float = 0.0  # some number that is equal where matches went alike
    forfeits: tuple[str, str] = ("", "")  # why blue and why orange forfeit; empty for a team that does not
    remarks: tuple[str, ...] = ()  # what went wrong with bots that do not forfeit
    stopped: bool = False  # it was ended before its time, and counts for nothing


@dataclass(frozen=True)
class LeagueMatch:
    """A match as seen by the entry that is named first."""

    names: tuple[str, str]  # the two entries
    goals: tuple[int, int]  # of the first and of the second
    touches: tuple[int, int]  # of the first and of the second
    lead: int  # above 0 where the first won, below 0 where it lost; a forfeit counts, goals do not then
    ticks: int  # see `ServedResult`
    course: float  # see `ServedResult`
    forfeits: tuple[str, str]  # why the first and why the second forfeit; empty for one that does not


def is_swapped(number: int) -> bool:
    """Return whether the entry that is named first plays orange in a match of this number."""
    return number % 2 == 1


def seen_by_first(key: MatchKey, result: ServedResult) -> LeagueMatch:
    """Return a match from the view of the entry that its key names first."""
    goals, touches, forfeits = result.goals, result.touches, result.forfeits
    if is_swapped(key[2]):
        goals, touches, forfeits = goals[::-1], touches[::-1], forfeits[::-1]
    lead = goals[0] - goals[1]
    if any(forfeits):
        lead = bool(forfeits[1]) - bool(forfeits[0])
    return LeagueMatch((key[0], key[1]), goals, touches, lead, result.ticks, result.course, forfeits)


def evaluation_of(matches: Sequence[LeagueMatch], first: str) -> Evaluation | None:
    """Return matches as an evaluation of `first`, one of the two entries; None where there are none.

    A forfeit counts as one goal for the other.
    """
    if not matches:
        return None
    leads = np.array([one.lead if one.names[0] == first else -one.lead for one in matches], np.int64)
    goals = np.array(
        [one.goals if one.names[0] == first else one.goals[::-1] for one in matches], np.int64
    ).reshape(-1, 2)
    forfeited = np.array([any(one.forfeits) for one in matches])
    goals[forfeited] = np.stack([leads > 0, leads < 0], 1)[forfeited]
    touches = np.array([one.touches if one.names[0] == first else one.touches[::-1] for one in matches])
    minutes = np.array([one.ticks for one in matches]) / TICKS_PER_SECOND / 60
    return Evaluation(goals, touches, minutes, different=count_different(matches))


def count_different(matches: Iterable[LeagueMatch]) -> int:
    """Count matches that are no repetition of another one."""
    return len({(one.goals, one.touches, one.ticks, one.course) for one in matches})


FILE: Final = "matches.jsonl"

_MOST_LETTERS: Final = 1 << 28  # of the file: a forfeit quotes up to 8 KiB of a log

Progress = Callable[[int, int, Mapping[MatchKey, ServedResult]], None]
"""Called after matches with the number of results, that of matches, and what has just ended."""


class KeptMatches:
    """Results on disk, in a file `path`, which need not be there; `settings` of the matches are as in JSON.

    Every new one is written at once; whoever reads the file sees whole lines. Raises ConfigError where the
    file has matches with other settings, or is none of ours.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.results: dict[MatchKey, ServedResult] = {}
        self.path, self.settings = path, settings
        self._lines: list[str] = [json.dumps({"settings": settings})]
        if path.exists():
            self._read()
        self._write()

    def _read(self) -> None:
        lines = read_text(self.path, _MOST_LETTERS).splitlines()
        for number, line in enumerate(lines, 1):
            try:
                record = parse_json(line)
                if number == 1:
                    kept = record["settings"]
                else:
                    (one, other, match), result = record.pop("match"), msgspec.convert(record, ServedResult)
                    self.results[(str(one), str(other), int(match))] = result
            except (ArithmeticError, ValueError, TypeError, KeyError, AttributeError) as error:
                raise ConfigError(
                    f"{self.path}, line {number}, is no result of a match; remove it, or take another --out"
                ) from error
        if self.results:  # a command that was refused before its first match leaves settings alone
            self._check(kept, json.loads(self._lines[0])["settings"])
            self._lines = lines

    def _check(self, kept: Any, settings: dict[str, Any]) -> None:
        """Compare the settings of the file with those of this command."""
        if not isinstance(kept, dict):
            kept = {}
        differing = [
            f"{name} {_differ(kept.get(name), settings.get(name))}"
            for name in dict.fromkeys([*settings, *kept])
            if kept.get(name) != settings.get(name)
        ]
        if differing:
            raise ConfigError(
                f"{self.path} has other matches: {'; '.join(differing)}. Repeat the command as it was, or "
                "take another --out"
            )

    def add(self, results: Mapping[MatchKey, ServedResult]) -> None:
        """Keep results; one of the same match is replaced when the file is read again."""
        self.results |= results
        self._lines += [json.dumps({"match": key, **asdict(result)}) for key, result in results.items()]
        self._write()

    def _write(self) -> None:
        """Put the whole file in place at once."""
        text = "".join(f"{line}\n" for line in self._lines)
        write_durably(self.path.parent, {self.path.name: text.encode()})


def _differ(kept: Any, given: Any) -> str:
    """Return in words how a setting differs; of lists the first part that does."""
    if isinstance(kept, list) and isinstance(given, list):
        if len(kept) != len(given):
            return f"are {len(kept)} there and {len(given)} here"
        place = next(i for i, pair in enumerate(zip(kept, given, strict=True)) if pair[0] != pair[1])
        return f"{place + 1} {_differ(kept[place], given[place])}"
    if isinstance(kept, dict) and isinstance(given, dict):
        name = next(name for name in [*given, *kept] if kept.get(name) != given.get(name))
        return f"has {name} {show_value(kept.get(name))} there and {show_value(given.get(name))} here"
    return f"is {show_value(kept)} there and {show_value(given)} here"


_AT_ONCE: Final = 25  # matches of a job; seeds follow from it
_LOOK_SECONDS: Final = 0.2  # between two looks whether to stop


@dataclass(frozen=True)
class SimulatedJob:
    """Some matches of two policies in RocketSim, all from one side."""

    keys: list[MatchKey]  # names of the matches
    players: tuple[str, str]  # paths of blue's and orange's policies
    arguments: dict[str, Any]  # keyword arguments of `play_matches`

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
    """Yield jobs of two players: keys, whether the player that is named first plays orange, and a seed."""
    for swapped in (False, True):
        its = [key for key in keys if is_swapped(key[2]) == swapped]
        for first in range(0, len(its), _AT_ONCE):
            own = 1_000_003 * seed + 10 * first + 5 * swapped  # as `evaluate` has them
            yield its[first : first + _AT_ONCE], swapped, own


def play_jobs(kept: KeptMatches, jobs: Sequence[SimulatedJob], processes: int, show: Progress) -> None:
    """Play the jobs that are not kept yet in several processes, and keep each as soon as it has ended."""
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
