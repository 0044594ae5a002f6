"""Answer a server's packets over one connection, on rlbot's socket.

Every packet is decoded, in order (rlbot's own `Bot` drops all but the newest of a burst). One input is sent
for each car, for the newest packet. Where earlier decisions fix the answer, it is sent before decoding.
"""

import gc
import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlbot import flat
from rlbot.interface import SocketRelay

from rlgym_bridge.clock import GAP_TICKS
from rlgym_bridge.components.episode import StepReport
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.game import PLAYING_PHASES
from rlgym_bridge.live.agent_recorder import AgentRecorder
from rlgym_bridge.live.followed_run import FollowedRun, misfit, team_sizes
from rlgym_bridge.live.forecaster import ForecastReport
from rlgym_bridge.live.player import Faults, LivePlayer, Override
from rlgym_bridge.packets.decoder import player_input
from rlgym_bridge.protocol_variant import OWN_SERVER, VariantFile
from rlgym_bridge.user_input.message_limits import check_from_server

REPORT_VARIABLE = "RLGYM_BRIDGE_REPORT"
"""Name of the environment variable with the file that the report is written to, as JSON."""


@dataclass
class AgentReport:
    """Counts packets, answers and faults of one agent over all its connections."""

    agent_id: str
    faults: Faults  # what went wrong, by kind
    packets: int = 0
    answered: int = 0
    missed: int = 0  # packets without an answer, before one that was answered
    disconnects: int = 0  # connections that ended without a goodbye
    dialect_file: str | None = None  # file with the server's dialect, None where there was none
    refused: str | None = None  # why the bot does not play the match, None where it does
    checkpoints: Sequence[str] = ()  # names of the checkpoints that have played, where a run is followed
    forecast: ForecastReport | None = None  # counts of the forecasts; None where the bot does not look ahead
    no_forecast: str | None = None  # why a bot that should look ahead does not; else None
    no_search: str | None = None  # why a policy that should search does not; else None

    def count_answer(self, frame: int, last: int | None) -> None:
        """Count the answer to a packet, and the packets since the last answer that got none."""
        if last is None or not 0 <= frame - last <= GAP_TICKS:
            self.answered += 1
        elif frame > last:
            self.answered += 1
            self.missed += frame - last - 1

    def write(self) -> None:
        """Write the counts to the file that `RLGYM_BRIDGE_REPORT` names, if any; never raises."""
        path = os.environ.get(REPORT_VARIABLE)
        if not path:
            return
        forecast = None if self.forecast is None else self.forecast.to_json()
        report = {**vars(self), "faults": self.faults.counts, "forecast": forecast}
        try:
            part = Path(path + ".part")
            part.write_text(json.dumps(report))
            part.replace(path)
        except OSError as error:
            self.faults.add("report not written", f"{path}: {error}")


_LOG = logging.getLogger("rlgym_bridge.agent")
_CHUNK = 1 << 18  # bytes received at once: 260 packets of 1v1, two seconds


class Refused(Exception):
    """The bot does not play the server's match; the message says why."""


