"""Write and read the two files of a policy folder so that they belong together."""

import functools
import hashlib
import logging
import os
import time
from pathlib import Path
from typing import Final

from rlgym_bridge.policy.manifest import Manifest, PolicyMismatch
from rlgym_bridge.user_input.durable_files import make_folder, write_durably
from rlgym_bridge.user_input.text_files import read_bytes, read_text

MANIFEST_FILE: Final = "policy.json"
FINGERPRINT_FILE: Final = "fingerprint.json"
WEIGHTS_FILE: Final = "weights.safetensors"
MOST_WEIGHTS_BYTES: Final = 1 << 29
"""Largest file of weights that is read: 134 million numbers; the shipped bot has a thousandth of them."""

CHECKPOINTS: Final = "checkpoints"
LATEST: Final = "latest"
EXPECTED: Final = "expected a policy folder, or a training run, which rlgym-bridge train makes"
"""Expected of a folder that is not there, for errors."""

_LOG = logging.getLogger("rlgym_bridge.policy")
_RUN: Final = "run.toml"
_TRIES: Final = 3  # a run that trains may write `latest`, and remove what it named
_PROJECT: Final = ("train.toml", "bot.toml")


def explain_project(folder: Path) -> str:
    """Return what a bot's project or a run without a checkpoint is, for errors; "" for another folder."""
    if (folder / _RUN).is_file() and newest_checkpoint(folder) is None:
        return f"; {folder} is a training run that has no checkpoint yet"
    if not any((folder / file).is_file() for file in _PROJECT):
        return ""
    runs = [str(one) for one in sorted((folder / "runs").glob("*")) if newest_checkpoint(one)]
    return f"; {folder} is a bot's project: name its run, {' or '.join(runs) or 'which train makes first'}"


def all_checkpoints(run: Path) -> list[Path]:
    """Return the policy folders in the folder of a training run, the newest last."""
    folder = run / CHECKPOINTS
    names = folder.iterdir() if folder.is_dir() else ()
    return sorted((path for path in names if path.name.isdecimal()), key=lambda path: int(path.name))


def newest_checkpoint(run: Path) -> Path | None:
    """Return the checkpoint that `checkpoints/latest` of a run names, else that of the largest number."""
    found, named = all_checkpoints(run), _latest_name(run)
    if named is not None and (one := run / CHECKPOINTS / named) in found:
        return one
    return found[-1] if found else None


def checkpoints_to_try(run: Path) -> list[Path]:
    """Return the checkpoints of a run in the order in which to look for a whole one; empty where none is.

    First comes the one that `latest` names, then those with fewer steps, the nearest first, then those with
    more, which someone left behind. Without `latest`, or where it is empty, the largest comes first. Raises
    ValueError where `latest` names no checkpoint, or is no text.
    """
    for _ in range(_TRIES):
        written = os.path.lexists(run / CHECKPOINTS / LATEST)
        named, found = _latest_name(run), all_checkpoints(run)
        if not written or not found or named == "":
            return found[::-1]
        if named and (one := run / CHECKPOINTS / named) in found:
            place = found.index(one)
            return [*found[place::-1], *found[place + 1 :]]
    says = "cannot be read as text" if named is None else f"names {named[:40]!r}"
    raise ValueError(
        f"{run / CHECKPOINTS / LATEST} {says}, expected one of {', '.join(path.name for path in found)}: "
        "write one of them into it, or remove it for the largest"
    )


def chosen_checkpoint(run: Path) -> Path | None:
    """Return the newest checkpoint of a run whose policy is whole; None where the run has none.

    A damaged one is left out with a warning in the log. Where all are damaged the newest is returned.
    """
    for _ in range(_TRIES):
        found, damages = checkpoints_to_try(run), []
        for one in found:
            try:
                read_files(one)
            except (OSError, ValueError) as error:
                damages.append(str(error))
                continue
            if damages:
                warn_once(f"damaged checkpoint: {damages[0]}; {one} is taken in its place")
            return one
        if all(one.exists() for one in found):
            break  # otherwise training has removed them meanwhile
    return found[0] if found else None


@functools.cache
def warn_once(message: str) -> None:
    """Log a warning, unless this process has logged it before."""
    _LOG.warning(message)


def _latest_name(run: Path) -> str | None:
    """Return what the file `checkpoints/latest` of a run names; None where it cannot be read."""
    try:
        return read_text(run / CHECKPOINTS / LATEST).strip("\0 \t\r\n")
    except (OSError, ValueError):
        return None


def policy_path(given: str) -> str:
    """Return the newest checkpoint where the folder of a run, its `checkpoints` or `latest` is given.

    Anything else is returned as it is. Raises ValueError where the run's `latest` names no checkpoint.
    """
    run = None if (Path(given) / MANIFEST_FILE).is_file() else run_of(given)
    newest = None if run is None else chosen_checkpoint(run)
    return given if newest is None else str(newest)


def shorten_policy(path: str) -> str:
    """Return a policy's path to read: from the current folder if it lies there, else its last parts."""
    folder, here = Path(path), Path.cwd()
    if not folder.anchor:
        return path
    if here in folder.parents:
        return folder.relative_to(here).as_posix()
    most = 3 if folder.parent.name == CHECKPOINTS else 2
    return folder.as_posix() if len(folder.parts) <= most + 1 else "/".join(folder.parts[-most:])


def run_of(given: str | Path) -> Path | None:
    """Return the run that a path is of: its folder, `checkpoints`, `latest` or a checkpoint."""
    path = Path(given).absolute()
    for run in (path, path.parent, path.parent.parent):
        folder, found = run / CHECKPOINTS, all_checkpoints(run)
        if found and path in (run, folder, folder / LATEST, *found):
            return run
    return None


def policy_files(manifest: Manifest, data: bytes) -> dict[str, bytes]:
    """Return the content of each file of a policy folder by its name, in the order to write them."""
    texts = {FINGERPRINT_FILE: manifest.fingerprint_json(), MANIFEST_FILE: manifest.to_json()}
    return {WEIGHTS_FILE: data} | {name: text.encode() for name, text in texts.items()}


def write_files(folder: Path, data: bytes, manifest: Manifest) -> None:
    """Put all files in place; a reader between two of them sees a checksum that does not fit, and waits."""
    make_folder(folder)
    write_durably(folder, policy_files(manifest, data))


def read_files(folder: Path) -> tuple[Manifest, bytes]:
    """Return manifest, with its fingerprint, and weights that belong together.

    Raises:
        FileNotFoundError: A file is missing.
        PolicyMismatch: The weights are not those that the manifest records.
        ValueError: `policy.json` or `fingerprint.json` is unreadable, or a key does not fit.
    """
    for attempt in range(3):
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder} is no folder; {EXPECTED}")
        for name in (MANIFEST_FILE, WEIGHTS_FILE):
            _check_there(folder / name)
        manifest = Manifest.from_json(read_text(folder / MANIFEST_FILE), str(folder / MANIFEST_FILE))
        if not manifest.probe:  # older folders have it in the manifest
            _check_there(file := folder / FINGERPRINT_FILE)
            manifest = manifest.with_fingerprint(read_text(file), str(file))
        data = read_bytes(folder / WEIGHTS_FILE, MOST_WEIGHTS_BYTES, "weights")
        checksum = hashlib.sha256(data).hexdigest()
        if checksum == manifest.weights_sha256:
            return manifest, data
        if attempt < 2:
            time.sleep(0.05)  # a trainer may be between the two files
    raise PolicyMismatch(
        f"{folder / WEIGHTS_FILE} ({len(data):,} bytes) is not the file that {MANIFEST_FILE} was saved with: "
        "it was changed, damaged or copied from another save. Copy all files again from one save, or take "
        f"another checkpoint (SHA-256 {checksum[:12]}..., weights_sha256 in {MANIFEST_FILE} is "
        f"{manifest.weights_sha256[:12]}...)"
    )


def _check_there(file: Path) -> None:
    if not file.exists():
        raise FileNotFoundError(
            f"{file} is missing; a policy folder holds {MANIFEST_FILE}, {FINGERPRINT_FILE} and {WEIGHTS_FILE}"
            f"{explain_project(file.parent)}"
        )
