"""Fixtures for tests of RLlib."""

from collections.abc import Iterator

import pytest

pytest.importorskip("ray")

from tests.support.quick_connectors import quicken_connectors


@pytest.fixture(autouse=True, scope="session")
def connectors_are_quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        quicken_connectors(patch)
        yield
