"""Keep the numbers of a run: progress.csv and changes.csv, TensorBoard's files, Weights & Biases.

A table that lacks a new column is put aside as progress.1.csv, then progress.2.csv. No failure to write or to
send ends training.
"""

import io
import itertools
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.training.settings import SettingsError, TrainingSettings, recorded_settings
from rlgym_bridge.user_input.durable_files import write_durably
from rlgym_bridge.user_input.extras import explain_install
from rlgym_bridge.user_input.text_files import read_bytes

CHANGES_FILE: Final = "changes.csv"
"""Beside a table: which settings became others, and from which agent steps on."""

_OLDER: Final = re.compile(r"progress\.(\d{1,9})\.csv")
_MOST_BYTES: Final = 1 << 28  # 400,000 iterations with 60 columns: five billion steps by default


def mend_table(path: Path, columns: Sequence[str], steps: int, more: Sequence[str] = ()) -> list[str]:
    """Make a table end at the steps from which a run goes on; return the columns of the lines to come.

    Lines that are damaged (a crash cut them off) or later than the checkpoint are taken out. A table that
    lacks a column is renamed to `progress.1.csv`, `progress.2.csv`, ...; as it is, if more than its last line
    is damaged, as where another program has written it. It need not be there.

    Every table has `columns`, of which the first holds the steps. Not all lines have those in `more`: nan in
    those that were written without. Raises ValueError for more than 256 MiB.
    """
    text = _read(path) if path.exists() else ""
    # Training writes numbers alone, so that no cell has a comma in it.
    rows = [row.split(",") for line in io.StringIO(text) if (row := line.rstrip("\r\n"))]
    if not rows:
        return [*columns, *more]
    head, *every = rows
    aside = head[: len(columns)] != list(columns)
    kept = [row for row in every if _is_whole(row, len(head)) and (aside or float(row[0]) <= steps)]
    new = [] if aside else [name for name in more if name not in head]
    lines = ([*head, *new], *([*row, *["nan"] * len(new)] for row in kept))
    mended = "".join(",".join(row) + "\n" for row in lines)
    if mended != text and not (aside and len(every) > len(kept) + 1):
        write_durably(path.parent, {path.name: mended.encode()})
    if aside:
        older = map(_OLDER.fullmatch, (one.name for one in path.parent.iterdir()))
        path.rename(path.with_suffix(f".{1 + max((int(one[1]) for one in older if one), default=0)}.csv"))
        return [*columns, *more]
    return [*head, *new]


def add_changes(run: Path, steps: int, changed: Mapping[str, str]) -> None:
    """Add settings that changed at so many agent steps, and how, to a run's `CHANGES_FILE`."""
    _write_changes(run, [*read_changes(run), *((steps, f"{name} {how}") for name, how in changed.items())])


def forget_changes(run: Path, steps: int) -> None:
    """Take out changes at as many agent steps or more: the run goes on from there."""
    found = read_changes(run)
    kept = [change for change in found if change[0] < steps]
    if len(kept) < len(found):
        _write_changes(run, kept)


def read_changes(run: Path) -> list[tuple[int, str]]:
    """Return the changes of a run's settings: agent steps, and `goal 10.0 -> 5.0`, but for damaged lines."""
    path = run / CHANGES_FILE
    found = []
    for line in _read(path).splitlines()[1:] if path.is_file() else ():
        steps, _, text = line.partition(",")
        if steps.isascii() and steps.isdecimal() and len(steps) < 16:
            found.append((int(steps), text))
    return found


def _write_changes(run: Path, changes: Sequence[tuple[int, str]]) -> None:
    lines = ["steps,change", *(f"{steps},{text}" for steps, text in changes)]
    write_durably(run, {CHANGES_FILE: "".join(f"{line}\n" for line in lines).encode()})


def _read(path: Path) -> str:
    """Return the text of a table, damaged or not."""
    return read_bytes(path, _MOST_BYTES, "the table of a training run").decode("utf-8", errors="replace")


def _is_whole(row: Sequence[str], width: int) -> bool:
    try:
        return len([float(cell) for cell in row]) == width
    except ValueError:
        return False


try:
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING
    from tensorboard.summary.writer.record_writer import RecordWriter
except ImportError as missing:
    raise ImportError(f"training needs tensorboard: {explain_install('train')}") from missing

_ID_FILE: Final = "wandb_id.txt"  # by which a resumed run goes on with its curves


def import_wandb(settings: TrainingSettings) -> Any:
    """Return the package, None for no project; raises SettingsError where it is not installed."""
    if not settings.wandb:
        return None
    try:
        module = import_module("wandb")
        module.init  # a folder `wandb` here, which the package leaves behind, has none  # noqa: B018
    except (ImportError, AttributeError) as error:
        lacks = isinstance(error, ImportError) and error.name not in (None, "wandb")
        why = f"cannot be imported ({error})" if lacks else "is not installed"
        raise SettingsError(
            f'wandb is "{settings.wandb}", and the package wandb {why}: '
            f"{explain_install('wandb')}, or take wandb out of the settings"
        ) from error
    return module


