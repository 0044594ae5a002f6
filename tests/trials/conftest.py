"""Fixtures of the checks of bots."""

import pytest

from rlgym_bridge.trials import bot_check, bot_match


@pytest.fixture(autouse=True)
def checked_bots_may_be_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give bots more time than a user's check does, where other programs hold them up."""
    monkeypatch.setattr(bot_match, "_SLOW_MS", 40.0)
    monkeypatch.setattr(bot_check, "_SCENES_SECONDS", 600.0)
