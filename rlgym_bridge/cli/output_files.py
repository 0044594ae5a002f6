"""Check before the work that results can be written and replace nothing that is needed; write them."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from rlgym_bridge.policy.carried_modules import check_place
from rlgym_bridge.policy.files import (
    CHECKPOINTS,
    FINGERPRINT_FILE,
    LATEST,
    MANIFEST_FILE,
    WEIGHTS_FILE,
    run_of,
)
from rlgym_bridge.policy.run_modules import RUN_FILE
from rlgym_bridge.server import ConfigError
from rlgym_bridge.user_input.durable_files import naming

_NAMES: Final = (
    MANIFEST_FILE, FINGERPRINT_FILE, WEIGHTS_FILE, LATEST, RUN_FILE, "training.pt", "training.lock",
)  # fmt: skip
_KEPT: Final = re.compile("|".join(map(re.escape, _NAMES)) + r"|progress(\.\d+)?\.csv")
"""Files of policy folders and training runs, by name; no result replaces one that is there."""


def check_outputs(*paths: Path | None, inputs: Iterable[Path | None] = ()) -> None:
    """Raise ConfigError if files to write are the same, cannot be written, are needed, or among the `inputs`.

    None stands for one that was not asked for. No empty file is left.
    """
    check_different(*paths)
    read = [path for path in inputs if path is not None and path.exists()]
    for path in filter(None, paths):
        if path.exists() and any(path.samefile(other) for other in read):
            raise ConfigError(f"{path} is read and would be replaced by an output, expected another file")
        if path.is_file() and _KEPT.fullmatch(path.resolve().name):
            raise ConfigError(
                f"{path} belongs to a policy folder or a training run and would be replaced by an output, "
                "expected another file"
            )
        # A pipe of the shell (/dev/stdout, /dev/fd/63) is read; opening any other may wait for ever.
        if path.is_fifo() and not path.is_relative_to("/dev"):
            raise ConfigError(f"{path} is a named pipe, expected a file to write to")
        new = not path.exists()
        target = path.resolve() if new else path  # a link to a file that has yet to be made stays
        try:
            with target.open("a"):
                pass
        except OSError as error:
            raise ConfigError(
                f"{path}: {error.strerror}, expected a file to write, in a folder that is there"
            ) from error
        if new:
            target.unlink()


def check_different(*paths: Path | None) -> None:
    """Raise ConfigError if two outputs are the same file; None for one that was not asked for."""
    given = [path for path in paths if path is not None]
    for number, path in enumerate(given):
        if any(path.resolve() == other.resolve() for other in given[:number]):
            raise ConfigError(f"{path} is given for two outputs, expected a file for each")


def check_output_folder(folder: Path, json_file: Path | None, inputs: Iterable[Path] = ()) -> None:
    """Check before the work that a policy folder can be written, beside the file of `--json`.

    Raises ConfigError if it is among the inputs, belongs to a training run, or cannot be written; ValueError
    if a file is in the place of the modules that the policy carries.
    """
    check_different(json_file, folder)
    place = folder.resolve()
    if any(place == path.resolve() for path in inputs):
        raise ConfigError(f"--out {folder} is read and would be replaced, expected another folder")
    if run_of(place) is not None or (place.parent.name == CHECKPOINTS and run_of(place.parent) is not None):
        raise ConfigError(
            f"--out {folder} belongs to a training run, expected another folder, for the new policy alone"
        )
    check_place(place)
    there = next(path for path in (place, *place.parents) if os.path.lexists(path))
    if not there.is_dir():
        raise ConfigError(
            f"--out {folder}: {there} is a file, expected a folder: move it away, or name another one"
        )
    if not os.access(there, os.W_OK):
        raise ConfigError(f"--out {folder}: {there} may not be written to, expected a folder of yours")


def folder_name(text: str) -> Path:
    """Return the path of a folder, for argparse; the empty text of an unset variable is none."""
    if not text:
        raise argparse.ArgumentTypeError("'' names no folder, expected a name (. for the current folder)")
    return Path(text)


def write(path: Path | None, text: str) -> None:
    """Write a result to a file, if one is given; an OSError has its name."""
    if path is not None:
        with naming(path), _opened(path) as file:
            file.write(text)


def _opened(path: Path) -> IO[str]:
    """Open a file to write; what a shell has redirected the output to is not emptied, as `>>` asks for."""
    errors = "backslashreplace"  # names may be no UTF-8
    if os.path.normpath(path) in ("/dev/stdout", "/dev/fd/1"):
        sys.stdout.flush()
        return os.fdopen(os.dup(1), "w", encoding="utf-8", errors=errors)
    return path.open("w", encoding="utf-8", errors=errors)


def write_json(path: Path | None, result: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write a result where `--json` says; see `write`.

    Commands print their result first: a full disk must not hide it.
    """
    write(path, json.dumps(result, indent=2) + "\n")