class WandbRun:
    """A run of Weights & Biases; no failure to send ends training. With any `steps` an earlier run goes on.

    Raises SettingsError where the package is not installed, or begins no run, as where nobody is signed in.
    """

    def __init__(
        self, settings: TrainingSettings, steps: int, quiet: bool, say: Callable[[str], None]
    ) -> None:
        wandb, self._say, self._failed = import_wandb(settings), say, False
        out = Path(settings.out)
        config = recorded_settings(settings)
        del config["out"]  # a place on this machine
        try:
            self._run: Any = wandb.init(
                project=settings.wandb, name=out.name, id=_identify(out, steps), resume="allow", dir=str(out),
                config=config, settings=wandb.Settings(console="off", silent=quiet),
            )  # fmt: skip
            self._run.define_metric("steps")
            self._run.define_metric("*", step_metric="steps")
        except Exception as error:  # of a package of others and of a service elsewhere
            why = str(error).strip().partition("\n")[0]
            raise SettingsError(
                f'wandb is "{settings.wandb}", and no run begins there ({why}): `wandb login` signs in, and '
                f"WANDB_MODE=offline keeps the curves in {out / 'wandb'}"
            ) from error

    def add(self, scalars: Mapping[str, float], steps: int) -> None:
        """Send numbers by name, after so many agent steps."""
        try:
            self._run.log({**scalars, "steps": steps})
            self._failed = False
        except Exception as error:
            if not self._failed:
                self._say(f"wandb does not take the curves: {error}; training goes on")
            self._failed = True

    def close(self) -> None:
        """Send what is left."""
        try:
            self._run.finish()
        except Exception as error:
            self._say(f"wandb did not take the last curves: {error}")


def _identify(out: Path, steps: int) -> str:
    """Return what the run is called there: a new name at the first step, else the one that it had."""
    file = out / _ID_FILE
    if steps and file.is_file():
        return file.read_text(encoding="utf-8").strip()
    name = secrets.token_hex(4)
    write_durably(out, {_ID_FILE: f"{name}\n".encode()})
    return name


class Board:
    """Writes scalars for TensorBoard; no failure to write ends training.

    Each iteration is on the disk at once. Where the file was deleted meanwhile, another one begins.
    TensorBoard forgets what an earlier file has beyond `steps`. `tell` is called with the file and the error,
    once for each row of failures. Raises OSError where the first file cannot be made.
    """

    def __init__(self, folder: Path, steps: int, tell: Callable[[Path, OSError], None]) -> None:
        self._folder, self._tell, self._failed = folder, tell, False
        self._begin(steps)

    def _begin(self, steps: int) -> None:
        """Begin a file; its name and its first events are those that TensorBoard expects."""
        self._folder.mkdir(parents=True, exist_ok=True)
        stem = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
        places = (self._folder / f"{stem}.{number}" for number in itertools.count())
        self._path = next(path for path in places if not path.exists())
        self._file = self._path.open("wb", buffering=0)
        now, version = time.time(), "brain.Event:2"
        events = [Event(wall_time=now, file_version=version)]
        if steps:
            start = SessionLog(status=SessionLog.START)
            events += [
                Event(wall_time=now, step=steps + 1, file_version=version),
                Event(wall_time=now, step=steps + 1, session_log=start),
            ]
        try:
            self._write(events)
        except OSError:
            self.close()
            self._path.unlink(missing_ok=True)
            raise

    def add(self, scalars: Mapping[str, float], steps: int) -> None:
        """Write numbers by tag, after so many agent steps."""
        self._add([Summary.Value(tag=name, simple_value=value) for name, value in scalars.items()], steps)

    def note(self, tag: str, text: str, steps: int) -> None:
        """Write a text, which TensorBoard shows beside the curves."""
        content = TensorProto(dtype=DT_STRING, string_val=[text.encode()])
        content.tensor_shape.dim.add().size = 1
        kind = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        self._add([Summary.Value(tag=f"{tag}/text_summary", tensor=content, metadata=kind)], steps)

    def _add(self, values: Sequence[Any], steps: int) -> None:
        event = Event(wall_time=time.time(), step=steps, summary=Summary(value=values))
        try:
            if not self._path.exists():
                self.close()
                self._begin(0)
            self._write([event])
            self._failed = False
        except OSError as error:
            if not self._failed:
                self._tell(self._path, error)
            self._failed = True

    def _write(self, events: Sequence[Event]) -> None:
        """Write events whole, or none of them: TensorBoard reads no further than a damaged one."""
        data = io.BytesIO()
        writer = RecordWriter(data)
        for event in events:
            writer.write(event.SerializeToString())
        left, size = data.getbuffer(), self._file.tell()
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            self._file.truncate(size)
            self._file.seek(size)
            raise

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._file.close()
