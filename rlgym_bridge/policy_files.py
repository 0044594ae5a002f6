"""The two files of a policy folder, written and read so that they belong together."""

import hashlib
import os
import time
from pathlib import Path
from typing import Final

from rlgym_bridge.manifest import Manifest, PolicyMismatch

MANIFEST_FILE: Final = "policy.json"
WEIGHTS_FILE: Final = "weights.safetensors"


def write_files(folder: Path, data: bytes, text: str) -> None:
    """Put both files in place; a reader between the two sees a checksum that does not fit, and waits."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {folder / WEIGHTS_FILE: data, folder / MANIFEST_FILE: text.encode()}
    temporary = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in contents}
    try:
        for path, content in contents.items():
            temporary[path].write_bytes(content)
        for path in contents:
            temporary[path].replace(path)
    finally:
        for path in temporary.values():
            path.unlink(missing_ok=True)


def read_files(folder: Path) -> tuple[Manifest, bytes]:
    """Return manifest and weights that belong together.

    Raises:
        FileNotFoundError: A file is missing.
        PolicyMismatch: The weights are not those that the manifest records.
        ValueError: `policy.json` is unreadable or a key does not fit.
    """
    for attempt in range(3):
        for name in (MANIFEST_FILE, WEIGHTS_FILE):
            if not (folder / name).is_file():
                raise FileNotFoundError(
                    f"{folder / name} is missing; a policy folder holds {MANIFEST_FILE} and {WEIGHTS_FILE}"
                )
        try:
            text = (folder / MANIFEST_FILE).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{folder / MANIFEST_FILE} is not readable as UTF-8: {error}") from error
        manifest = Manifest.from_json(text, str(folder / MANIFEST_FILE))
        data = (folder / WEIGHTS_FILE).read_bytes()
        found = hashlib.sha256(data).hexdigest()
        if found == manifest.weights_sha256:
            return manifest, data
        if attempt < 2:
            time.sleep(0.05)  # a trainer may be between the two files
    raise PolicyMismatch(
        f"{folder / WEIGHTS_FILE} has SHA-256 {found[:12]}..., {MANIFEST_FILE} records "
        f"weights_sha256 {manifest.weights_sha256[:12]}...; the two files are not from one save"
    )
