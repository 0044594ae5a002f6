"""Play matches in several processes at once, each with a match server of its own.

    matches -> worker: one match after another -> results, as they come

A worker ends its match and its bots when it is told to stop, and when the process that started it has gone.
"""

import logging
import multiprocessing
import queue
import signal
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar, cast

from rlgym_bridge.components.user_errors import explain_error
from rlgym_bridge.server import MatchServer
from rlgym_bridge.training.contests.kept_matches import KeptMatches, MatchKey
from rlgym_bridge.training.contests.served_match import ServedMatch, ServedResult, play_served
from rlgym_bridge.training.runs.stopping import ENDING
from rlgym_bridge.user_input.stop_signals import stopped_by_signals

_END_SECONDS: Final = 15.0  # for a worker to end its bots and leave
_LOOK_SECONDS: Final = 0.2  # between two looks whether to stop
_STOP_AGAIN: Final = 0.1  # s; a server forgets that it was stopped when it begins its match

Key = TypeVar("Key", bound=Hashable)


class MatchWorkers(Generic[Key]):
    """Processes that play matches, used as a context manager.

    Args:
        count: Of them.
    """

    def __init__(self, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._workers: list[tuple[Connection, Any]] = []
        self._stopping = False
        for number in range(count):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(theirs,), name=f"match {number}", daemon=True)
            worker.start()
            theirs.close()
            self._workers.append((ours, worker))

    def play(self, matches: Iterable[tuple[Key, ServedMatch]]) -> Iterator[tuple[Key, ServedResult]]:
        """Yield the results of matches as they end; after `stop` of none that has not ended yet.

        Args:
            matches: A key and a match each.

        Raises:
            ValueError: A match cannot be played.
            RuntimeError: A worker was killed, or something broke in it.
        """
        left = iter(matches)
        busy: dict[Connection, Key] = {}
        for connection, _ in self._workers:
            self._send_next(connection, left, busy)
        told = False
        while busy:
            if self._stopping and not told:
                told = True
                for connection in busy:
                    with suppress(OSError):
                        connection.send(None)
            for ready in cast("list[Connection]", wait(list(busy), _LOOK_SECONDS)):
                key = busy.pop(ready)
                try:
                    answer = ready.recv()
                except (EOFError, OSError) as error:
                    if self._stopping:  # Ctrl-C ended it before it could listen
                        continue
                    raise RuntimeError(
                        "a process that played was killed: is there too little memory?"
                    ) from error
                if isinstance(answer, Exception):
                    raise answer
                self._send_next(ready, left, busy)
                if not answer.stopped:
                    yield key, answer

    def _send_next(
        self, connection: Connection, left: Iterator[tuple[Key, ServedMatch]], busy: dict[Connection, Key]
    ) -> None:
        following = None if self._stopping else next(left, None)
        if following is not None:
            busy[connection] = following[0]
            connection.send(following[1])

    def stop(self) -> None:
        """End the matches that are played, and play no other; may be called from a signal handler."""
        self._stopping = True

    def __enter__(self) -> Self:
        """Return the workers."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """End the workers, with their matches and bots."""
        for connection, _ in self._workers:
            connection.close()
        for _, worker in self._workers:
            worker.join(_END_SECONDS)
            if worker.is_alive():
                worker.terminate()


class _Orders:
    """The orders to a worker: matches to play, and to stop."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._matches: queue.SimpleQueue[ServedMatch | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                match: ServedMatch | None = self._connection.recv()
                if match is None:
                    self._stopping.set()
                else:
                    self._matches.put(match)
        self._stopping.set()
        self._matches.put(None)

    def next_match(self) -> ServedMatch | None:
        """Wait for a match; None when there will be none any more."""
        return self._matches.get()

    def stop_when_told(self, server: MatchServer, over: threading.Event) -> None:
        """Stop a server's match when that is told, again and again until the match is over."""
        while not over.wait(_STOP_AGAIN):
            if self._stopping.is_set():
                server.stop()


def _work(connection: Connection) -> None:
    """Play the matches that come, in a process of its own."""
    for number in ENDING:  # of a whole terminal: the process that started this one says when to stop
        signal.signal(number, lambda *_: None)
    logging.getLogger("rlgym_bridge").setLevel(logging.INFO)
    orders = _Orders(connection)
    while (match := orders.next_match()) is not None:
        over = threading.Event()

        def begin(server: MatchServer, over: threading.Event = over) -> None:
            threading.Thread(target=orders.stop_when_told, args=(server, over), daemon=True).start()

        answer: ServedResult | Exception
        try:
            answer = play_served(match, begin)
        except ValueError as error:
            answer = ValueError(str(error))
        except (Exception, SystemExit) as error:
            answer = RuntimeError(explain_error(error))
        finally:
            over.set()
        with suppress(OSError):
            connection.send(answer)


def play_missing(
    kept: KeptMatches,
    wanted: Sequence[tuple[MatchKey, ServedMatch]],
    jobs: int,
    report: Callable[[int, int, Mapping[MatchKey, ServedResult]], None],
) -> bool:
    """Play the matches that are not kept yet, and keep each as soon as it has ended.

    Args:
        kept: Results so far; new ones are added.
        wanted: All matches.
        jobs: At once.
        report: Called after each match with the number of results, that of matches, what ended.

    Returns:
        Whether all were played; False where Ctrl-C or another program ended it.

    Raises:
        ValueError: A match cannot be played.
        RuntimeError: See `MatchWorkers.play`.
        OSError: A result cannot be written.
    """
    left = [pair for pair in wanted if pair[0] not in kept.results]
    done = len(wanted) - len(left)
    with MatchWorkers[MatchKey](min(jobs, len(left))) as workers, stopped_by_signals(workers.stop):
        for key, result in workers.play(left):
            kept.add({key: result})
            done += 1
            report(done, len(wanted), {key: result})
    return done == len(wanted)
