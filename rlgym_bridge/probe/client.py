"""The probe on the wire: a connection for each of its two cars, a match between the two of them."""

import logging
import select
import time
from contextlib import suppress
from types import TracebackType
from typing import BinaryIO, Final, Self

from rlbot import flat

from rlgym_bridge.probe.battery import Probe
from rlgym_bridge.probe.connection import Connection
from rlgym_bridge.probe.findings import Report

_LOG = logging.getLogger("rlgym_bridge.probe")

AGENTS: Final = ("rlgym_bridge/probe-blue", "rlgym_bridge/probe-orange")
_OCTANE: Final = 23  # `car_id` of a loadout
_RETRY_SECONDS: Final = 0.2
_SILENCE_SECONDS: Final = 30.0  # without a packet, after which the server is given up
_GOODBYE_SECONDS: Final = 2.0


class NoServer(Exception):
    """There is no server, or it does not let the probe play; the message says what was missing."""


class LogError(Exception):
    """The log cannot be written; the message names it."""


def match_of_two() -> flat.MatchConfiguration:
    """Return the match that the probe plays: 1v1, states can be set, goals are replayed."""
    players = [
        flat.PlayerConfiguration(
            flat.CustomBot(
                name=f"Probe {name}", root_dir="", run_command="", agent_id=agent,
                loadout=flat.PlayerLoadout(car_id=_OCTANE),
            ),
            team,
            0,
        )
        for team, (name, agent) in enumerate(zip(("blue", "orange"), AGENTS, strict=True))
    ]  # fmt: skip
    return flat.MatchConfiguration(
        game_map_upk="Stadium_P",
        player_configurations=players,
        auto_start_agents=False,
        wait_for_agents=True,
        skip_replays=False,
        enable_state_setting=True,
        mutators=flat.MutatorSettings(),
    )


