"""A lobby without a match."""

import pytest

from rlgym_bridge.server.lobby import Lobby
from rlgym_bridge.server.wire import listen


@pytest.fixture
def lobby():
    one = Lobby(listen("127.0.0.1", 0))
    yield one
    one.clients.close()
