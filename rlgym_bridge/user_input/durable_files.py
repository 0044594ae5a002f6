"""Write files so that a power cut leaves the old content or the new content, never a part of it.

An operating system writes late and in any order: without fsync a renamed file may be empty afterwards.
"""

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path


def write_durably(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Replace files of a folder, given their contents by name; when this returns they survive a power cut.

    Each file is replaced at once, but a power cut may leave some of several files old. Raises OSError if a
    file cannot be written; its `filename` is that of the file. Those not yet replaced stay.
    """
    temporary = {name: folder / f".{name}.{os.getpid()}.tmp" for name in contents}
    try:
        for name, content in contents.items():
            with naming(folder / name), temporary[name].open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for name, path in temporary.items():
            path.replace(folder / name)
    finally:
        for path in temporary.values():
            with suppress(OSError):
                path.unlink(missing_ok=True)
    sync_folder(folder)


def make_folder(path: Path) -> None:
    """Make a folder and those above it; when this returns they survive a power cut."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the disk holds the names in a folder: what was made, renamed and deleted there.

    On Windows this does nothing: a folder cannot be opened there, and NTFS has a journal of its names. Raises
    OSError if the disk fails.
    """
    if os.name == "nt":
        return
    try:
        number = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder that may be passed through, but not listed
        return
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network drives sync no folders
            raise
    finally:
        os.close(number)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the name of the file to errors: those of a full disk lack it."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise
