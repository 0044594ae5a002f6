"""Play the parts of a field test, and copy its recordings without anything that tells who made them.

Names, agent ids, commands, folders, player ids, the date, chat and drawings are left out or replaced.
"""

import getpass
import json
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any, Final

import numpy as np
from mcap.records import Metadata
from mcap.writer import Writer
from rlbot import flat

from rlgym_bridge.components.user_errors import describe_error
from rlgym_bridge.game import CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.live.agent_connections import agents_of, match_of, message_of, with_own_ids
from rlgym_bridge.live.agent_recorder import AgentRecorder
from rlgym_bridge.recording.mcap import channels
from rlgym_bridge.recording.mcap.mcap_reader import read_records
from rlgym_bridge.recording.mcap.mcap_writer import Recorder, RecordingError
from rlgym_bridge.server import MatchServer, ServerError
from rlgym_bridge.trials.diagnostic_pack import RECORDED, MatchPart, PartOutcome, ScenesPart
from rlgym_bridge.trials.input_latency import measure_timing
from rlgym_bridge.trials.measured_match import START_SECONDS, measured_match
from rlgym_bridge.trials.probe import Players, Probe, match_of_two
from rlgym_bridge.trials.scene_player import Frame, Reply, SceneScript
from rlgym_bridge.trials.scripted_scenes import SceneBattery, ScriptedScene, ticks_of

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
    """Copy a recording of ours without names and dates; return what could not be read, as sentences.

    `about`, of JSON values, is what the copy says of the match, in place of what the recorder said. A
    RecordingError says that it is no recording, or holds no message.
    """
    notes: list[str] = []
    names = _Names()
    began: int | None = None
    with target.open("xb") as file:
        writer = Writer(file, _CHUNK_BYTES)
        writer.start(channels.PROFILE)
        writer.add_metadata(channels.ABOUT, {name: json.dumps(value) for name, value in about.items()})
        ids: dict[str, int] = {}  # of channels, by topic
        for entry in read_records(source, notes):
            if isinstance(entry, Metadata):
                if entry.name.startswith(channels.POLICY):
                    agent = names.agent(entry.name.removeprefix(channels.POLICY))
                    writer.add_metadata(channels.POLICY + agent, entry.metadata)
                continue
            topic, message = entry
            what = topic.rpartition("/")[2]
            content = names.replace(what, message.content)
            if content is None:
                continue
            if topic.startswith(channels.AGENTS):
                agent = names.agent(topic.removeprefix(channels.AGENTS).rpartition("/")[0])
                topic = channels.agent_topic(agent, what)
            if topic not in ids:
                ids[topic] = writer.register_channel(topic, channels.ENCODINGS[what], 0)
            began = message.time if began is None else began
            logged, since = channels.log_time(message.frame), max(message.time - began, 0)
            writer.add_message(ids[topic], logged, content, since, message.frame)
        writer.finish()  # type: ignore[no-untyped-call]
    if not ids:
        raise RecordingError(f"{source.name} holds no message of a match")
    return notes


class _Names:
    """Replaces names and ids, the same one always by the same."""

    def __init__(self) -> None:
        self._agents: dict[str, str] = {}
        self._players: dict[int, int] = {}

    def agent(self, agent_id: str) -> str:
        return self._agents.setdefault(agent_id, f"agent-{len(self._agents) + 1}")

    def player(self, player_id: int) -> int:
        return self._players.setdefault(player_id, len(self._players) + 1)

    def replace(self, what: str, content: bytes) -> bytes | None:
        if what in _NUMBERS:
            return content
        if what not in _FLAT:
            return None
        try:
            message = flat.CorePacket.unpack(content).message
        except ValueError:  # InvalidFlatbuffer is one
            return None
        if isinstance(message, flat.GamePacket):
            players = [(car, self.player(car.player_id)) for car in message.players]
            nobodies = [_but(car, name=f"player {one}", player_id=one) for car, one in players]
            return flat.CorePacket(_but(message, players=nobodies)).pack()
        if isinstance(message, flat.MatchConfiguration):
            return flat.CorePacket(self._match(message)).pack()
        return flat.CorePacket(message).pack() if isinstance(message, flat.FieldInfo) else None

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


def _but(message: Any, **changes: object) -> Any:
    """Return a copy of a message with other values of some fields."""
    values = {name: getattr(message, name) for name in message.__match_args__}
    return type(message)(**values | changes)


MOST_NOTE: Final = 500  # letters of an error in the pack
_PROBE_SECONDS: Final = 110.0  # of game that the probe takes, about
_MOST_PROBE_SECONDS: Final = 300.0  # of wall time
_TIMING_SECONDS: Final = 20.0  # of game
_MOST_TIMES: Final = 3.0  # wall time that scenes may take in the real game, in their game time
_DISK_SECONDS: Final = 30.0  # a slow disk is waited for: the file is what all this is for
_AGENT: Final = "rlgym_bridge/field-test"


