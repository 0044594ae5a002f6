"""Processes that play matches beside each other."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context

from threadpoolctl import threadpool_limits

from rlgym_bridge.user_input.stop_signals import without_interrupts


def _use_one_thread() -> None:
    """Let matrix products of this process use one thread: on a busy machine more take ten times as long."""
    import_module("numpy")  # only what is loaded is limited
    threadpool_limits(1, user_api="blas")


@contextmanager
def open_pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Yield processes that end at once where something goes wrong, Ctrl-C included.

    Raises:
        RuntimeError: One of them was killed.
    """
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _use_one_thread)
    try:
        yield pool
    except BaseException as error:
        with (
            without_interrupts()
        ):  # Python would wait for the pool at its own end, where Ctrl-C is a traceback
            for process in list((pool._processes or {}).values()):  # there is no public way
                process.kill()
            pool.shutdown(cancel_futures=True)
        if isinstance(error, BrokenProcessPool):
            raise RuntimeError("a process that played was killed: is there too little memory?") from error
        raise
    pool.shutdown()
