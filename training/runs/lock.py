"""Lock the folder of a run or a league: two processes would overwrite each other's files."""

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rlgym_bridge.training.settings import SettingsError
from rlgym_bridge.user_input.durable_files import make_folder


class Locked:
    """A folder that no other process of ours writes to; a context manager. It ends with the process, too.

    Args:
        folder: Made where it is not there.
        work: What is done there, for the error and the name of the lock's file.

    Raises:
        SettingsError: Another process works there, or it cannot be written to; raised on entering.
    """

    def __init__(self, folder: Path, work: str = "training") -> None:
        self._folder, self._work = folder, work
        self._file: Any = None

    def __enter__(self) -> Self:
        """Take the lock."""
        try:
            make_folder(self._folder)
            self._file = (self._folder / f"{self._work}.lock").open("a+b")
        except OSError as error:
            raise SettingsError(
                f"{self._folder} cannot be written to: {error.strerror}, expected a folder of yours"
            ) from error
        try:
            _lock(self._file)
        except OSError as error:
            self._file.close()
            raise SettingsError(
                f"another {self._work} writes to {self._folder}: stop it, or name another folder with --out"
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Let go of it."""
        self._file.close()


if os.name == "nt":
    import msvcrt

    def _lock(file: Any) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]

else:
    import fcntl

    def _lock(file: Any) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
