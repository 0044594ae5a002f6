"""Count what happened to a bot process, and write the counts to a file."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlgym_bridge.clock import GAP_TICKS
from rlgym_bridge.live.faults import Faults
from rlgym_bridge.live.forecaster import ForecastReport

REPORT_VARIABLE = "RLGYM_BRIDGE_REPORT"
"""Name of the environment variable with the file that the report is written to, as JSON."""


@dataclass
class AgentReport:
    """Counts packets, answers and faults of one agent over all its connections.

    Attributes:
        agent_id: The agent's id.
        faults: What went wrong, by kind.
        packets: Game packets received.
        answered: Packets answered with an input.
        missed: Packets without an answer, before one that was answered.
        disconnects: Connections that ended without a goodbye.
        dialect_file: File with the server's dialect, None where there was none.
        refused: Why the bot does not play the match, None where it does.
        checkpoints: Names of the checkpoints that have played, where a run is followed.
        forecast: Counts of the forecasts; None where the bot does not look ahead.
        no_forecast: Why a bot that should look ahead does not; None where it does, or should not.
    """

    agent_id: str
    faults: Faults
    packets: int = 0
    answered: int = 0
    missed: int = 0
    disconnects: int = 0
    dialect_file: str | None = None
    refused: str | None = None
    checkpoints: Sequence[str] = ()
    forecast: ForecastReport | None = None
    no_forecast: str | None = None

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
