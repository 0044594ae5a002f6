"""Run the bot process: connect to an RLBot server, again where the connection breaks, and play.

Anything that fails costs neutral controls, a count and at most one log line a second.
"""

import logging
import os
import socket
import time
from pathlib import Path

from rlbot.interface import RLBOT_SERVER_IP, RLBOT_SERVER_PORT

from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.dialect import DialectFile
from rlgym_bridge.live.agent_recorder import begin_recording
from rlgym_bridge.live.faults import Faults
from rlgym_bridge.live.followed_run import FollowedRun
from rlgym_bridge.live.overrides import Override
from rlgym_bridge.live.session import AgentReport, BotSession, Refused

_LOG = logging.getLogger("rlgym_bridge.agent")
CONNECT_SECONDS = 120.0
RECONNECT_SECONDS = 30.0
_RECONNECT_PAUSES = (0.0, 0.1, 0.3, 1.0)  # seconds before the next connection, by those without a packet
_SILENT_CONNECTIONS = 30  # in a row without a packet, after which the bot gives up

SEED_VARIABLE = "RLGYM_BRIDGE_SEED"
"""Name of the environment variable with the seed of the first episode, a whole number."""


class Agent:
    """Plays the cars that one RLBot server gives to an agent id, match after match.

    `RLBOT_AGENT_ID`, `RLGYM_BRIDGE_SEED` and `RLGYM_BRIDGE_RECORD` stand above the arguments. `policy`, as
    `play` takes it, is stored in a recording. A `followed` run's newest checkpoint plays in place of `spec`.

    Attributes:
        server: Address and port.
        report: Counts of packets, answers and faults so far.

    Raises:
        ValueError: There is no agent id, or an environment variable is not a whole number.
    """

    def __init__(
        self,
        spec: PlayerSpec,
        agent_id: str | None = None,
        override: Override | None = None,
        seed: int | None = None,
        measured: DialectFile | None = None,
        policy: str | Path = "",
        record: str | Path | None = None,
        followed: FollowedRun | None = None,
    ) -> None:
        name = os.environ.get("RLBOT_AGENT_ID") or agent_id
        if not name:
            raise ValueError(
                "there is no agent id: RLBot sets RLBOT_AGENT_ID when it starts a bot; to start a bot by "
                "hand, set it to the agent_id in bot.toml"
            )
        self.server = server_address()
        self.report = AgentReport(name, Faults(_LOG))
        self._spec, self._followed = spec, followed
        if followed is not None:
            self.report.checkpoints = followed.taken
        self._override = override
        self._measured = measured
        self._recorder = begin_recording(name, policy, record)
        set_seed = _whole_number(SEED_VARIABLE)
        self._seed = seed if set_seed is None else set_seed

    def run(self) -> int:
        """Play until the server says goodbye.

        After a connection that ends without a goodbye the agent tries to reconnect for 30 s: at once where
        packets came, else after a pause that grows up to 1 s.

        Returns:
            0 when the server said goodbye, 1 when it could not be reached, 2 when its match has team
            sizes that the policy does not play.
        """
        try:
            return self._run()
        finally:
            if self._recorder is not None:
                self._recorder.close()

    def _run(self) -> int:
        wait, silent = CONNECT_SECONDS, 0
        report = self.report
        while True:
            packets = report.packets
            session = BotSession(
                self.server, self._spec if self._followed is None else self._followed.spec, report,
                self._override, self._seed, self._measured, self._recorder, self._followed,
            )  # fmt: skip
            try:
                session.connect(wait)
            except (OSError, TimeoutError) as error:
                _LOG.error(
                    "no RLBot server at %s:%d within %.0f s: %s. Start the match first, or set "
                    "RLBOT_SERVER_IP and RLBOT_SERVER_PORT.", *self.server, wait, error,
                )  # fmt: skip
                report.write()
                return 1
            try:
                goodbye = session.run()
            except Refused as error:
                report.refused = str(error)
                _LOG.error("%s does not play: its policy %s", report.agent_id, error)
                report.write()
                return 2
            report.write()
            if goodbye:
                return 0
            report.disconnects += 1
            wait = RECONNECT_SECONDS
            silent = silent + 1 if report.packets == packets else 0
            if silent >= _SILENT_CONNECTIONS:
                _LOG.error("the server at %s:%d closed %d connections without a packet", *self.server, silent)
                return 1
            report.faults.add("disconnected", "the server closed the connection without a goodbye")
            time.sleep(_RECONNECT_PAUSES[min(silent, len(_RECONNECT_PAUSES) - 1)])


def server_address() -> tuple[str, int]:
    """Return the RLBot server's numeric address, as rlbot's relay needs it, and its port.

    Raises:
        ValueError: `RLBOT_SERVER_IP` is not an address, or `RLBOT_SERVER_PORT` not a port.
    """
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