class Players:
    """The two cars of the probe, on a server that has been told to play `match_of_two`.

    Attributes:
        ids: Their `player_id`.
        field: The field's pads.
    """

    def __init__(self, server: tuple[str, int], patience: float, log: BinaryIO | None = None) -> None:
        """Connect both cars and wait until the match can begin.

        Args:
            server: Address and port.
            patience: Seconds to wait for each step.
            log: Where all that the first car is sent is written, as on the wire.

        Raises:
            NoServer: The server did not let them in, in time.
            LogError: The log cannot be written.
        """
        self._log = log
        self._complained = -1.0  # when it was last said that a message cannot be read
        self._cars: list[Connection] = []
        self._held = flat.PlayerInput()  # what the second car was told last
        self.field = flat.FieldInfo()
        ids = []
        try:
            for agent in AGENTS:
                ids.append(self._take_seat(server, agent, time.monotonic() + patience))
            for one in self._cars:
                one.send(flat.InitComplete())
        except OSError as error:
            self.close()
            raise NoServer(f"the server at {server[0]}:{server[1]} went away: {error}") from error
        except (NoServer, LogError):
            self.close()
            raise
        self.ids = (ids[0], ids[1])

    def _take_seat(self, server: tuple[str, int], agent: str, deadline: float) -> int:
        """Connect one car, again where the server closes (it does when a match begins); return its id."""
        why = "nothing listens there"
        while time.monotonic() < deadline:
            try:
                connection = Connection(server)
            except OSError as error:
                why = str(error)
                time.sleep(_RETRY_SECONDS)
                continue
            try:
                connection.send(flat.ConnectionSettings(agent, False, False, True))
                identifier = self._shake_hands(connection, deadline)
            except (EOFError, OSError) as error:
                connection.close()
                why = str(error)
                time.sleep(_RETRY_SECONDS)
                continue
            self._cars.append(connection)
            return identifier
        raise NoServer(f"no seat for {agent} at {server[0]}:{server[1]}: {why}")

    def _shake_hands(self, connection: Connection, deadline: float) -> int:
        identifier: int | None = None
        field = False
        while identifier is None or not field:
            payload = connection.receive(max(0.0, deadline - time.monotonic()))
            if payload is None:
                raise EOFError(
                    "the server gave it no car" if identifier is None else "the server sent no field info"
                )
            if not self._cars:
                self._write(payload)
            message = self._message(payload)
            if isinstance(message, flat.FieldInfo):
                self.field, field = message, True
            elif isinstance(message, flat.ControllableTeamInfo) and message.controllables:
                identifier = message.controllables[0].identifier
                self._held = flat.PlayerInput(message.controllables[0].index, flat.ControllerState())
            elif isinstance(message, flat.DisconnectSignal):
                raise EOFError("the server said goodbye")
        return identifier

    def play(self, probe: Probe, seconds: float) -> Report:
        """Answer packets until the probe is done, the server is gone, or the time is up.

        Args:
            probe: What to ask.
            seconds: Wall time after which it ends whatever is known.

        Raises:
            LogError: The log cannot be written.
        """
        deadline = time.monotonic() + seconds
        why = None
        try:
            while not probe.done:
                left = min(_SILENCE_SECONDS, deadline - time.monotonic())
                payload = self._receive(left) if left > 0.0 else None
                if payload is None:
                    late = time.monotonic() >= deadline
                    why = f"ended after {seconds:g} s" if late else f"no packet for {_SILENCE_SECONDS:g} s"
                    break
                self._take(probe, payload)
        except (EOFError, OSError) as error:
            why = f"the server went away: {error}"
        report = probe.report()
        if why is not None:
            report.notes.append(why)
        return report

    def _receive(self, seconds: float) -> bytes | None:
        """Return the first car's next message, None where none came in time.

        A packet that only the second car was sent is answered with what that car holds: a server in
        lockstep would wait for it. The first car's, where there is one, is sent before the second's.
        """
        first, second = self._cars
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0.0:
            ready, _, _ = select.select((first, second), (), (), left)
            if (payload := first.receive(0.0)) is not None:
                return payload
            if second in ready:
                second.drain()
                second.send(self._held)
        return None

    def _take(self, probe: Probe, payload: bytes) -> None:
        self._write(payload)
        message = self._message(payload)
        if isinstance(message, flat.DisconnectSignal):
            raise EOFError("it said goodbye")
        if not isinstance(message, flat.GamePacket):
            return
        reply, frame = probe.answer(message)
        self._cars[1].drain()
        if frame is None:
            return
        desired = reply.desired(frame.slots)
        first, self._held = (
            flat.PlayerInput(slot, controls)
            for slot, controls in zip(frame.slots, reply.controls, strict=True)
        )
        self._cars[0].send(*(() if desired is None else (desired,)), first)
        self._cars[1].send(self._held)

    def _message(self, payload: bytes) -> object:
        """Unpack a message; one that cannot be read is as good as one of another kind."""
        try:
            return flat.CorePacket.unpack(payload).message
        except flat.InvalidFlatbuffer as error:
            now = time.monotonic()
            if now - self._complained >= 1.0:  # there may be thousands
                self._complained = now
                _LOG.warning("undecodable message of %d bytes: %s", len(payload), error)
            return None

    def _write(self, payload: bytes) -> None:
        if self._log is None:
            return
        try:
            self._log.write(len(payload).to_bytes(2, "big") + payload)
        except OSError as error:
            raise LogError(f"{self._log.name}: {error}") from error

    def stop_match(self) -> None:
        """Tell the server to end the match, and wait a little until it says goodbye."""
        deadline = time.monotonic() + _GOODBYE_SECONDS
        with suppress(EOFError, OSError):
            self._cars[0].send(flat.StopCommand(False))
            while (payload := self._cars[0].receive(deadline - time.monotonic())) is not None:
                if isinstance(self._message(payload), flat.DisconnectSignal):
                    break

    def close(self) -> None:
        """Hang up."""
        for one in self._cars:
            with suppress(OSError):
                one.send(flat.DisconnectSignal())
            one.close()

    def __enter__(self) -> Self:
        """Return the cars themselves."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Hang up."""
        self.close()
