"""Count what a thread has done: processor time, interruptions, collections, imports, log records."""

import gc
import logging
import resource
import sys
import threading
import time
from array import array
from typing import Any, NamedTuple


class ThreadSample(NamedTuple):
    """Hold the times of a thread and its process since they began.

    Attributes:
        at: When it was read, on `time.perf_counter`'s clock [s].
        own: Processor time of the thread [s].
        others: Processor time of the process's other threads [s].
        preempted: Times that the system took the processor away from the thread.
        blocked: Times that the thread gave it up itself: to sleep, or for another thread's lock.
        collecting: Time of the thread in the garbage collector [s].
        oldest: Collections of the oldest generation.
        imports: Modules that the process has imported.
        logged: Log records that it has made.
    """

    at: float
    own: float
    others: float
    preempted: int
    blocked: int
    collecting: float
    oldest: int
    imports: int
    logged: int


class ThreadWatch:
    """Counts what happens to the thread that constructs it.

    Attributes:
        imported: Modules that the process has imported so far, in order.
        samples: What `note` has added; of floats, which are no work for the garbage collector.
    """

    def __init__(self) -> None:
        self.imported: list[str] = []
        self.samples = array("d")
        self._thread = threading.get_ident()
        self._collecting = self._began = 0.0
        self._oldest = self._logged = 0
        self._make_record = logging.getLogRecordFactory()
        gc.callbacks.append(self._note_collection)
        logging.setLogRecordFactory(self._note_record)
        sys.addaudithook(self._note_event)

    def read(self) -> ThreadSample:
        """Return what has happened so far; to be called by the thread itself."""
        own = time.thread_time()
        used = resource.getrusage(resource.RUSAGE_THREAD)
        return ThreadSample(
            time.perf_counter(), own, time.process_time() - own, used.ru_nivcsw, used.ru_nvcsw,
            self._collecting, self._oldest, len(self.imported), self._logged,
        )  # fmt: skip

    def note(self, *samples: ThreadSample) -> None:
        """Keep samples."""
        for sample in samples:
            self.samples.extend(sample)

    def _note_collection(self, phase: str, info: dict[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self._collecting += time.perf_counter() - self._began
            self._oldest += info["generation"] == 2

    def _note_record(self, *values: Any, **named: Any) -> logging.LogRecord:
        self._logged += 1
        return self._make_record(*values, **named)

    def _note_event(self, event: str, values: tuple[object, ...]) -> None:
        if event == "import":
            self.imported.append(str(values[0]))
