"""Record a match: the server and each bot write a file, and these are merged into one."""

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.cli import output_files
from rlgym_bridge.dialect import Dialect
from rlgym_bridge.live.agent_recorder import RECORD_VARIABLE
from rlgym_bridge.physics import Spread
from rlgym_bridge.recording.mcap.drawable import state_message
from rlgym_bridge.recording.mcap.mcap_reader import MAGIC
from rlgym_bridge.recording.mcap.mcap_writer import Recorder, RecordingError, parts_of
from rlgym_bridge.recording.mcap.merge import bot_file, bot_files, left_over, merge
from rlgym_bridge.server import Impairments
from rlgym_bridge.server.server_errors import ConfigError
from rlgym_bridge.sim.simulator import simulator_for
from rlgym_bridge.user_input.arguments import count_of

_WAIT_SECONDS: Final = 10.0  # for bots to write what is left when their match is over
_POLL_SECONDS: Final = 0.1
_PACKAGES: Final = ("rlbot", "rocketsim", "rlgym-rocket-league", "numpy")


def describe_match(
    mode: str,
    impairments: Impairments,
    dialect: Dialect,
    constants: Mapping[str, Spread],
    simulator: str | None,
    **more: Any,
) -> dict[str, Any]:
    """Return what a server's recording says of its match."""
    return {
        "by": "server", "world": asdict(impairments),
        "dialect": [f"{name}={value}" for name, value in dialect.complete().items()],
        "physics": {name: one.value for name, one in constants.items()},
        "simulator": simulator or simulator_for(mode)[0],
        "versions": {name: version(name) for name in _PACKAGES},
    } | more  # fmt: skip


class RecordedMatch:
    """The recording of a match: its file, and until it is over one for each bot beside it.

    Args:
        file: The recording; None where there is to be none.

    Attributes:
        file: The recording, links followed.
        failed: Why it is not whole; None where it is, as far as is known.

    Raises:
        ConfigError: The file is no `.mcap`, is there already, or an earlier match left something beside it.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = None if file is None else file.resolve()  # a link to a file yet to be made stays
        self.failed: str | None = None
        self._recorder: Recorder | None = None
        if self.file is None:
            return
        if self.file.suffix != ".mcap":
            raise ConfigError(f"--record is {file}, expected a file whose name ends with .mcap")
        if self.file.exists():
            raise ConfigError(f"--record is {file}, which is there already; expected a new file")
        output_files.check_outputs(self.file)
        if parts := left_over(self.file):
            raise ConfigError(
                f"--record is {file}, but beside it lie {', '.join(one.name for one in parts)}, left by a "
                "match that was killed: move or remove them (each .mcap is a recording by itself), or record "
                "to another file"
            )

    def environment(self, player: int) -> dict[str, str]:
        """Return the environment variables that make a bot's process record."""
        return {} if self.file is None else {RECORD_VARIABLE: str(bot_file(self.file, player))}

    def recorder(
        self,
        options: argparse.Namespace,
        mode: str,
        impairments: Impairments,
        dialect: Dialect,
        constants: Mapping[str, Spread],
    ) -> Recorder | None:
        """Begin the server's file.

        Raises:
            ConfigError: It cannot be made.
        """
        if self.file is None:
            return None
        about = describe_match(
            mode, impairments, dialect, constants, options.simulator, pace=options.pace, seed=options.seed
        )
        try:
            self._recorder = Recorder(self.file, about, prepare=state_message)
        except RecordingError as error:
            raise ConfigError(str(error)) from error
        return self._recorder

    def finish(self) -> None:
        """Merge all files into one; of a match that never began nothing is left."""
        if self.file is None:
            return
        if self._recorder is not None:
            self._recorder.close()
            self.failed = self._recorder.failed
            if self.failed is None and self._recorder.dropped:
                missing = count_of(self._recorder.dropped, "message")
                self.failed = f"{missing} could not be written in time and are missing"
            if self._recorder.is_empty:
                for file in (self.file, *bot_files(self.file)):
                    file.unlink(missing_ok=True)
                self.file = None
                return
        else:  # bots that another server started
            _wait_until_written(self.file)
        try:
            notes = merge(self.file, bot_files(self.file))
        except OSError as error:
            self.failed = f"the bots' recordings stay beside it: {error}"
            notes = [f"{self.file}: {self.failed}"]
        for note in notes:
            print(f"warning: {note}", file=sys.stderr)


def _wait_until_written(file: Path) -> None:
    """Wait until the bots' recordings beside a file have their end, or the time is up."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline:
        files = [part for one in bot_files(file) for part in (one, *parts_of(one))]
        if all(map(_has_end, files)):
            return
        time.sleep(_POLL_SECONDS)


def _has_end(file: Path) -> bool:
    """Tell whether a recording ends as MCAP files do."""
    with file.open("rb") as stream:
        stream.seek(max(file.stat().st_size - len(MAGIC), len(MAGIC)))  # it begins in the same way
        return stream.read() == MAGIC
