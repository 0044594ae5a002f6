"""Connect a script's two cars to a server, and answer its packets."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from rlbot import flat

from rlgym_bridge.client.agent_connections import AgentConnections, own_players
from rlgym_bridge.trials.scene_player import Frame, Reply, SceneScript

AGENTS: Final = ("rlgym_bridge/probe-blue", "rlgym_bridge/probe-orange")
_SILENCE_SECONDS: Final = 30.0  # without a packet, after which the server is given up


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
    """The two cars of a script, on a server that plays a match such as `match_of_two`.

    Args:
        server: Address and port.
        patience: Seconds to wait for each step.
        log: Called with every message that the first car's connection receives.
        agents: Agent ids of the cars in the match.
        sent: Called with each reply before it is sent, and the frame that it answers.

    Attributes:
        ids: `player_id` of the cars.
        field: The boost pads of the field.

    Raises:
        NoServer: The server did not accept both agents in time.
    """

    def __init__(
        self,
        server: tuple[str, int],
        patience: float,
        log: Callable[[bytes], None] | None = None,
        agents: Sequence[str] = AGENTS,
        sent: Callable[[Reply, Frame], None] = lambda reply, frame: None,
    ) -> None:
        self._connections = AgentConnections(server, agents, patience, log)
        self._sent = sent
        self.field = self._connections.field
        self.ids = (self._connections.ids[0], self._connections.ids[1])

    def follow(self, script: SceneScript, seconds: float) -> None:
        """Answer packets as a script says until it is done; its notes say why it ended early.

        Args:
            script: Answers the packets.
            seconds: Wall time after which it ends in any case.
        """
        deadline = time.monotonic() + seconds
        try:
            while not script.done:
                left = min(_SILENCE_SECONDS, deadline - time.monotonic())
                packets = self._connections.packets(left) if left > 0.0 else []
                for packet in packets:
                    self._answer(script, packet)
                if not packets:
                    late = time.monotonic() >= deadline
                    why = f"ended after {seconds:g} s" if late else f"no packet for {_SILENCE_SECONDS:g} s"
                    script.notes.append(why)
                    return
        except (EOFError, OSError) as error:
            script.notes.append(f"the server went away: {error}")

    def _answer(self, script: SceneScript, packet: flat.GamePacket) -> None:
        reply, frame = script.answer(packet)
        if frame is None:
            return
        self._sent(reply, frame)
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
