"""Connect the probe's two cars to a server, and answer its packets."""

import time
from collections.abc import Sequence
from typing import BinaryIO, Final

from rlbot import flat

from rlgym_bridge.client.agent_connections import AgentConnections
from rlgym_bridge.client.own_players import own_players
from rlgym_bridge.probe.battery import Probe
from rlgym_bridge.probe.findings import ProbeReport

AGENTS: Final = ("rlgym_bridge/probe-blue", "rlgym_bridge/probe-orange")
_SILENCE_SECONDS: Final = 30.0  # without a packet, after which the probe gives up


class LogError(Exception):
    """The log cannot be written; the message names it."""


def match_of_two() -> flat.MatchConfiguration:
    """Return the match that the probe plays: 1v1 with state setting and goal replays."""
    names = ("Probe blue", "Probe orange")
    return flat.MatchConfiguration(
        game_map_upk="Stadium_P",
        player_configurations=own_players(list(zip(names, AGENTS, (0, 1), strict=True))),
        auto_start_agents=False,
        wait_for_agents=True,
        skip_replays=False,
        enable_state_setting=True,
        mutators=flat.MutatorSettings(),
    )


class Players:
    """The two cars of the probe, on a server that plays `match_of_two`.

    Attributes:
        ids: `player_id` of the cars.
        field: The boost pads of the field.
    """

    def __init__(
        self,
        server: tuple[str, int],
        patience: float,
        log: BinaryIO | None = None,
        agents: Sequence[str] = AGENTS,
    ) -> None:
        """Connect both cars and wait until the match can begin.

        Args:
            server: Address and port.
            patience: Seconds to wait for each step.
            log: File for all messages that the first car's connection receives, each after its length.
            agents: Agent ids of the cars in the match.

        Raises:
            NoServer: The server did not accept both agents in time.
            LogError: The log cannot be written.
        """
        self._log = log
        self._connections = AgentConnections(server, agents, patience, None if log is None else self._write)
        self.field = self._connections.field
        self.ids = (self._connections.ids[0], self._connections.ids[1])

    def play(self, probe: Probe, seconds: float) -> ProbeReport:
        """Answer packets until the probe is done, the server is gone, or the time is up.

        Args:
            probe: Plays the scenes.
            seconds: Wall time after which it ends in any case.

        Raises:
            LogError: The log cannot be written.
        """
        deadline = time.monotonic() + seconds
        why = None
        try:
            while not probe.done:
                left = min(_SILENCE_SECONDS, deadline - time.monotonic())
                packets = self._connections.packets(left) if left > 0.0 else []
                if not packets:
                    late = time.monotonic() >= deadline
                    why = f"ended after {seconds:g} s" if late else f"no packet for {_SILENCE_SECONDS:g} s"
                    break
                for packet in packets:
                    self._answer(probe, packet)
        except (EOFError, OSError) as error:
            why = f"the server went away: {error}"
        report = probe.report()
        if why is not None:
            report.notes.append(why)
        return report

    def _answer(self, probe: Probe, packet: flat.GamePacket) -> None:
        reply, frame = probe.answer(packet)
        if frame is None:
            return
        desired = reply.desired(frame.indices)
        inputs = [
            flat.PlayerInput(index, controls)
            for index, controls in zip(frame.indices, reply.controls, strict=True)
        ]
        self._connections.answer(inputs, *(() if desired is None else (desired,)))

    def _write(self, payload: bytes) -> None:
        assert self._log is not None  # `_write` is used only then
        try:
            self._log.write(len(payload).to_bytes(2, "big") + payload)
        except OSError as error:
            raise LogError(f"{self._log.name}: {error}") from error

    def stop_match(self) -> None:
        """Tell the server to end the match, and wait up to 2 s for its goodbye."""
        self._connections.stop_match()

    def close(self) -> None:
        """Close both connections."""
        self._connections.close()
