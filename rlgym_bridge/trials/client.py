"""Connect the probe's two cars to a server, and answer its packets."""

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from rlbot import flat

from rlgym_bridge.client.agent_connections import AgentConnections
from rlgym_bridge.client.own_players import own_players
from rlgym_bridge.trials.battery import Probe
from rlgym_bridge.trials.findings import ProbeReport
from rlgym_bridge.trials.frames import Frame, Reply

AGENTS: Final = ("rlgym_bridge/probe-blue", "rlgym_bridge/probe-orange")
_SILENCE_SECONDS: Final = 30.0  # without a packet, after which the probe gives up


class PacketScript(Protocol):
    """Something that answers packets for two cars until it is done, such as `Probe`."""

    @property
    def done(self) -> bool:
        """Tell whether no more packets are wanted."""

    def answer(self, packet: flat.GamePacket) -> tuple[Reply, Frame | None]:
        """Answer a packet; see `Probe.answer`."""


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
        log: Callable[[bytes], None] | None = None,
        agents: Sequence[str] = AGENTS,
    ) -> None:
        """Connect both cars and wait until the match can begin.

        Args:
            server: Address and port.
            patience: Seconds to wait for each step.
            log: Called with every message that the first car's connection receives.
            agents: Agent ids of the cars in the match.

        Raises:
            NoServer: The server did not accept both agents in time.
        """
        self._connections = AgentConnections(server, agents, patience, log)
        self.field = self._connections.field
        self.ids = (self._connections.ids[0], self._connections.ids[1])

    def play(self, probe: Probe, seconds: float) -> ProbeReport:
        """Answer packets until the probe is done, the server is gone, or the time is up.

        Args:
            probe: Plays the scenes.
            seconds: Wall time after which it ends in any case.
        """
        why = self.follow(probe, seconds)
        report = probe.report()
        if why is not None:
            report.notes.append(why)
        return report

    def follow(self, script: PacketScript, seconds: float) -> str | None:
        """Answer packets as a script says until it is done.

        Args:
            script: Answers the packets.
            seconds: Wall time after which it ends in any case.

        Returns:
            Why it ended early: the server is gone, or the time is up; None where the script is done.
        """
        deadline = time.monotonic() + seconds
        try:
            while not script.done:
                left = min(_SILENCE_SECONDS, deadline - time.monotonic())
                packets = self._connections.packets(left) if left > 0.0 else []
                if not packets:
                    late = time.monotonic() >= deadline
                    return f"ended after {seconds:g} s" if late else f"no packet for {_SILENCE_SECONDS:g} s"
                for packet in packets:
                    self._answer(script, packet)
        except (EOFError, OSError) as error:
            return f"the server went away: {error}"
        return None

    def _answer(self, script: PacketScript, packet: flat.GamePacket) -> None:
        reply, frame = script.answer(packet)
        if frame is None:
            return
        desired = reply.desired(frame.indices)
        inputs = [
            flat.PlayerInput(index, controls)
            for index, controls in zip(frame.indices, reply.controls, strict=True)
        ]
        self._connections.answer(inputs, *(() if desired is None else (desired,)))

    def stop_match(self) -> None:
        """Tell the server to end the match, and wait up to 2 s for its goodbye."""
        self._connections.stop_match()

    def close(self) -> None:
        """Close both connections."""
        self._connections.close()
