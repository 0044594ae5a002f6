"""What holds for every test."""

import logging
import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: two workers share two cores

from tests.support.processes import guard
from tests.support.watched_matches import watching


def pytest_sessionstart() -> None:
    """Have all processes that tests start end with this one."""
    guard()


@pytest.fixture(autouse=True)
def levels_of_logs_are_kept() -> Iterator[None]:
    """Undo what a command with `-q` does to the logs of all tests after it."""
    loggers = [logging.getLogger(name) for name in ("rlgym_bridge", "training")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture(autouse=True)
def packets_are_checked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold the packets of all matches that a test plays in this process against the checker.

    A test whose packets are wrong on purpose says so: `@pytest.mark.odd_packets("why")`.
    """
    with watching() as watch:
        yield
    if request.node.get_closest_marker("odd_packets") is None:
        watch.check()
