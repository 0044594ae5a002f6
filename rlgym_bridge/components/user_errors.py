"""Describe errors in code of users: environments, components, mutators."""

import re
import sysconfig
import traceback
from pathlib import Path
from typing import Final

_OURS: Final = tuple(str(Path(__file__).parents[2] / name) for name in ("rlgym_bridge", "training"))
_INSTALLED: Final = ("site-packages", "<frozen", sysconfig.get_path("stdlib"))


def is_ours(error: BaseException) -> bool:
    """Tell whether this project raised an error, so that its message needs no type or line.

    Args:
        error: Caught, with its traceback.
    """
    here = _file_of(error).startswith(_OURS)
    plain = isinstance(error, (ValueError, OSError, ImportError, RuntimeError, EOFError))
    return here and (plain or type(error).__module__.partition(".")[0] in ("rlgym_bridge", "training"))


def _file_of(error: BaseException) -> str:
    """Return the file that raised an error, here or in a process of a `ProcessPoolExecutor`."""
    if type(error.__cause__).__name__ == "_RemoteTraceback":
        files: list[str] = re.findall(r'^  File "([^"]+)", line', str(error.__cause__), re.MULTILINE)
        return files[-1] if files else ""
    frames = traceback.extract_tb(error.__traceback__)
    return frames[-1].filename if frames else ""


def describe_error(error: BaseException) -> str:
    """Describe an error in a line: its message, its type where that adds something, and the user's own line.

    Args:
        error: Caught, with its traceback.
    """
    text = str(error).strip().partition("\n")[0]
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        one for one in frames
        if not one.filename.startswith(_OURS) and not any(word in one.filename for word in _INSTALLED)
    ]  # fmt: skip
    if not own and isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if is_ours(error):
        return text
    kind = type(error).__name__
    if isinstance(error, SystemExit):
        text = f"it ended the program with sys.exit({error.code!r})"
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"{kind}: {text}{where}" if text else f"{kind}{where}"
