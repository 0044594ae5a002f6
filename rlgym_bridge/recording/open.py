"""Open any kind of recording."""

from pathlib import Path

from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.recording.mcap.mcap_reader import MAGIC
from rlgym_bridge.recording.mcap.mcap_writer import RecordingError
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.recording.replays.replay_recording import read_replay
from rlgym_bridge.recording.replays.replicar_recording import read_replicar
from rlgym_bridge.recording.tables.table_recording import read_table
from rlgym_bridge.user_input.text_files import check_file


def open_recording(path: str | Path, columns: str | Path | None = None, *, shadow: bool = True) -> Recording:
    """Read a recording: a match of ours, a replay of the game, or a table of somebody else's.

    Args:
        path: `.mcap`, which gives a `MatchRecording`; `.replay`; `.parquet`, a replay that replicar has
            converted; or CSV, text or JSON lines.
        columns: The TOML file that says what is in a table's columns; see `docs/columns/`. Matches and
            replays need none and take no notice of it, so that all can be named in one command.
        shadow: See `read_match`.

    Raises:
        OSError: The file cannot be opened.
        RecordingError: It cannot be read.
        ValueError: A table or a replay cannot be read.
        ImportError: What replays and `.parquet` need is not installed; the message says what to do.
    """
    path = Path(path)
    try:
        check_file(path, "a recording")
        if columns is not None:
            check_file(Path(columns), "the map of a table's columns")
    except ValueError as error:
        raise RecordingError(str(error)) from None
    with path.open("rb") as stream:
        begins = stream.read(len(MAGIC))
    if begins == MAGIC or path.suffix == ".mcap":
        return read_match(path, shadow=shadow)
    if path.suffix == ".replay":
        return read_replay(path)
    if path.suffix == ".parquet":
        return read_replicar(path)
    if columns is not None:
        return read_table(path, Path(columns))
    raise RecordingError(
        f"{path} is no .mcap and no .replay; a table needs --columns MAP.toml: what its columns hold"
    )
