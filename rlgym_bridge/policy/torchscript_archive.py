"""Read archives of TorchScript and libtorch without running any code of them.

`torch.jit.load` runs the `__setstate__` methods of a file, so it is not used here.
"""

import io
import math
import pickle
import pickletools
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from rlgym_bridge.policy.files import MOST_WEIGHTS_BYTES
from rlgym_bridge.user_input.text_files import check_size

_MOST_UNPACKED: Final = 8  # times the file's size; torch packs code and notes alone, tensors lie as they are
_SLACK: Final = 1 << 24  # bytes, for small files that are code for the most part
_MOST_AXES: Final = 8  # of a tensor; a linear layer's have two
_MOST_NUMBERS: Final = 1 << 40  # along an axis, or between two: no network has as many
_CODE: Final = "code/"
_DTYPES: Final = {
    "FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "LongStorage": "<i8",
    "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "<i1", "ByteStorage": "<u1",
    "BoolStorage": "?",
}  # fmt: skip


class ScriptObject:
    """The attributes of a module of the class `kind` in a pickle, by name; it does nothing."""

    kind = ""
    attributes: Mapping[str, Any] = MappingProxyType({})

    def __setstate__(self, state: Any) -> None:
        """Take the attributes; raises ValueError for anything else."""
        if not isinstance(state, dict):
            raise ValueError(f"{self.kind} holds {type(state).__name__}, expected its attributes by name")
        self.attributes = state


def is_script_archive(file: Path) -> bool:
    """Return whether a file is of TorchScript or libtorch; raises ValueError for one that is too large."""
    check_size(file, MOST_WEIGHTS_BYTES, "a checkpoint")
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            others = {one.compress_type for one in entries} - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
    except zipfile.BadZipFile:  # older versions of torch write pickles alone
        return False
    except NotImplementedError as error:  # of a newer kind of zip
        raise ValueError(f"{file} cannot be read: {error}; expected an archive as torch writes it") from error
    if others:  # Python unpacks these whole, whatever size they say
        raise ValueError(
            f"{file} has entries packed by the methods {sorted(others)} of zip, expected 0 or 8, as torch "
            "writes them"
        )
    unpacked, packed = sum(one.file_size for one in entries), file.stat().st_size
    if unpacked > _MOST_UNPACKED * packed + _SLACK:
        raise ValueError(
            f"{file} has {packed} bytes and would unpack to {unpacked}, expected tensors as they are: "
            "torch does not compress them"
        )
    return any(one.filename.partition("/")[2] == "constants.pkl" for one in entries)


def read_archive(file: Path) -> dict[str, np.ndarray]:
    """Read the tensors of an archive by dotted name, as a `state_dict` has them; nothing of it runs.

    Raises ValueError where it names classes that no such archive needs, tensors that lie outside their
    storage, or methods that run at loading; and what `zipfile` and `pickle` raise over a broken file.
    """
    with zipfile.ZipFile(file) as archive:
        entries = _entries(archive)
        for name, full in entries.items():
            if name.startswith(_CODE) and name.endswith(".py"):
                text = archive.read(full).decode("utf-8")
                if "__setstate__" in text:
                    raise ValueError(
                        f"{name} has a method __setstate__, which would run when the file is loaded"
                    )
                if "hooks__ = " in text:
                    raise ValueError(f"{name} has hooks, which run beside its forward")
        root = _unpickle(archive, entries)
    if not isinstance(root, ScriptObject):
        raise ValueError(f"its data is {type(root).__name__}, expected a module")
    found: dict[str, np.ndarray] = {}
    waiting, seen = [("", root)], {id(root)}
    while waiting:
        prefix, module = waiting.pop()
        for name, value in module.attributes.items():
            if isinstance(value, np.ndarray):
                found[f"{prefix}{name}"] = value
            elif isinstance(value, ScriptObject) and id(value) not in seen:
                seen.add(id(value))
                waiting.append((f"{prefix}{name}.", value))
    return found


