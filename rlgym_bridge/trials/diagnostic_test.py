"""Play the parts of a field test: probe, timing, scripted scenes, and a match of the shipped bot."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from rlbot import flat

from rlgym_bridge.components.user_errors import describe_error
from rlgym_bridge.game import CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.live.agent_connections import agents_of, match_of, message_of, with_own_ids
from rlgym_bridge.live.agent_recorder import AgentRecorder
from rlgym_bridge.recording.mcap.mcap_writer import Recorder
from rlgym_bridge.server import MatchServer, ServerError
from rlgym_bridge.trials.diagnostic_pack import RECORDED, MatchPart, PartOutcome, ScenesPart
from rlgym_bridge.trials.input_latency import measure_timing
from rlgym_bridge.trials.measured_match import START_SECONDS, measured_match
from rlgym_bridge.trials.nameless import copy_without_names, hide_personal
from rlgym_bridge.trials.probe import Players, Probe, match_of_two
from rlgym_bridge.trials.scene_player import Frame, Reply, SceneScript
from rlgym_bridge.trials.scripted_scenes import SceneBattery, ScriptedScene, ticks_of

MOST_NOTE: Final = 500
"""Letters of an error in the pack."""

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
        """Record a message of the server."""
        self._agent.record_message(message_of(payload), payload)

    def send(self, reply: Reply, frame: Frame) -> None:
        """Record the inputs that answer a frame."""
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
            closing(
                Players(server.address, agents_of(match), server.patience, recording.take, recording.send)
            ) as players,
        ):
            script = script_of(players)
            try:
                players.follow(script, seconds)
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