class _ClientRecording:
    """Records what the two cars of a script receive and send, as a bot of this project records it."""

    def __init__(self, path: Path) -> None:
        recorder = Recorder(path, {"by": "agent", "agent_id": _AGENT})
        recorder.patience = _DISK_SECONDS
        self._agent = AgentRecorder(recorder, _AGENT)
        self.close = self._agent.close

    def take(self, payload: bytes) -> None:
        self._agent.record_message(message_of(payload), payload)

    def send(self, reply: Reply, frame: Frame) -> None:
        for index, controls in zip(frame.indices, reply.controls, strict=True):
            row = np.array([getattr(controls, name) for name in CONTROL_NAMES], np.float32)
            self._agent.record_input(frame.number, index, row)


@dataclass
class FieldTest:
    """A field test that is being made: what to play on, and what came of it."""

    folder: Path  # where recordings are written, with names
    scenes: tuple[ScriptedScene, ...]
    match_seconds: float  # game time of the match
    embedded: Callable[[], MatchServer | None]  # server for a part; None measures RLBotServer
    play_match: Callable[[Path], MatchPart]  # plays and records the match into a file
    progress: Callable[[str], None] = lambda doing: None  # called with what begins, in a few words
    results: dict[str, Any] = field(default_factory=dict)  # by part, also of one that was stopped

    def play(self, name: str) -> None:
        """Play a part; `results` has what there is, whatever stopped it."""
        {"probe": self._probe, "timing": self._timing, "scenes": self._scenes, "match": self._match}[name]()

    def seconds(self, name: str) -> float:
        """Return the game time that a part takes, s, without the loading of a match."""
        ticks = sum(map(ticks_of, self.scenes))
        return {
            "probe": _PROBE_SECONDS, "timing": _TIMING_SECONDS, "scenes": ticks / TICKS_PER_SECOND,
            "match": self.match_seconds,
        }[name]  # fmt: skip

    def _recording(self, name: str) -> Path:
        return self.folder / f"{name}.mcap"

    def _follow(
        self, name: str, match: flat.MatchConfiguration, script_of: Callable[[Players], SceneScript],
        seconds: float, keep: Callable[[Any], object],
    ) -> None:  # fmt: skip
        """Play a script in a match and record it; keep what it found, however it ends."""
        with (
            closing(_ClientRecording(self._recording(name))) as recording,
            measured_match(match, self.embedded()) as server,
            closing(Players(server.address, agents_of(match), server.patience, recording.take)) as players,
        ):
            script = script_of(players)
            try:
                players.follow(script, seconds, recording.send)
            except BaseException:
                script.notes.append("stopped")
                raise
            finally:
                script.notes[:] = map(hide_personal, script.notes)
                keep(script)
                players.stop_match()

    def _probe(self) -> None:
        def keep(probe: Probe) -> None:
            self.results["probe"] = probe.report()

        match = with_own_ids(match_of_two())
        self._follow("probe", match, lambda one: Probe(one.ids, one.field), _MOST_PROBE_SECONDS, keep)
        if not self.results["probe"].packets:
            raise ServerError(f"the server sent no packet: {'; '.join(self.results['probe'].notes)}")

    def _timing(self) -> None:
        match = with_own_ids(match_of(1, 1))
        with measured_match(match, self.embedded()) as server:
            self.results["timing"] = measure_timing(server.address, match, server.patience, _TIMING_SECONDS)

    def _scenes(self) -> None:
        def tell(number: int) -> None:
            self.progress(f"scene {number + 1} of {len(self.scenes)}: {self.scenes[number].name}")

        def keep(battery: SceneBattery) -> None:
            self.results["scenes"] = ScenesPart(list(self.scenes), battery.played, battery.notes)

        limit = _MOST_TIMES * self.seconds("scenes") + START_SECONDS
        match = with_own_ids(match_of(1, 1))
        self._follow("scenes", match, lambda one: SceneBattery(one.ids, self.scenes, tell), limit, keep)
        if not self.results["scenes"].played:
            raise ServerError(f"no scene was played: {'; '.join(self.results['scenes'].notes)}")

    def _match(self) -> None:
        self.results["match"] = self.play_match(self._recording("match"))
        if self.results["match"].ended_by == "stopped":
            raise KeyboardInterrupt

    def copy_recordings(self, outcomes: list[PartOutcome]) -> dict[str, Path]:
        """Copy what was recorded without names, as far as it is there; change outcomes where it is not."""
        probe = self.results.get("probe")
        dialect = [] if probe is None else [f"{point}={value}" for point, value in probe.dialect.items()]
        found = {}
        for number, outcome in enumerate(outcomes):
            source = self._recording(outcome.name)
            if outcome.name not in RECORDED or not source.is_file():
                continue
            target = self.folder / f"{outcome.name}-nameless.mcap"
            try:
                notes = copy_without_names(source, target, {"by": "field-test", "dialect": dialect})
                found[outcome.name] = target
            except (OSError, ValueError) as error:
                notes = [f"its recording is missing: {hide_personal(describe_error(error))}"]
            if notes:
                failed = outcome.state == "done" and outcome.name not in found
                note = "; ".join(filter(None, (outcome.note, *notes)))[:MOST_NOTE]
                state = "failed" if failed else outcome.state
                outcomes[number] = PartOutcome(outcome.name, state, outcome.seconds, note)
        return found