def read_state_dict(file: Path) -> dict[str, np.ndarray]:
    """Read a `state_dict` that `torch.save` wrote, without torch; nothing of it runs.

    Raises ValueError where it names other classes than those of tensors, or holds no tensors by name; and
    what `zipfile` and `pickle` raise over a file that is broken or older than torch's zips.
    """
    with zipfile.ZipFile(file) as archive:
        found = _unpickle(archive, _entries(archive))
    if not isinstance(found, Mapping) or not all(isinstance(one, np.ndarray) for one in found.values()):
        raise ValueError(f"it holds {type(found).__name__}, expected tensors by name")
    return {str(name): tensor for name, tensor in found.items()}


def _unpickle(archive: zipfile.ZipFile, entries: Mapping[str, str]) -> Any:
    """Return what `data.pkl` holds, with the tensors below `data/`."""
    storages = {
        name.removeprefix("data/"): archive.read(full)
        for name, full in entries.items()
        if name.startswith("data/")
    }
    content = archive.read(entries["data.pkl"])
    value: Any
    for code, value, _ in pickletools.genops(content):  # no more than torch writes, or than the memory holds
        if code.proto > 2 or (code.name in ("PUT", "BINPUT", "LONG_BINPUT") and value > len(content)):
            raise ValueError(f"a pickle in it has {code.name} {value}, expected what torch writes")
    return _Unpickler(content, storages).load()


def _entries(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the full names of a zip's entries by those below its one folder."""
    names = archive.namelist()
    folders = {name.partition("/")[0] for name in names}
    if len(folders) != 1 or len({name.lower() for name in names}) != len(names):
        raise ValueError("it has several folders, or entries of one name, expected what torch writes")
    return {name.partition("/")[2]: name for name in names}


class _Unpickler(pickle.Unpickler):
    """Unpickles tensors, plain values and `ScriptObject`; any other class is refused."""

    def __init__(self, content: bytes, storages: Mapping[str, bytes]) -> None:
        super().__init__(io.BytesIO(content))
        self._storages = storages

    def find_class(self, module: str, name: str) -> Any:
        """Return a harmless substitute for a class, which can only hold values."""
        if module == "__torch__" or module.startswith("__torch__."):
            return type("ScriptObject", (ScriptObject,), {"kind": f"{module}.{name}"})
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda *args: _tensor(*args)
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module == "torch" and name in _DTYPES:
            return _DTYPES[name]
        if module == "torch.jit._pickle":  # typed lists and dictionaries: values, then their type
            return lambda values, *_: values
        raise ValueError(f"it names {module}.{name}, expected modules and tensors of plain numbers alone")

    def persistent_load(self, pid: Any) -> np.ndarray:
        """Return the numbers of a storage, `(numel,)`."""
        _, dtype, key, _, _ = pid
        return np.frombuffer(self._storages[key], dtype)


def _tensor(
    storage: np.ndarray, offset: Any, size: Any, stride: Any, grad: Any = False, hooks: Any = None,
    *metadata: Any,
) -> np.ndarray:  # fmt: skip
    """Return a tensor's numbers; raises ValueError where its storage lacks some."""
    if any(metadata):
        raise ValueError(f"a tensor has the marks {metadata}, expected plain numbers")
    numbers = (offset, *size, *stride)
    fits = len(size) == len(stride) <= _MOST_AXES and all(
        isinstance(one, int) and 0 <= one < _MOST_NUMBERS for one in numbers
    )
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=False)) if fits else 0
    if not fits or math.prod(size) > len(storage) or (math.prod(size) and last >= len(storage)):
        raise ValueError(
            f"a tensor of shape {size} with steps {stride} from {offset} on lies outside its "
            f"{len(storage)} numbers"
        )
    steps = [step * storage.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, steps, writeable=False)
