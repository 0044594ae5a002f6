"""Fixtures of the checks of bots."""

import pytest

from rlgym_bridge.trials import check_bot, match_scenes


@pytest.fixture(autouse=True)
def checked_bots_may_be_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give bots more time than a user's check does, where other programs hold them up."""
    monkeypatch.setattr(match_scenes, "_SLOW_MS", 40.0)
    monkeypatch.setattr(check_bot, "_SCENES_SECONDS", 600.0)
