"""Rate checkpoints against a fixed set of opponents while a run trains, in a process of its own.

The opponents, their order, the seed and the length of matches are the same in every run. So their ratings are
the same, and the curves of runs can be compared. All matches are kept, and none is played twice.
"""

import csv
import io
import multiprocessing
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from threadpoolctl import threadpool_limits

from rlgym_bridge.policy.files import read_files
from rlgym_bridge.policy.load_player import CHARGER, CHASER, RANDOM
from rlgym_bridge.training.contests.kept_matches import FILE, KeptMatches
from rlgym_bridge.training.contests.ratings import (
    BOOK,
    RatedCheckpoint,
    RatingBook,
    fix_anchors,
    jobs_of,
    pairs_of,
    player_of,
    rate_checkpoints,
)
from rlgym_bridge.training.contests.served_match import Entrant, read_entrants
from rlgym_bridge.training.processes import ENDING, Locked
from rlgym_bridge.training.runs.checkpoints import STATE_FILE
from rlgym_bridge.training.settings import SettingsError, TrainingSettings
from rlgym_bridge.user_input.durable_files import write_durably

FIXED: Final = (CHASER, CHARGER, RANDOM)
"""Opponents of every run, before those that the user names; the first has 1000 points."""

RULER_FILE: Final = "ruler.csv"
_SECONDS: Final = 60.0  # of game time in a match
_SEED: Final = 0
_TICK_SKIP: Final = 8  # of `FIXED`


Rating = tuple[int, dict[str, float]] | str
"""Agent steps, and `rating`, `low`, `high` and the win rate by opponent; or why a checkpoint has none."""


class Ruler:
    """Rates a run's checkpoints beside training; `modules` are those that its policies name.

    Raises SettingsError where the fixed opponents cannot play its matches, or an opponent cannot be read.
    """

    def __init__(self, settings: TrainingSettings, modules: Sequence[str]) -> None:
        equal = [blue for blue, orange in settings.sizes if blue == orange]
        if not equal or settings.tick_skip != _TICK_SKIP:
            raise SettingsError(
                f"ruler_every is {settings.ruler_every}, whose opponents play in teams of equal size and "
                f"decide every {_TICK_SKIP} ticks; expected such a run, or ruler_every = 0"
            )
        try:
            anchors = tuple(read_entrants([*FIXED, *settings.ruler], equal[0]))
        except (OSError, ValueError) as error:
            raise SettingsError(f"ruler is {list(settings.ruler)}: {error}") from error
        self._settings, self._anchors = settings, anchors
        self._played = {
            "seconds": _SECONDS, "seed": _SEED, "team_size": equal[0], "simulator": settings.simulator
        }  # fmt: skip
        self._folder = Path(settings.out) / f"ruler-{equal[0]}v{equal[0]}"
        self._modules, self._rated = tuple(modules), -1
        self._process: Any = None
        self._answer: Connection | None = None

    def offer(self, checkpoint: Path) -> None:
        """Begin to rate a checkpoint, if it is time and none is being rated."""
        number = int(checkpoint.name) // self._settings.ruler_every
        if number == self._rated or self._process is not None:
            return
        self._rated = number
        copy = self._folder / ".checkpoint"
        shutil.rmtree(copy, ignore_errors=True)
        with suppress(OSError):  # the process says what is missing; training goes on
            shutil.copytree(checkpoint, copy, ignore=shutil.ignore_patterns(STATE_FILE))
        job = (
            int(checkpoint.name), copy, self._anchors, self._folder, self._settings.ruler_matches,
            self._modules, self._played,
        )  # fmt: skip
        context = multiprocessing.get_context("spawn")
        self._answer, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(theirs, *job), name="ruler", daemon=True)
        self._process.start()
        theirs.close()

    def take(self, wait: bool = False) -> Rating | None:
        """Return the rating that has come meanwhile, or wait for one that is under way; None for none."""
        if self._answer is None or not self._answer.poll(None if wait else 0):
            return None
        try:
            found: Rating = self._answer.recv()
        except (EOFError, OSError):
            found = "the process that rated it ended"
        self.close()
        return found

    def close(self) -> None:
        """End a rating that is under way; its matches so far are kept."""
        if self._process is not None and self._answer is not None:
            self._answer.close()
            self._process.join(1.0)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
        self._process = self._answer = None


def _work(pipe: Connection, steps: int, *job: Any) -> None:
    """Rate a checkpoint in a process of its own, and send the result, or why there is none."""
    for one in ENDING:
        signal.signal(one, signal.SIG_IGN)  # the run ends it
    threadpool_limits(1, user_api="blas")
    try:
        answer: Any = steps, _rate(steps, *job)
    except Exception as error:  # whatever a policy's own components raise: training goes on
        answer = f"checkpoint {steps:,} is not rated: {error}"
    with suppress(OSError):
        pipe.send(answer)


def _rate(
    steps: int, checkpoint: Path, anchors: Sequence[Entrant], folder: Path, matches: int,
    modules: Sequence[str], played: dict[str, Any],
) -> dict[str, float]:  # fmt: skip
    """Play a checkpoint's matches, keep them in a folder, and return its rating."""
    manifest, _ = read_files(checkpoint)
    entrant = Entrant(str(steps), str(checkpoint), None, manifest.weights_sha256)
    with Locked(folder, "ruler"):
        book = RatingBook.read(folder / BOOK)
        kept = KeptMatches(folder / FILE, {"what": "ruler", **played})
        book.checkpoints[str(steps)] = player_of(entrant)
        for pair in pairs_of(book, [entrant], anchors):
            if pair[0] is pair[1]:
                continue
            for one in jobs_of(pair, matches, modules, **played):
                if not all(key in kept.results for key in one.keys):
                    kept.add(one.play())
        fix_anchors(book, anchors, kept)
        book.write(folder / BOOK)
        rows = {one.name: _row_of(one, book) for one in rate_checkpoints(book, kept.results)}
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["steps", *rows[str(steps)]])
        table.writerows([name, *(f"{value:.5g}" for value in row.values())] for name, row in rows.items())
        write_durably(folder, {RULER_FILE: text.getvalue().encode()})
        return rows[str(steps)]


def _row_of(rated: RatedCheckpoint, book: RatingBook) -> dict[str, float]:
    """Return rating, interval and win rates by the anchors' names."""
    low, high = rated.elo.interval
    row = {"rating": rated.elo.rating, "low": low, "high": high}
    for one in book.anchors:
        pair = rated.pairs.get(one.player)
        row[f"win_rate/{one.name}"] = float("nan") if pair is None else pair.win_rate
    return row
