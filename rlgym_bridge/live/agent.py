"""The bot process: rlbot's socket in front of a `Pilot`, safe against everything a match does.

Every packet is taken in, in order (rlbot's own `Bot` drops all but the newest of a burst); one input is
sent, for the newest. Whatever fails costs neutral controls, a count and at most one log line a second.
"""

import gc
import json
import logging
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

from rlbot import flat
from rlbot.interface import RLBOT_SERVER_IP, RLBOT_SERVER_PORT, SocketRelay

from rlgym_bridge.clock import GAP_TICKS
from rlgym_bridge.episode import Brain
from rlgym_bridge.game import PLAYING_PHASES
from rlgym_bridge.live.pilot import Faults, Override, Pilot

_LOG = logging.getLogger("rlgym_bridge.agent")
_CHUNK = 1 << 18  # bytes taken in at once: 260 packets of 1v1, two seconds
CONNECT_SECONDS = 120.0
RECONNECT_SECONDS = 30.0
_RECONNECT_PAUSE = 1.0  # seconds between two connections
_SILENT_SESSIONS = 30  # connections without a packet after which the bot gives up

REPORT_VARIABLE = "RLGYM_BRIDGE_REPORT"
"""Environment variable with the file that the agent's report is written to, as JSON."""

SEED_VARIABLE = "RLGYM_BRIDGE_SEED"
"""Environment variable with the seed of the first episode, a whole number."""


class Agent:
    """Plays the cars that an RLBot server gives to one agent id, match after match of one server.

    Args:
        brain: What to play with; its instances are made anew for every session.
        agent_id: Used where `RLBOT_AGENT_ID` is not set.
        override: See `pilot.Override`.
        seed: Seed of the first episode; `RLGYM_BRIDGE_SEED` goes before it.

    Raises:
        ValueError: There is no agent id, or a variable of the environment is no number.
    """

    def __init__(
        self,
        brain: Brain,
        agent_id: str | None = None,
        override: Override | None = None,
        seed: int | None = None,
    ) -> None:
        name = os.environ.get("RLBOT_AGENT_ID") or agent_id
        if not name:
            raise ValueError(
                "there is no agent id: RLBot sets RLBOT_AGENT_ID when it starts a bot; to start one by "
                "hand set it to the agent_id of bot.toml"
            )
        self.agent_id = name
        self.server = _server_address()
        self.faults = Faults(_LOG)
        self.packets = 0
        self.answered = 0
        self.lost = 0
        self.disconnects = 0
        self._brain = brain
        self._override = override
        named = _whole_number(SEED_VARIABLE)
        self._seed = seed if named is None else named
        timing = brain.timing
        if timing.unreachable_ticks:
            _LOG.warning(
                "actions act %d ticks later than in training: input latency %d, action delay %d",
                timing.unreachable_ticks, timing.input_latency, timing.action_delay,
            )  # fmt: skip

    def run(self) -> int:
        """Play until the server says goodbye.

        A server that goes away without a word is waited for, 30 s.

        Returns:
            0 when the server said goodbye, 1 when it could not be reached (again).
        """
        wait, silent = CONNECT_SECONDS, 0
        while True:
            packets = self.packets
            session = _Session(self, self._brain, self._override, self._seed)
            try:
                session.connect(wait)
            except (OSError, TimeoutError) as error:
                _LOG.error(
                    "no RLBot server at %s:%d within %.0f s: %s. Start the match first, or set "
                    "RLBOT_SERVER_IP and RLBOT_SERVER_PORT.", *self.server, wait, error,
                )  # fmt: skip
                self.write_report()
                return 1
            goodbye = session.run()
            self.write_report()
            if goodbye:
                return 0
            self.disconnects += 1
            wait = RECONNECT_SECONDS
            silent = silent + 1 if self.packets == packets else 0
            if silent >= _SILENT_SESSIONS:
                _LOG.error("the server at %s:%d closed %d connections without a packet", *self.server, silent)
                return 1
            self.faults.add("disconnected", "the server closed the connection without a goodbye")
            time.sleep(_RECONNECT_PAUSE)

    def count_answer(self, frame: int, last: int | None) -> None:
        """Count the answer to a packet, and the packets before it that got none."""
        if last is None or not 0 <= frame - last <= GAP_TICKS:
            self.answered += 1
        elif frame > last:
            self.answered += 1
            self.lost += frame - last - 1

    def write_report(self) -> None:
        """Write what was counted to the file that `RLGYM_BRIDGE_REPORT` names, if any."""
        path = os.environ.get(REPORT_VARIABLE)
        if not path:
            return
        report = {
            "agent_id": self.agent_id,
            "packets": self.packets,
            "answered": self.answered,
            "lost": self.lost,
            "disconnects": self.disconnects,
            "faults": self.faults.counts,
        }
        try:
            part = Path(path + ".part")
            part.write_text(json.dumps(report))
            part.replace(path)
        except OSError as error:
            self.faults.add("report not written", f"{path}: {error}")


