"""Configuration files with their line numbers, for errors that say where."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.server_errors import ConfigError
from rlgym_bridge.user_input.arguments import nearest_key, shorten_text
from rlgym_bridge.user_input.text_files import explain_unreadable, read_text

_log = client_log(__name__)

_MOST_CHARACTERS: Final = 1 << 16
"""Longest file; those of matches and bots have a twentieth of this."""

_MOST_UNKNOWN: Final = 20  # keys of a section that are named: each is looked for in the whole file
_HEADER: Final = re.compile(r"\s*+\[++([^\]]++)\]")


class Source:
    """The text of a configuration file.

    Attributes:
        path: Where it lies.
        text: What it says.
    """

    def __init__(self, path: Path) -> None:
        """Read a file; a ConfigError says that it cannot be read, is too long, or is no UTF-8 text."""
        self.path = path
        try:
            self.text = read_text(path)
        except FileNotFoundError:
            raise ConfigError(f"{path}: no such file; expected a match, bot or loadout file") from None
        except (OSError, ValueError) as error:
            raise ConfigError(explain_unreadable(error)) from error
        if len(self.text) > _MOST_CHARACTERS:
            raise ConfigError(
                f"{path} has {len(self.text):,} characters, expected a match, bot or loadout file of "
                f"{_MOST_CHARACTERS:,} at most"
            )

    def line(self, section: str, key: str, occurrence: int = 0) -> int | None:
        """Return the number of a key's line, from 1, in one of several sections of a name."""
        here, seen = False, -1
        for number, line in enumerate(self.text.splitlines(), 1):
            if header := _HEADER.match(line):
                is_named = header.group(1).strip() == section
                seen += is_named
                here = is_named and seen == occurrence
            elif here and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=:]", line, re.IGNORECASE):
                return number
        return None

    def error(self, section: str, key: str, problem: str, occurrence: int = 0) -> ConfigError:
        """Make the error for a key that is wrong or missing."""
        return ConfigError(f"{self._place(section, key, occurrence)}: [{section}] {key} {problem}")

    def warn_unknown(
        self, section: str, keys: Iterable[str], known: Iterable[str], occurrence: int = 0
    ) -> None:
        """Warn of keys that nobody reads, most likely misspelt."""
        known = list(known)
        unknown = [key for key in keys if key not in known]
        for key in unknown[:_MOST_UNKNOWN]:
            near = nearest_key(key, known, 0.6)
            hint = f"; did you mean {near}?" if near else ""
            where, shown = self._place(section, key, occurrence), shorten_text(key)
            _log.warning("%s: [%s] %s is unknown, ignored%s", where, section, shown, hint)
        if len(unknown) > _MOST_UNKNOWN:
            more = len(unknown) - _MOST_UNKNOWN
            _log.warning("%s: [%s] %d more keys are unknown, ignored", self.path, section, more)

    def _place(self, section: str, key: str, occurrence: int) -> str:
        """Return the file and, where the key has a line of its own, its number."""
        line = self.line(section, key, occurrence)
        return f"{self.path}" if line is None else f"{self.path}:{line}"
