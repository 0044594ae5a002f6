"""Checkpoints: `<out>/checkpoints/<steps>/`, each a policy folder with the state of the training beside it.

A checkpoint is written under another name and then renamed, so that one that is there is whole; the file
`latest` beside them names the newest.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlgym_bridge.training.settings import TrainingSettings

from rlgym_bridge.policy.files import CHECKPOINTS, LATEST, all_checkpoints


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
            write: Writes it into a folder.

        Returns:
            Its folder.
        """
        folder = self.folder / str(steps)
        unfinished, before = (self.folder / f".{steps}.{os.getpid()}{end}.tmp" for end in ("", ".before"))
        for left in self.folder.glob(".*.tmp"):  # by a run that was killed
            shutil.rmtree(left, ignore_errors=True)
        unfinished.mkdir(parents=True)
        try:
            write(unfinished)
            if folder.exists():  # the same run was begun anew here
                folder.replace(before)  # whole, in case that it cannot be removed
            unfinished.replace(folder)
        except BaseException:
            if before.exists() and not folder.exists():
                before.replace(folder)
            raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
            shutil.rmtree(before, ignore_errors=True)
        name = self.folder / f".{LATEST}.{os.getpid()}.tmp"
        name.write_text(f"{steps}\n", encoding="utf-8")
        name.replace(self.folder / LATEST)
        # By age: who went back to an earlier checkpoint keeps what comes of it.
        by_age = sorted(all_checkpoints(self._run), key=lambda path: (path == folder, path.stat().st_mtime))
        for old in by_age[: -self._keep]:
            shutil.rmtree(old, ignore_errors=True)
        return folder