@dataclass(eq=False)
class BotSession:
    """One connection of a bot to a server; `measured` counts where this server is such a one."""

    server: tuple[str, int]
    spec: PlayerSpec
    report: AgentReport
    override: Override | None = None
    seed: int | None = None
    measured: VariantFile | None = None
    recorder: AgentRecorder | None = None
    followed: FollowedRun | None = None

    def __post_init__(self) -> None:
        self._own_server = False  # the server is this project's own
        self._relay = SocketRelay(self.report.agent_id, logger=_LOG)
        self._field: flat.FieldInfo | None = None
        self._config: flat.MatchConfiguration | None = None
        self._team: flat.ControllableTeamInfo | None = None
        self._player: LivePlayer | None = None
        self._newest: flat.GamePacket | None = None  # not yet answered
        self._newest_comes = False  # the message being handled is the newest received
        self._buffer = bytearray(_CHUNK)
        self._pending = b""  # the beginning of an incomplete message
        self._answered_frame: int | None = None
        self._playing = True
        self._goodbye = False
        self._sent: dict[int, tuple[bytes, bytes]] = {}
        is_on = os.environ.get(OVERLAY_VARIABLE, "") not in ("", "0")
        self._overlay: str | None = "" if is_on else None  # the text drawn; None draws nothing

    def connect(self, seconds: float) -> None:
        """Connect to the server within some seconds; OSError or TimeoutError says that there was none."""
        ip, port = self.server
        self._relay.connection_timeout = seconds
        self._relay.connect(
            wants_match_communications=False,
            wants_ball_predictions=False,
            close_between_matches=True,
            rlbot_server_ip=ip,
            rlbot_server_port=port,
        )

    def run(self) -> bool:
        """Handle messages and answer packets until the connection ends; tell whether the server said goodbye.

        Refused says that the policy does not play matches of these team sizes.
        """
        gc.collect()
        gc.freeze()  # what exists now stays: later collections need not look at it
        try:
            while not self._goodbye:
                *burst, newest = self._receive()
                for message in burst:
                    self._handle(message)
                self._newest_comes = True
                self._handle(newest)
                self._newest_comes = False
                self._answer()
        except (EOFError, OSError):
            pass
        finally:
            gc.unfreeze()
            gc.enable()
            self._log_unknown_dialect()
            if self._player is not None:
                self._player.close()
            if self._relay.socket is not None:
                self._relay.socket.close()
        return self._goodbye

    def _log_unknown_dialect(self) -> None:
        in_doubt = {} if self._player is None else self._player.decoder.detector.in_doubt
        for point, fields in in_doubt.items():
            _LOG.info(
                "no packet showed the server's %s, on which %s depend; `rlgym-bridge probe` finds it out",
                point, ", ".join(fields),
            )  # fmt: skip

    def _receive(self) -> list[bytes]:
        """Wait for data; return all complete messages, oldest first, by one system call."""
        connection = self._relay.socket
        assert connection is not None  # set by connect
        messages: list[bytes] = []
        while not messages:
            size = connection.recv_into(self._buffer)
            if not size:
                raise EOFError
            pending = self._pending + bytes(memoryview(self._buffer)[:size])
            start, end = 0, len(pending)
            while end - start >= 2:
                stop = start + 2 + (pending[start] << 8 | pending[start + 1])
                if stop > end:
                    break
                messages.append(pending[start + 2 : stop])
                start = stop
            self._pending = pending[start:]
        return messages

    def _handle(self, message: bytes) -> None:
        if self._goodbye:
            return
        try:
            check_from_server(message)
            content = flat.CorePacket.unpack(message).message
        except ValueError as error:
            self.report.faults.add("undecodable message", f"{len(message)} bytes: {error}")
            return
        if isinstance(content, flat.GamePacket):
            self._on_packet(content)
        elif isinstance(content, flat.DisconnectSignal):
            self._goodbye = True
        elif isinstance(content, flat.FieldInfo):
            self._field = content
        elif isinstance(content, flat.MatchConfiguration):
            self._config, self._own_server = content, message.endswith(OWN_SERVER.encode())
        elif isinstance(content, flat.ControllableTeamInfo):
            self._on_team(content)
        if self._player is None and self._field and self._config and self._team:
            self._begin(self._field, self._config, self._team)
        if self.recorder is not None:
            self.recorder.record_message(content, message)

    def _on_packet(self, packet: flat.GamePacket) -> None:
        self.report.packets += 1
        player = self._player
        if player is None:
            return
        self._newest = packet
        if self._newest_comes and player.foresee(packet):
            self._answer()  # first answer, then decode and decide
        player.see(packet)
        if self.followed is not None:
            self.followed.see(packet, player, self._config)

    def _on_team(self, team: flat.ControllableTeamInfo) -> None:
        if team.controllables:
            self._team = team
        else:
            why = f"the server gave agent id {self.report.agent_id!r} no car to control"
            self.report.faults.add("no car", why)

    def _begin(
        self, field: flat.FieldInfo, config: flat.MatchConfiguration, team: flat.ControllableTeamInfo
    ) -> None:
        """Construct the player and report ready, now that all three parts of the handshake have arrived."""
        if (problem := misfit(self.spec, config)) is not None:
            raise Refused(problem)
        ids = [controllable.identifier for controllable in team.controllables]
        measured = self._use_measured()
        self._player = LivePlayer(
            self.spec, field, config, ids, self.report.faults, self.override, self.seed,
            None if measured is None else measured.dialect,
            None if measured is None else measured.input_latency,
            None if self.recorder is None else self.recorder.record_decision,
        )  # fmt: skip
        self._begin_forecasts(self._player)
        self.report.no_search = self._player.no_search
        timing = self._player.clock.timing
        if timing.unreachable_ticks:
            _LOG.warning(
                "actions act %d ticks later than in training: input latency %d, action delay %d",
                timing.unreachable_ticks, timing.input_latency, timing.action_delay,
            )  # fmt: skip
        estimates = self._player.decoder.estimates
        if estimates and self.spec.shadow is not False:
            _LOG.warning(
                "RocketSim is not installed, so these are estimates: %s. pip install rocketsim",
                ", ".join(estimates),
            )
        if (sizes := team_sizes(config)) is not None:
            self._player.decoder.prepare(*sizes)
        self._relay.send_msg(flat.InitComplete())

    def _begin_forecasts(self, player: LivePlayer) -> None:
        if not self.spec.forecast:
            return
        report = self.report
        if player.forecaster is None:
            report.no_forecast = player.no_forecast
            _LOG.warning("forecast is off: %s", report.no_forecast)
            return
        if report.forecast is None:
            report.forecast = player.forecaster.report
        player.forecaster.report = report.forecast
        delay = self.spec.timing.action_delay
        _LOG.info(
            "forecast is %s: over the input latency less the action delay, %d", self.spec.forecast, delay
        )

    def _use_measured(self) -> VariantFile | None:
        """Return the dialect file where it is for such a server as this one, and log what it sets."""
        measured = self.measured
        if measured is None:
            return None
        if not measured.fits(self._own_server):
            servers = ("another server", "this project's match server")
            other, here = servers[not self._own_server], servers[self._own_server]
            _LOG.warning("%s is not used: it was measured on %s, and this is %s", measured.path, other, here)
            self.report.dialect_file = None
            return None
        values = [f"{name}={value}" for name, value in measured.dialect.items()]
        if measured.input_latency is not None:
            values.append(f"input_latency={measured.input_latency}")
        _LOG.info("%s sets %s", measured.path, ", ".join(values) or "nothing")
        self.report.dialect_file = str(measured.path)
        return measured

    def _answer(self) -> None:
        packet, self._newest = self._newest, None
        if packet is None or self._player is None:
            return
        inputs = self._player.inputs()
        for index, row in inputs:
            key = row.tobytes()
            sent = self._sent.get(index)
            if sent is None or sent[0] != key:
                message = flat.InterfacePacket(player_input(index, row.tolist())).pack()
                sent = self._sent[index] = (key, message)
            self._relay.send_bytes(sent[1])
        info = packet.match_info
        if self.recorder is not None:
            for index, row in inputs:
                self.recorder.record_input(info.frame_num, index, row)
        if inputs:
            self.report.count_answer(info.frame_num, self._answered_frame)
            self._answered_frame = info.frame_num
        if self._overlay is not None:
            self._draw(self._player)
        self._collect_garbage(int(info.match_phase) in PLAYING_PHASES)

    def _draw(self, player: LivePlayer) -> None:
        text = describe_step(player.episode.report)
        if text != self._overlay:
            self._overlay = text
            self._relay.send_bytes(draw_message(text))

    def _collect_garbage(self, playing: bool) -> None:
        if playing == self._playing:
            return
        self._playing = playing
        if playing:
            gc.disable()
        else:
            gc.enable()
            gc.collect()
            self.report.write()


