"""Fixtures for tests of engines."""

from collections.abc import Iterator

import pytest

from tests.support.short_waits import shorten_countdown, shorten_farewell


@pytest.fixture(autouse=True, scope="module")
def waits_are_short() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        shorten_countdown(patch)
        shorten_farewell(patch)
        yield
