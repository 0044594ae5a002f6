"""Play the parts of a field test: probe, timing, scripted scenes, and a match of the shipped bot."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from rlbot import flat

from rlgym_bridge.cli import match_command, probe_command
from rlgym_bridge.cli.measuring_match import real_match, sim_match
from rlgym_bridge.cli.real_match import START_SECONDS
from rlgym_bridge.cli.shipped import find_shipped_folder
from rlgym_bridge.cli.timing_command import measure_timing
from rlgym_bridge.client.own_players import agents_of, match_of, with_own_ids
from rlgym_bridge.dialect import Dialect
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.policy.load_player import CHASER
from rlgym_bridge.server import Impairments, MatchServer, ServerError
from rlgym_bridge.trials import Probe
from rlgym_bridge.trials.client import PacketScript, Players, match_of_two
from rlgym_bridge.trials.client_recording import ClientRecording, RecordedScript
from rlgym_bridge.trials.nameless import hide_personal
from rlgym_bridge.trials.pack_parts import MatchPart, ProbePart, ScenesPart, TimingPart
from rlgym_bridge.trials.scene_battery import SceneBattery, ticks_of
from rlgym_bridge.trials.scripted_scene import ScriptedScene
from rlgym_bridge.user_input.text_files import parse_json, read_text

PROBE_SECONDS: Final = 110.0
"""Game time that the probe takes, about."""

TIMING_SECONDS: Final = 20.0
"""Game time of the timing."""

_MOST_TIMES: Final = 3.0  # wall time that scenes may take in the real game, in their game time


@dataclass
class FieldTest:
    """A field test that is being made: what to play on, and what came of it.

    Attributes:
        options: Of the command: server, pace, dialect, latency, simulator, seconds.
        folder: Where recordings are written, with names.
        dialect: That of `--dialect`.
        scenes: Scripted scenes to play.
        progress: Called with what begins, in a few words.
        results: Of the parts that have one, by name; of a part that is stopped, what there is.
    """

    options: argparse.Namespace
    folder: Path
    dialect: Dialect
    scenes: tuple[ScriptedScene, ...]
    progress: Callable[[str], None] = lambda doing: None
    results: dict[str, Any] = field(default_factory=dict)

    def play(self, name: str) -> None:
        """Play a part.

        Raises:
            Exception: Whatever stopped it; `results` has what there is.
        """
        {"probe": self._probe, "timing": self._timing, "scenes": self._scenes, "match": self._match}[name]()

    def seconds(self, name: str) -> float:
        """Return the game time that a part takes, s, without the loading of a match."""
        ticks = sum(map(ticks_of, self.scenes))
        return {
            "probe": PROBE_SECONDS,
            "timing": TIMING_SECONDS,
            "scenes": ticks / TICKS_PER_SECOND,
            "match": float(self.options.seconds),
        }[name]

    def recording(self, name: str) -> Path:
        """Return the file that a part records to."""
        return self.folder / f"{name}.mcap"

    @contextmanager
    def _playing(self, match: flat.MatchConfiguration) -> Iterator[tuple[tuple[str, int], float]]:
        """Start a match; yield the server's address and the seconds to wait for each step."""
        if self.options.server == "rlbot":
            with real_match(match) as server:
                yield server.address, START_SECONDS
            return
        with (
            MatchServer(
                pace=self.options.pace,
                impairments=Impairments(latency=self.options.latency),
                dialect=self.dialect,
                simulator=self.options.simulator,
            ) as server_here,
            sim_match(server_here, match),
        ):
            yield (server_here.host, server_here.port), probe_command.SIM_PATIENCE

    def _follow(
        self, name: str, match: flat.MatchConfiguration, script_of: Callable[[Players], PacketScript],
        seconds: float,
    ) -> str | None:  # fmt: skip
        """Play a script in a match and record it; return why it ended early."""
        with (
            ClientRecording(self.recording(name)) as recording,
            self._playing(match) as (server, patience),
            closing(Players(server, patience, recording.take, agents_of(match))) as players,
        ):
            try:
                return players.follow(RecordedScript(script_of(players), recording), seconds)
            finally:
                players.stop_match()

    def _probe(self) -> None:
        probes: list[Probe] = []

        def begin(players: Players) -> Probe:
            probes.append(Probe(players.ids, players.field))
            return probes[0]

        why: str | None = "stopped"
        try:
            why = self._follow("probe", with_own_ids(match_of_two()), begin, probe_command.GAME_SECONDS)
        finally:
            for probe in probes:
                report = probe.report()
                report.notes += [why] if why else []
                report.notes[:] = map(hide_personal, report.notes)
                self.results["probe"] = msgspec.convert(report.as_json(), ProbePart)
        if not self.results["probe"].packets:
            raise ServerError(f"the server sent no packet: {why}")

    def _timing(self) -> None:
        match = with_own_ids(match_of(1, 1))
        with self._playing(match) as (server, patience):
            report = measure_timing(server, match, patience, TIMING_SECONDS)
        found = {name: _finite(value) for name, value in report.as_json().items()}
        self.results["timing"] = msgspec.convert(found, TimingPart)

    def _scenes(self) -> None:
        batteries: list[SceneBattery] = []

        def begin(players: Players) -> SceneBattery:
            batteries.append(SceneBattery(players.ids, self.scenes, self._tell_scene))
            return batteries[0]

        why: str | None = "stopped"
        try:
            limit = _MOST_TIMES * self.seconds("scenes") + START_SECONDS
            why = self._follow("scenes", with_own_ids(match_of(1, 1)), begin, limit)
        finally:
            for battery in batteries:
                notes = [hide_personal(note) for note in (*battery.notes, *([why] if why else []))]
                self.results["scenes"] = ScenesPart(list(self.scenes), battery.played, notes)
        if not batteries[0].played:
            raise ServerError(f"no scene was played: {'; '.join(self.results['scenes'].notes)}")

    def _tell_scene(self, number: int) -> None:
        self.progress(f"scene {number + 1} of {len(self.scenes)}: {self.scenes[number].name}")

    def _match(self) -> None:
        result = self.folder / "match.json"
        words = [
            "--server", self.options.server, "--blue", str(find_shipped_folder() / "bot" / "policy"),
            "--orange", CHASER, "--seconds", f"{self.options.seconds:g}", "--quiet",
            "--record", str(self.recording("match")), "--json", str(result),
        ]  # fmt: skip
        if self.options.server == "sim":
            words += ["--pace", self.options.pace, "--latency", str(self.options.latency)]
            words += ["--max-overtime", "0"]
            if self.options.simulator is not None:
                words += ["--simulator", self.options.simulator]
            words += [word for point in self.options.dialect for word in ("--dialect", point)]
        parser = argparse.ArgumentParser()
        match_command.add_to(parser)
        match_command.run(parser.parse_args(words))
        told = parse_json(read_text(result))
        self.results["match"] = MatchPart(
            (told["score"][0], told["score"][1]),
            told["playing_ticks"],
            told["ended_by"],
            [bot["touches"] for bot in told["bots"]],
            [bot["missed"] for bot in told["bots"]],
        )
        if told["ended_by"] == "stopped":
            raise KeyboardInterrupt


def _finite(value: Any) -> Any:
    """Return a value of a report, with None in place of numbers that are not finite."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
