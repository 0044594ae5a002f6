"""What is said of errors in code that a user brings along: environments, components, mutators."""

import sysconfig
import traceback
from pathlib import Path
from typing import Final

_OURS: Final = str(Path(__file__).parent)
_INSTALLED: Final = ("site-packages", "<frozen", sysconfig.get_path("stdlib"))


def told(error: BaseException) -> str:
    """Return an error in a line: its message, its type where that adds something, and the user's own line.

    Args:
        error: Caught, with its traceback.
    """
    text = str(error).strip().partition("\n")[0]
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        one for one in frames
        if not one.filename.startswith(_OURS) and not any(word in one.filename for word in _INSTALLED)
    ]  # fmt: skip
    raised_here = bool(frames) and frames[-1].filename.startswith(_OURS)
    if raised_here and isinstance(error, (ValueError, OSError, ImportError)):
        return text
    if not own and isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    kind = type(error).__name__
    if isinstance(error, SystemExit):
        text = f"it ended the program with sys.exit({error.code!r})"
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"{kind}: {text}{where}" if text else f"{kind}{where}"