OVERLAY_VARIABLE: Final = "RLGYM_BRIDGE_OVERLAY"
"""Name of the environment variable; any value but 0 and the empty one turns the overlay on."""

_GROUP: Final = 71  # RLBot distinguishes a connection's groups of messages by number
_X, _Y, _SCALE = 0.02, 0.3, 1.0  # of the screen's width and height; 20 pixels a line
_WHITE, _SHADE = flat.Color(255, 255, 255, 255), flat.Color(0, 0, 0, 128)


def describe_step(report: StepReport) -> str:
    """Return a line for each car: the latest step's reward, the episode's so far, and whether it ended."""
    lines = []
    for agent, reward in report.rewards.items():
        line = f"{agent}: {reward:+.3f}, {report.returns.get(agent, 0.0):+.2f} since kickoff"
        ends = (("terminated", report.terminated), ("truncated", report.truncated))
        lines.append(line + "".join(f", {name}" for name, flags in ends if flags.get(agent)))
    return "\n".join(lines)


def draw_message(text: str) -> bytes:
    """Return the packed message that draws a text."""
    drawn = flat.String2D(text, _X, _Y, _SCALE, _WHITE, _SHADE, flat.TextHAlign.Left, flat.TextVAlign.Top)
    return flat.InterfacePacket(flat.RenderGroup([flat.RenderMessage(drawn)], _GROUP)).pack()
