"""Define the settings for all matches of a server."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from rlbot import flat

from rlgym_bridge.physics import Spread
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.server.game.roster import Roster
from rlgym_bridge.server.game.rules import LONGEST_SECONDS
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.game.simulation import OnKickoff
from rlgym_bridge.server.net.impairments import Impairments
from rlgym_bridge.server.result import MatchStatus
from rlgym_bridge.sim.simulator import check_simulator
from rlgym_bridge.user_input.arguments import check_number, check_whole, show_value


class MatchControl(Protocol):
    """Follows a match tick by tick, in the thread that plays it.

    Whatever it takes delays the match. `see` is called after a packet was sent, `act` right before the next
    tick, so that what a human pressed meanwhile acts in it.
    """

    stays: bool  # a match that is over, or that all bots have left, goes on until it is stopped

    def begin(self, match: Match, roster: Roster, hold: Callable[[int, flat.ControllerState], bool]) -> None:
        """Take a match before its first packet; `hold` takes the inputs of a car, by its index in packets."""

    def see(self, packet: flat.GamePacket) -> None:
        """Take the packet of a tick."""

    def act(self) -> bool:
        """Give the inputs of the next tick; tell whether the match goes on, else it is asked again soon."""


class Sink(Protocol):
    """Takes the messages of matches: a `Recorder`, or a `Watch`."""

    def put(self, topic: str, frame: int, content: bytes, head: bool = False) -> None:
        """Take a message; see `Recorder.put`."""

    def tell(self, name: str, values: Mapping[str, str]) -> None:
        """Take metadata."""


@dataclass(kw_only=True, repr=False, eq=False)
class HostSettings:
    """Settings for all matches of a server; `MatchServer` explains each, and what is raised."""

    pace: Literal["realtime", "lockstep"] = "realtime"
    seed: int = 0
    seconds: float | None = None
    max_overtime: float = 300.0
    max_kickoff: float = 300.0
    max_hang: float = 60.0
    connect_timeout: float = 60.0
    on_progress: Callable[[MatchStatus], None] | None = None
    on_kickoff: OnKickoff | None = None
    on_packet: Callable[[bytes], None] | None = None
    recorder: Sink | None = None
    watch: Sink | None = None
    log_dir: Path | None = None
    impairments: Impairments | None = None
    dialect: ProtocolVariant | None = None
    constants: Mapping[str, Spread] | None = None
    simulator: str | None = None
    allow_clients: bool = False
    allow_idle: bool = False
    control: MatchControl | None = None

    def __post_init__(self) -> None:
        kinds = {"impairments": Impairments, "dialect": ProtocolVariant, "constants": Mapping}
        for name, kind in kinds.items():
            if (value := getattr(self, name)) is not None and not isinstance(value, kind):
                raise TypeError(f"{name} is {show_value(value)}, expected {kind.__name__}, or None")
        if self.simulator is not None:
            check_simulator(self.simulator)
        self.dialect = (self.dialect or ProtocolVariant()).complete()
        check_whole("seed", self.seed)
        if self.pace not in ("realtime", "lockstep"):
            raise ValueError(f"pace is {show_value(self.pace)}, expected 'realtime' or 'lockstep'")
        for name in ("seconds", "max_overtime", "max_kickoff", "max_hang", "connect_timeout"):
            value = getattr(self, name)
            if value is not None:
                check_number(name, value, unit="seconds")
        if self.seconds is not None and self.seconds > LONGEST_SECONDS:
            raise ValueError(f"seconds is {self.seconds:g}, expected {LONGEST_SECONDS:g} (a day) at most")
        if self.impairments is not None:
            self.impairments.check_pace(self.pace)
        self.allow_idle |= self.control is not None and self.control.stays
