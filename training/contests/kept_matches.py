"""Keep the results of matches in a file, one line each, so that an interrupted command goes on with them.

{"settings": {...}}                                                    the first line
{"match": ["Bridge", "Chaser", 3], "goals": [2, 0], ...}               every other
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec

from rlgym_bridge.server import ConfigError
from rlgym_bridge.sim.simulator import ROCKETSIM2
from rlgym_bridge.training.contests.served_match import ServedResult
from rlgym_bridge.user_input.arguments import show_value
from rlgym_bridge.user_input.durable_files import write_durably
from rlgym_bridge.user_input.text_files import parse_json, read_text

FILE: Final = "matches.jsonl"

_MOST_LETTERS: Final = 1 << 28  # of the file: a forfeit quotes up to 8 KiB of a log

MatchKey = tuple[str, str, int]
"""Two names (of entries; of a cause and its opponent), and the number of their match."""

Progress = Callable[[int, int, Mapping[MatchKey, ServedResult]], None]
"""Called after matches with the number of results, that of matches, and what has just ended."""


class KeptMatches:
    """Results on disk. Every new one is written at once; whoever reads the file sees whole lines.

    Args:
        path: The file, which need not be there.
        settings: Of the matches, as JSON has them.

    Attributes:
        path, settings: As given.
        results: Those of the file and the new ones.

    Raises:
        ConfigError: The file has matches with other settings, or is none of ours.
        OSError: It cannot be read or written.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.results: dict[MatchKey, ServedResult] = {}
        self.path, self.settings = path, settings
        self._lines: list[str] = [json.dumps({"settings": settings})]
        if path.exists():
            self._read(json.loads(self._lines[0])["settings"])
        self._write()

    def _read(self, settings: dict[str, Any]) -> None:
        lines = read_text(self.path, _MOST_LETTERS).splitlines()
        for number, line in enumerate(lines, 1):
            try:
                record = parse_json(line)
                if number == 1:
                    kept = record["settings"]
                else:
                    (one, other, match), result = record.pop("match"), msgspec.convert(record, ServedResult)
                    self.results[(str(one), str(other), int(match))] = result
            except (ArithmeticError, ValueError, TypeError, KeyError, AttributeError) as error:
                raise ConfigError(
                    f"{self.path}, line {number}, is no result of a match; remove it, or take another --out"
                ) from error
        if self.results:  # a command that was refused before its first match leaves settings alone
            self._check(kept, settings)
            self._lines = lines

    def _check(self, kept: Any, settings: dict[str, Any]) -> None:
        """Compare the settings of the file with those of this command."""
        if not isinstance(kept, dict):
            kept = {}
        if kept.get("rules") == "default":  # of before, when all was played in rocketsim2
            kept = {"simulator": ROCKETSIM2} | {name: kept[name] for name in kept if name != "rules"}
        differing = [
            f"{name} {_differ(kept.get(name), settings.get(name))}"
            for name in dict.fromkeys([*settings, *kept])
            if kept.get(name) != settings.get(name)
        ]
        if differing:
            raise ConfigError(
                f"{self.path} has other matches: {'; '.join(differing)}. Repeat the command as it was, or "
                "take another --out"
            )

    def add(self, results: Mapping[MatchKey, ServedResult]) -> None:
        """Keep results; one of the same match is replaced when the file is read again.

        Raises:
            OSError: They cannot be written.
        """
        self.results |= results
        self._lines += [json.dumps({"match": key, **asdict(result)}) for key, result in results.items()]
        self._write()

    def _write(self) -> None:
        """Put the whole file in place at once."""
        text = "".join(f"{line}\n" for line in self._lines)
        write_durably(self.path.parent, {self.path.name: text.encode()})


def _differ(kept: Any, given: Any) -> str:
    """Return in words how a setting differs; of lists the first part that does."""
    if isinstance(kept, list) and isinstance(given, list):
        if len(kept) != len(given):
            return f"are {len(kept)} there and {len(given)} here"
        place = next(i for i, pair in enumerate(zip(kept, given, strict=True)) if pair[0] != pair[1])
        return f"{place + 1} {_differ(kept[place], given[place])}"
    if isinstance(kept, dict) and isinstance(given, dict):
        name = next(name for name in [*given, *kept] if kept.get(name) != given.get(name))
        return f"has {name} {show_value(kept.get(name))} there and {show_value(given.get(name))} here"
    return f"is {show_value(kept)} there and {show_value(given)} here"
