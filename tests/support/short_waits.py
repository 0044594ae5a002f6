"""Shorter and longer waits of the match server, for tests that would only wait, and for busy machines."""

from typing import Final

import pytest

from rlgym_bridge.game import Phase
from rlgym_bridge.server import bot_account
from rlgym_bridge.server.game import referee
from rlgym_bridge.server.net import clients, pace
from tests.packet_checker import phases

COUNTDOWN_TICKS: Final = 60


SOON: Final = (
    f"from rlgym_bridge.server.game import referee; referee.COUNTDOWN_TICKS = {COUNTDOWN_TICKS}; "
    "import sys; from rlgym_bridge.cli import main; sys.exit(main())"
)
"""The command line, in a Python of its own, with such countdowns."""


def shorten_countdown(patch: pytest.MonkeyPatch) -> None:
    """Let countdowns of matches in this process last half a second, for their packets' checker too."""
    patch.setattr(referee, "COUNTDOWN_TICKS", COUNTDOWN_TICKS)
    patch.setitem(phases._LENGTH, Phase.COUNTDOWN, COUNTDOWN_TICKS)


def shorten_farewell(patch: pytest.MonkeyPatch) -> None:
    """Let clients that do not close their connection after a goodbye hold nobody up."""
    patch.setattr(clients, "_FAREWELL_SECONDS", 0.2)


def shorten_answer_wait(patch: pytest.MonkeyPatch, seconds: float = 0.3) -> None:
    """Let lockstep wait for an answer for so long, for a bot's first one, too."""
    patch.setattr(pace, "ANSWER_SECONDS", seconds)
    for name in ("ANSWER_SECONDS", "FIRST_ANSWER_SECONDS"):
        patch.setattr(bot_account, name, seconds)


def lengthen_answer_wait(patch: pytest.MonkeyPatch) -> None:
    """Let lockstep wait for every answer for 10 s: bots of a busy machine may be held up for a second."""
    patch.setattr(pace, "ANSWER_SECONDS", 10.0)
    patch.setattr(bot_account, "ANSWER_SECONDS", 10.0)
