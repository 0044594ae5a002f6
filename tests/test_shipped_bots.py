"""The shipped bot.toml files describe their bots."""

import tomllib
from pathlib import Path
from typing import Any

from rlgym_bridge.policy.files import read_files

BOT = Path(__file__).parents[1] / "bot"


def tags(name: str) -> set[str]:
    details: dict[str, Any] = tomllib.loads((BOT / name).read_text(encoding="utf-8"))["details"]
    return set(details["tags"])


def test_the_trained_bots_tags_are_its_team_sizes() -> None:
    sizes = read_files(BOT / "policy")[0].team_sizes
    expected = {"1v1" if max(pair) == 1 else "teamplay" for pair in sizes}
    assert tags("bot.toml") == expected


def test_chaser_plays_in_every_team() -> None:
    assert tags("chaser.bot.toml") == {"1v1", "teamplay"}
