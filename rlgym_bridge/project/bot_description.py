"""Describe a bot as RLBot's window and its core read it: names, agent id, tags, `bot.toml`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rlgym_bridge.user_input.arguments import shorten_text
from rlgym_bridge.user_input.text_files import toml_line

SIZE_TAGS: Final = ("1v1", "teamplay")
"""Tags that say which team sizes a bot plays; all others are about modes and style [RLBot wiki]."""

_MOST_LETTERS: Final = 32  # of a name; the game cuts longer ones [RLBot wiki]


class ProjectError(ValueError):
    """A project or a bot's folder cannot be made as asked."""


def bot_toml(settings: Mapping[str, Any], details: Mapping[str, Any]) -> str:
    """Return the text of a `bot.toml`: settings for RLBot's core, details for its window."""
    lines = ["#:schema https://rlbot.org/schemas/agent.json", "", "[settings]"]
    lines += [toml_line(key, value) for key, value in settings.items()]
    lines += ["", "[details]"]
    lines += [toml_line(key, value) for key, value in details.items()]
    return "\n".join(lines) + "\n"


def size_tags(team_sizes: Sequence[tuple[int, int]]) -> list[str]:
    """Return the tags that are true of a bot that plays these matches, (blue, orange) each.

    `teamplay` needs a match of equal teams of two or more: that is where people look for the tag.
    """
    equal = {blue for blue, orange in team_sizes if blue == orange}
    are_true = (1 in equal, max(equal, default=0) > 1)
    return [tag for tag, is_true in zip(SIZE_TAGS, are_true, strict=True) if is_true]


def show_team_sizes(team_sizes: Sequence[tuple[int, int]]) -> str:
    """Return team sizes in words: `1v1, 2v2`."""
    return ", ".join(f"{blue}v{orange}" for blue, orange in team_sizes)


def check_name(name: str, what: str) -> None:
    """Check that RLBot and the game can show a name; else raise a ProjectError."""
    if name == ".." or not name.strip() or not name.isprintable() or len(name) > _MOST_LETTERS:
        raise ProjectError(
            f"{what} is {shorten_text(name)!r}, expected 1 to {_MOST_LETTERS} characters that can be shown"
        )


def agent_id_of(author: str, name: str) -> str:
    """Return the agent id of a bot, `author/name`, of letters, digits and dashes."""
    return f"{identifier(author) or 'me'}/{identifier(name) or 'bot'}"


def identifier(name: str) -> str:
    """Return a name's letters a to z, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
