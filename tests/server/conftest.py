"""A lobby without a match."""

import pytest

from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.wire import listen
from tests.support.short_waits import shorten_farewell


@pytest.fixture
def lobby(monkeypatch):
    one = Lobby(listen("127.0.0.1", 0))
    yield one
    shorten_farewell(monkeypatch)  # clients of a test that is over do not close
    one.clients.close()
