"""Checkpoints: `<out>/checkpoints/<steps>/`, each a policy folder with the state of the training beside it.

A checkpoint is written under another name and then renamed, so that one that is there is whole; the file
`latest` beside them names the newest. Everything is on the disk before an older one is deleted, so that a
power cut takes at most the checkpoint that is being written.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlgym_bridge.policy.files import CHECKPOINTS, LATEST, all_checkpoints
from rlgym_bridge.training.settings import TrainingSettings
from rlgym_bridge.user_input.durable_files import make_folder, sync_folder, write_durably


def has_checkpoint(settings: TrainingSettings, before: int, after: int) -> bool:
    """Return whether a checkpoint follows an iteration, from its agent steps before and after it."""
    return after // settings.checkpoint_every > before // settings.checkpoint_every


class Checkpoints:
    """The checkpoints of one run.

    Args:
        out: Folder of the run.
        keep: How many of the newest are kept, 1 or more.
    """

    def __init__(self, out: Path, keep: int) -> None:
        self._run, self.folder = out, out / CHECKPOINTS
        self._keep = keep

    def save(self, steps: int, write: Callable[[Path], Any]) -> Path:
        """Write a checkpoint and remove the oldest ones.

        Args:
            steps: Agent steps trained; its name.
            write: Writes it into a folder, durably.

        Returns:
            Its folder.

        Raises:
            OSError: It cannot be written; its `filename` is the checkpoint. The others stay.
        """
        try:
            folder = self.replace(steps, write)
            write_durably(self.folder, {LATEST: f"{steps}\n".encode()})
        except OSError as error:
            if error.errno is not None and not isinstance(error, FileExistsError | IsADirectoryError):
                error.filename, error.filename2 = str(self.folder / str(steps)), None
            raise
        # By steps, since a clock may be set back. Someone who went back left those with more steps.
        found = sorted(all_checkpoints(self._run), key=lambda one: (int(one.name) <= steps, int(one.name)))
        for old in found[: -self._keep]:
            shutil.rmtree(old, ignore_errors=True)
        return folder

    def replace(self, steps: int, write: Callable[[Path], Any]) -> Path:
        """Write a checkpoint in place of the one of as many steps, if there is one.

        Args:
            steps: Its name.
            write: Writes it into a folder, durably.

        Returns:
            Its folder.
        """
        folder = self.folder / str(steps)
        unfinished, before = (self.folder / f".{steps}.{os.getpid()}{end}.tmp" for end in ("", ".before"))
        make_folder(self.folder)
        self.recover()
        unfinished.mkdir()
        try:
            write(unfinished)
            if folder.exists():  # training went back, and comes here again
                folder.replace(before)
            unfinished.replace(folder)
            sync_folder(self.folder)
        except BaseException:
            if before.exists() and not folder.exists():
                before.replace(folder)
            raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
            shutil.rmtree(before, ignore_errors=True)
        return folder

    def is_interrupted(self) -> bool:
        """Return whether a process ended while it replaced a checkpoint, whose former content is left."""
        return any(self.folder.glob(".*.before.tmp"))

    def recover(self) -> None:
        """Put back what a process had to replace that ended meanwhile, and remove what it left unfinished."""
        for before in self.folder.glob(".*.before.tmp"):
            steps = before.name.split(".")[1]
            folder = self.folder / steps
            if steps.isdecimal() and before.is_dir() and not before.is_symlink() and not folder.exists():
                before.replace(folder)
        for left in self.folder.glob(".*.tmp"):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
