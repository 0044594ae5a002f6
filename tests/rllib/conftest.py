"""Fixtures for tests of RLlib."""

import inspect
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

pytest.importorskip("ray")


@pytest.fixture(autouse=True, scope="session")
def connectors_are_quick() -> Iterator[None]:
    """Let a connector find out who constructs it without reading the sources of all callers.

    `ConnectorV2.__init__` of Ray 2.60 takes the frame of its caller from `inspect.stack()`, which looks up
    the source lines of every frame: under pytest that is most of the time that an env runner takes to build.
    """
    from ray.rllib.connectors import connector_v2

    def stack() -> list[SimpleNamespace]:
        return [SimpleNamespace(frame=sys._getframe(level)) for level in (1, 2)]

    quick = SimpleNamespace(stack=stack, getargvalues=inspect.getargvalues)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connector_v2, "inspect", quick)
        yield
