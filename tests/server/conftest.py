"""A lobby without a match, and tests that play in both simulators."""

import pytest

from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.wire import listen
from rlgym_bridge.sim import simulator
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3
from tests.support.short_waits import shorten_farewell
from tests.support.simulators import needs_native


@pytest.fixture
def lobby(monkeypatch):
    one = Lobby(listen("127.0.0.1", 0))
    yield one
    shorten_farewell(monkeypatch)  # clients of a test that is over do not close
    one.clients.close()


@pytest.fixture(params=[ROCKETSIM2, pytest.param(ROCKETSIM3, marks=needs_native)])
def played_in(request, monkeypatch):
    """Let matches play in each simulator that name none."""
    monkeypatch.setattr(simulator, "DEFAULT_SIMULATOR", request.param)
    return request.param