class _Session:
    """One connection."""

    def __init__(
        self,
        agent: Agent,
        brain: Brain,
        override: Override | None,
        seed: int | None,
    ) -> None:
        self._agent = agent
        self._brain = brain
        self._override, self._seed = override, seed
        self._relay = SocketRelay(agent.agent_id, logger=_LOG)
        self._field: flat.FieldInfo | None = None
        self._config: flat.MatchConfiguration | None = None
        self._team: flat.ControllableTeamInfo | None = None
        self._pilot: Pilot | None = None
        self._newest: flat.GamePacket | None = None
        self._buffer = bytearray(_CHUNK)
        self._pending = b""  # the beginning of a message whose rest has yet to come
        self._answered_frame: int | None = None
        self._playing = True
        self._goodbye = False
        self._sent: dict[int, tuple[bytes, bytes]] = {}
        self._handlers: dict[type, Callable[..., None]] = {
            flat.GamePacket: self._on_packet,
            flat.FieldInfo: self._on_field,
            flat.MatchConfiguration: self._on_config,
            flat.ControllableTeamInfo: self._on_team,
            flat.DisconnectSignal: self._on_goodbye,
        }

    def connect(self, seconds: float) -> None:
        ip, port = self._agent.server
        self._relay.connection_timeout = seconds
        self._relay.connect(
            wants_match_communications=False,
            wants_ball_predictions=False,
            close_between_matches=True,
            rlbot_server_ip=ip,
            rlbot_server_port=port,
        )

    def run(self) -> bool:
        """Take in messages and answer packets until the connection ends; tell whether by a goodbye."""
        gc.collect()
        gc.freeze()  # what lives now lives on: later collections need not look at it
        try:
            while not self._goodbye:
                for message in self._receive():
                    self._take(message)
                self._answer()
        except (EOFError, OSError):
            pass
        finally:
            gc.unfreeze()
            gc.enable()
            if self._relay.socket is not None:
                self._relay.socket.close()
        return self._goodbye

    def _receive(self) -> list[bytes]:
        """Wait for something to come; return all messages that are here, oldest first.

        One system call takes in what has queued up, where the relay's own `read_message` needs six for
        every message.
        """
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

    def _take(self, message: bytes) -> None:
        if self._goodbye:
            return
        try:
            content = flat.CorePacket.unpack(message).message
            handler = self._handlers.get(type(content))
            if handler is not None:
                handler(content)
        except flat.InvalidFlatbuffer as error:
            self._agent.faults.add("undecodable message", f"{len(message)} bytes: {error}")

    def _on_packet(self, packet: flat.GamePacket) -> None:
        self._agent.packets += 1
        if self._pilot is None:
            return
        self._pilot.see(packet)
        self._newest = packet

    def _on_field(self, field: flat.FieldInfo) -> None:
        self._field = field
        self._begin()

    def _on_config(self, config: flat.MatchConfiguration) -> None:
        self._config = config
        self._begin()

    def _on_team(self, team: flat.ControllableTeamInfo) -> None:
        if not team.controllables:
            self._agent.faults.add(
                "no car", f"the server gave agent id {self._agent.agent_id!r} no car to control"
            )
            return
        self._team = team
        self._begin()

    def _on_goodbye(self, _: flat.DisconnectSignal) -> None:
        self._goodbye = True

    def _begin(self) -> None:
        """Make the pilot and tell the server, once all three parts of the handshake are there."""
        if self._pilot or self._field is None or self._config is None or self._team is None:
            return
        ids = [one.identifier for one in self._team.controllables]
        self._pilot = Pilot(
            self._brain, self._field, self._config, ids,
            self._agent.faults, self._override, self._seed,
        )  # fmt: skip
        self._relay.send_msg(flat.InitComplete())

    def _answer(self) -> None:
        """Send one input for each car of ours, for the newest packet."""
        packet, self._newest = self._newest, None
        if packet is None or self._pilot is None:
            return
        inputs = self._pilot.inputs()
        for index, row in inputs:
            key = row.tobytes()
            sent = self._sent.get(index)
            if sent is None or sent[0] != key:
                sent = self._sent[index] = (key, _input_message(index, row.tolist()))
            self._relay.send_bytes(sent[1])
        info = packet.match_info
        if inputs:
            self._agent.count_answer(info.frame_num, self._answered_frame)
            self._answered_frame = info.frame_num
        self._tidy(int(info.match_phase) in PLAYING_PHASES)

    def _tidy(self, playing: bool) -> None:
        """Collect garbage when play stops, never while it goes on."""
        if playing == self._playing:
            return
        self._playing = playing
        if playing:
            gc.disable()
        else:
            gc.enable()
            gc.collect()
            self._agent.write_report()


def _input_message(index: int, row: list[float]) -> bytes:
    throttle, steer, pitch, yaw, roll, jump, boost, handbrake = row
    controls = flat.ControllerState(
        throttle, steer, pitch, yaw, roll, jump > 0, boost > 0, handbrake > 0, False
    )
    return flat.InterfacePacket(flat.PlayerInput(index, controls)).pack()


def _server_address() -> tuple[str, int]:
    """Return the server's numeric address, as rlbot's relay wants it, and its port."""
    host = os.environ.get("RLBOT_SERVER_IP") or RLBOT_SERVER_IP
    port = _whole_number("RLBOT_SERVER_PORT") or RLBOT_SERVER_PORT
    if not 0 < port < 65536:
        raise ValueError(f"RLBOT_SERVER_PORT is {port}, expected a TCP port from 1 to 65535")
    try:
        return str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]), port
    except OSError as error:
        raise ValueError(f"RLBOT_SERVER_IP is {host!r}, expected an address: {error}") from None


def _whole_number(variable: str) -> int | None:
    text = os.environ.get(variable)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{variable} is {text!r}, expected a whole number") from None
