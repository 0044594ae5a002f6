"""Checkpoints: `<out>/checkpoints/<steps>/`, each a policy folder with the state of the training beside it.

A checkpoint is written under another name and then renamed, so that one that is there is whole; the file
`latest` beside them names the newest.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_LATEST: Final = "latest"


class Checkpoints:
    """The checkpoints of one run.

    Args:
        out: Folder of the run.
        keep: How many of the newest are kept; 0 for all.
    """

    def __init__(self, out: Path, keep: int = 0) -> None:
        self.folder = out / "checkpoints"
        self._keep = keep

    def latest(self) -> Path | None:
        """Return the newest checkpoint; None where there is none."""
        found = self.all()
        try:
            named = self.folder / (self.folder / _LATEST).read_text(encoding="utf-8").strip()
        except (FileNotFoundError, NotADirectoryError):
            named = None
        if named in found:
            return named
        return found[-1] if found else None

    def save(self, steps: int, write: Callable[[Path], Any]) -> Path:
        """Write a checkpoint and remove the oldest ones.

        Args:
            steps: Agent steps trained; its name.
            write: Writes it into a folder.

        Returns:
            Its folder.
        """
        folder = self.folder / str(steps)
        unfinished = self.folder / f".{steps}.{os.getpid()}.tmp"
        unfinished.mkdir(parents=True)
        try:
            write(unfinished)
            if folder.exists():  # the same run was begun anew here
                shutil.rmtree(folder)
            unfinished.replace(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        name = self.folder / f".{_LATEST}.{os.getpid()}.tmp"
        name.write_text(f"{steps}\n", encoding="utf-8")
        name.replace(self.folder / _LATEST)
        for old in self.all()[: -self._keep] if self._keep else ():
            shutil.rmtree(old, ignore_errors=True)
        return folder

    def all(self) -> list[Path]:
        """Return them all, the newest last."""
        names = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted((path for path in names if path.name.isdigit()), key=lambda path: int(path.name))


def policy_path(given: str) -> str:
    """Return the newest checkpoint where the folder of a run, its `checkpoints` or `latest` is given.

    Anything else is returned as it is.
    """
    path = Path(given).absolute()
    for run in (path, path.parent, path.parent.parent):
        checkpoints = Checkpoints(run)
        if path in (run, checkpoints.folder, checkpoints.folder / _LATEST):
            newest = checkpoints.latest()
            if newest is not None:
                return str(newest)
    return given
