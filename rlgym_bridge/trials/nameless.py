"""Copy a recording without anything that tells who made it.

Names, agent ids, commands, folders, player ids, the date, chat and drawings are left out or replaced.
"""

import getpass
import json
import platform
import re
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PureWindowsPath
from typing import Any, Final

from mcap.records import Metadata
from mcap.writer import Writer
from rlbot import flat

from rlgym_bridge.recording.mcap.channels import (
    ABOUT,
    AGENTS,
    ENCODINGS,
    POLICY,
    PROFILE,
    agent_topic,
    log_time,
)
from rlgym_bridge.recording.mcap.mcap_reader import read_records
from rlgym_bridge.recording.mcap.mcap_writer import RecordingError

_FLAT: Final = ("field_info", "match_configuration", "packets")
_NUMBERS: Final = ("arrivals", "inputs", "decisions")
"""Last parts of topics that are copied: messages of RLBot, and those that hold nothing but numbers."""

_PATHS: Final = re.compile(r"(?<![\w<>])(?:[A-Za-z]:)?[\\/][^\s'\":;,()]+")
_ADDRESSES: Final = re.compile(r"\b\d+\.\d+\.\d+\.\d+(?::\d+)?\b")

_CHUNK_BYTES: Final = 1 << 22  # packets are alike: larger chunks are packed better


def hide_personal(text: str) -> str:
    """Return a sentence without paths, addresses, the user's name and the computer's name."""
    folders = [sys.prefix, tempfile.gettempdir()]
    with suppress(OSError, RuntimeError):  # a folder that has gone, a user without a home
        folders += [str(Path.cwd()), str(Path.home())]
    for folder in sorted((one for one in folders if len(one) > 1), key=len, reverse=True):
        for written in (repr(folder)[1:-1], folder):  # whole, because there may be spaces in it
            text = text.replace(written, "/...")
    hidden = _ADDRESSES.sub("<address>", _PATHS.sub("<path>", text))
    names = {platform.node()}
    with suppress(OSError, KeyError, ImportError):  # a user without a name, on Windows too
        names.add(getpass.getuser())
    for name in filter(None, names):
        hidden = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "<name>", hidden, flags=re.IGNORECASE)
    return hidden


def copy_without_names(source: Path, target: Path, about: Mapping[str, Any]) -> list[str]:
    """Copy a recording of ours into a new file, without names and dates.

    `about` is what the copy says of the match, in place of what the recorder said; JSON values.

    Returns:
        What could not be read, as sentences without the file's folder.

    Raises:
        RecordingError: It is no recording, or holds no message.
        OSError: It cannot be read, or the copy cannot be written.
    """
    notes: list[str] = []
    names = _Names()
    began: int | None = None
    with target.open("xb") as file:
        writer = Writer(file, _CHUNK_BYTES)
        writer.start(PROFILE)
        writer.add_metadata(ABOUT, {name: json.dumps(value) for name, value in about.items()})
        channels: dict[str, int] = {}
        for entry in read_records(source, notes):
            if isinstance(entry, Metadata):
                if entry.name.startswith(POLICY):
                    agent = names.agent(entry.name.removeprefix(POLICY))
                    writer.add_metadata(POLICY + agent, entry.metadata)
                continue
            topic, message = entry
            what = topic.rpartition("/")[2]
            content = names.replace(what, message.content)
            if content is None:
                continue
            if topic.startswith(AGENTS):
                agent = names.agent(topic.removeprefix(AGENTS).rpartition("/")[0])
                topic = agent_topic(agent, what)
            if topic not in channels:
                channels[topic] = writer.register_channel(topic, ENCODINGS[what], 0)
            began = message.time if began is None else began
            writer.add_message(
                channels[topic], log_time(message.frame), content, max(message.time - began, 0), message.frame
            )
        writer.finish()  # type: ignore[no-untyped-call]
    if not channels:
        raise RecordingError(f"{source.name} holds no message of a match")
    return notes


class _Names:
    """Replaces names and ids, the same one always by the same."""

    def __init__(self) -> None:
        self._agents: dict[str, str] = {}
        self._players: dict[int, int] = {}

    def agent(self, agent_id: str) -> str:
        """Return what an agent is called: by the order in which agents come."""
        return self._agents.setdefault(agent_id, f"agent-{len(self._agents) + 1}")

    def player(self, player_id: int) -> int:
        """Return the number of a player, from 1."""
        return self._players.setdefault(player_id, len(self._players) + 1)

    def replace(self, what: str, content: bytes) -> bytes | None:
        """Return a message without names; None where it is to be left out."""
        if what in _NUMBERS:
            return content
        if what not in _FLAT:
            return None
        try:
            message = flat.CorePacket.unpack(content).message
        except ValueError:  # InvalidFlatbuffer is one
            return None
        if isinstance(message, flat.GamePacket):
            return flat.CorePacket(self._packet(message)).pack()
        if isinstance(message, flat.MatchConfiguration):
            return flat.CorePacket(self._match(message)).pack()
        return flat.CorePacket(message).pack() if isinstance(message, flat.FieldInfo) else None

    def _packet(self, packet: flat.GamePacket) -> flat.GamePacket:
        values = {name: getattr(packet, name) for name in flat.GamePacket.__match_args__}
        values["players"] = [self._car(car) for car in packet.players]
        return flat.GamePacket(**values)

    def _car(self, car: flat.PlayerInfo) -> flat.PlayerInfo:
        number = self.player(car.player_id)
        values = {name: getattr(car, name) for name in flat.PlayerInfo.__match_args__}
        return flat.PlayerInfo(**values | {"name": f"player {number}", "player_id": number})

    def _match(self, match: flat.MatchConfiguration) -> flat.MatchConfiguration:
        """Return a match with its rules, its map's name, and players that are nobody."""
        players = []
        for player in match.player_configurations:
            number = self.player(player.player_id)
            loadout = getattr(player.variety, "loadout", None)
            car = flat.PlayerLoadout(car_id=loadout.car_id) if loadout is not None else None
            bot = flat.CustomBot(name=f"player {number}", loadout=car, agent_id=f"player-{number}")
            players.append(flat.PlayerConfiguration(bot, player.team, number))
        return flat.MatchConfiguration(
            player_configurations=players,
            game_map_upk=PureWindowsPath(match.game_map_upk).name,
            game_mode=match.game_mode,
            skip_replays=match.skip_replays,
            mutators=match.mutators,
            enable_state_setting=match.enable_state_setting,
            freeplay=match.freeplay,
        )
