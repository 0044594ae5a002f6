"""Read what a league or a stress test is given to play: policies, runs, bot.toml files, what is built in."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlbot import flat

from rlgym_bridge.policy.files import MANIFEST_FILE, policy_path, read_files
from rlgym_bridge.policy.load_player import BUILT_IN
from rlgym_bridge.policy.manifest import SELECTIONS
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.server import ConfigError
from rlgym_bridge.server.lineup import empty_match, with_line_up
from rlgym_bridge.training.contests.served_match import ServedBot
from rlgym_bridge.user_input.text_files import read_text


@dataclass(frozen=True)
class Entrant:
    """One that plays."""

    name: str  # in tables; of equal names each has its number behind it
    path: str  # policy folder, `bot.toml`, `chaser`, `charger` or `random`
    selection: str | None  # `sample` or `argmax` where the user chose it, else None
    content: str  # checksum of the policy's weights or of the `bot.toml`; empty for what is built in
    allow_modules: tuple[str, ...] = ()  # modules of its training run

    @property
    def bot(self) -> ServedBot:
        """Return it as a match takes it."""
        return ServedBot(self.path, self.selection)

    @property
    def identity(self) -> dict[str, str | None]:
        """Return what results are kept under: all but the modules."""
        return {"name": self.name, "path": self.path, "selection": self.selection, "content": self.content}

    @property
    def is_policy(self) -> bool:
        """Return whether it is a policy folder."""
        return (Path(self.path) / MANIFEST_FILE).is_file()


def read_entrants(given: Sequence[str], team_size: int) -> list[Entrant]:
    """Return the entries of a command line, checked, for teams of so many cars.

    Each is a policy folder, training run, checkpoint, `bot.toml`, `chaser`, `charger` or `random`; `:sample`
    or `:argmax` behind a policy chooses how it plays. Raises ConfigError where one is nothing that can be
    played, or is a policy for other team sizes; ValueError where the modules of a run cannot be read.
    """
    entrants = [_read_entrant(one, team_size) for one in given]
    count, seen = Counter(one.name for one in entrants), Counter[str]()
    named = []
    for one in entrants:
        seen[one.name] += 1
        number = f" #{seen[one.name]}" if count[one.name] > 1 else ""
        named.append(replace(one, name=one.name + number))
    return named


def split_selection(given: str) -> tuple[str, str | None]:
    """Return the path of an entry, and the selection behind it if there is one."""
    path, colon, selection = given.rpartition(":")
    if colon and selection in SELECTIONS and not Path(given).exists():
        return path, selection
    return given, None


def _read_entrant(given: str, team_size: int) -> Entrant:
    named, selection = split_selection(given)
    if named == "human" or named.startswith("psyonix:"):
        raise ConfigError(
            f"{given!r} plays in the real game alone, expected a bot: matches here have no game"
        )
    path = policy_path(named)
    if path not in BUILT_IN:
        path = str(Path(path).resolve()) if Path(path).exists() else path
    modules = run_modules(named)
    match = with_line_up(empty_match(), [path] * team_size, [path] * team_size, allow_modules=modules)
    bot = match.player_configurations[0].variety
    assert isinstance(bot, flat.CustomBot)  # others are refused without `humans`
    entrant = Entrant(bot.name or Path(path).parent.name, path, selection, _content_of(path), modules)
    if selection is None:
        return entrant
    if not entrant.is_policy:
        raise ConfigError(
            f"entry {given!r} is no policy, expected {named!r}: only policies choose how they act"
        )
    return replace(entrant, name=f"{entrant.name} ({selection})")


def _content_of(path: str) -> str:
    if path in BUILT_IN:
        return ""
    if (Path(path) / MANIFEST_FILE).is_file():
        return read_files(Path(path))[0].weights_sha256
    return hashlib.sha256(read_text(Path(path)).encode()).hexdigest()
