"""Settings for all matches of a server."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rlgym_bridge.physics import Spread
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.server.game.rules import LONGEST_SECONDS
from rlgym_bridge.server.game.simulation import OnKickoff
from rlgym_bridge.server.net.impairments import Impairments
from rlgym_bridge.server.net.match_control import MatchControl
from rlgym_bridge.server.net.match_recorder import Sink
from rlgym_bridge.server.result import MatchStatus
from rlgym_bridge.sim.simulator import check_simulator
from rlgym_bridge.user_input.arguments import check_number, check_whole, show_value


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """Settings for all matches of a server; `MatchServer` explains each.

    Raises:
        ValueError: `pace` is unknown, a time is negative, `seconds` is more than a day, or `impairments` are
            impossible at `pace`. As `SimulatorError`: `simulator` is unknown or not installed.
        TypeError: `impairments`, `dialect` or `constants` are something else.
    """

    pace: Literal["realtime", "lockstep"]
    seed: int
    seconds: float | None
    max_overtime: float
    max_kickoff: float
    max_hang: float
    connect_timeout: float
    on_progress: Callable[[MatchStatus], None] | None
    on_kickoff: OnKickoff | None
    on_packet: Callable[[bytes], None] | None
    recorder: Sink | None
    watch: Sink | None
    log_dir: Path | None
    impairments: Impairments
    dialect: ProtocolVariant
    constants: Mapping[str, Spread]
    thrust: bool
    simulator: str | None
    allow_idle: bool
    control: MatchControl | None

    def __post_init__(self) -> None:
        """Check the values."""
        for name, kind in (
            ("impairments", Impairments),
            ("dialect", ProtocolVariant),
            ("constants", Mapping),
        ):
            if not isinstance(value := getattr(self, name), kind):
                raise TypeError(f"{name} is {show_value(value)}, expected {kind.__name__}, or None")
        if self.simulator is not None:
            check_simulator(self.simulator)
        object.__setattr__(self, "dialect", self.dialect.complete())
        check_whole("seed", self.seed)
        if self.pace not in ("realtime", "lockstep"):
            raise ValueError(f"pace is {show_value(self.pace)}, expected 'realtime' or 'lockstep'")
        for name in ("seconds", "max_overtime", "max_kickoff", "max_hang", "connect_timeout"):
            value = getattr(self, name)
            if value is not None:
                check_number(name, value, unit="seconds")
        if self.seconds is not None and self.seconds > LONGEST_SECONDS:
            raise ValueError(f"seconds is {self.seconds:g}, expected {LONGEST_SECONDS:g} (a day) at most")
        self.impairments.check_pace(self.pace)
