"""Describe errors in code of users: environments, components, mutators."""

import inspect
import os
import re
import sysconfig
import traceback
from pathlib import Path
from typing import Any, Final

_PACKAGE: Final = Path(__file__).parents[1]
_TRAINING: Final = _PACKAGE.with_name("training")  # in a clone; in a wheel it lies in the package
_OURS: Final = tuple(
    f"{folder}{os.sep}" for folder in (_PACKAGE, *(() if (_PACKAGE / "training").is_dir() else (_TRAINING,)))
)
_INSTALLED: Final = ("site-packages", "<frozen", sysconfig.get_path("stdlib"))
_MOST_FRAMES: Final = 6  # of a user's code, in an explained error


def is_ours(error: BaseException) -> bool:
    """Tell whether this project raised an error, so that its message needs no type or line."""
    here = _file_of(error).startswith(_OURS)
    plain = isinstance(error, (ValueError, OSError, ImportError, RuntimeError, EOFError))
    return here and (plain or type(error).__module__.partition(".")[0] == "rlgym_bridge")


def _file_of(error: BaseException) -> str:
    """Return the file that raised an error, here or in a process of a `ProcessPoolExecutor`."""
    if type(error.__cause__).__name__ == "_RemoteTraceback":
        files: list[str] = re.findall(r'^  File "([^"]+)", line', str(error.__cause__), re.MULTILINE)
        return files[-1] if files else ""
    frames = traceback.extract_tb(error.__traceback__)
    return frames[-1].filename if frames else ""


def describe_error(error: BaseException) -> str:
    """Describe an error in a line: its message, its type if that says more, the user's own line."""
    text = str(error).strip().partition("\n")[0]
    own = _own_frames(error)
    if not own and isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if is_ours(error):
        return text
    kind = type(error).__name__
    if isinstance(error, SystemExit):
        text = f"it ended the program with sys.exit({error.code!r})"
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"{kind}: {text}{where}" if text else f"{kind}{where}"


def explain_error(error: BaseException) -> str:
    """Explain an error that ends a process, with the calls in the user's code where there are several.

    The whole traceback is shown where neither a user's code nor a check of ours raised it: that is our fault.
    """
    text, own = describe_error(error), _own_frames(error)
    if not own and not is_ours(error):
        return f"{text}\n\n{''.join(traceback.format_exception(error)).rstrip()}"
    calls = [f"  {one.filename}, line {one.lineno}, in {one.name}: {one.line}" for one in own]
    return "\n".join([text, *calls[-_MOST_FRAMES:]]) if len(calls) > 1 else text


def check_arguments(function: Any, who: str, expected: str) -> None:
    """Raise TypeError unless a user's function takes as many arguments as `"before, after"` names."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # nothing to call, or not written in Python: calling it tells
        return
    try:
        signature.bind(*expected.split(", "))
    except TypeError:
        where = locate_function(function)
        raise TypeError(
            f"{who}{signature} does not take what it is given, expected ({expected}){where}"
        ) from None


def locate_method(component: Any, name: str) -> str:
    """Return where a user's class defines a method, as ` (my_parts.py, line 23)`; else ""."""
    return locate_function(getattr(type(component), name, None))


def locate_function(function: Any) -> str:
    """Return where a user's function or method is defined, as ` (my_parts.py, line 23)`; "" for others."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None or not _is_own(code.co_filename):
        return ""
    return f" ({code.co_filename}, line {code.co_firstlineno})"


def locate_class(component: Any) -> str:
    """Return where the class of a user's component begins, as ` (my_parts.py, line 23)`; "" for others."""
    kind = type(component)
    try:
        file, line = inspect.getsourcefile(kind), inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):  # typed at a prompt, or not written in Python
        return ""
    return f" ({file}, line {line})" if file is not None and _is_own(file) else ""


def is_of_user(error: BaseException) -> bool:
    """Tell whether code of a user raised an error, or called what raised it."""
    return bool(_own_frames(error))


def locate_import(error: BaseException) -> tuple[str, str] | None:
    """Return the user's module in which an import failed, and its line; None for others."""
    own = _own_frames(error)
    return (Path(own[-1].filename).stem, f" ({own[-1].filename}, line {own[-1].lineno})") if own else None


def _own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the calls of an error's traceback that are in a user's code."""
    return [one for one in traceback.extract_tb(error.__traceback__) if _is_own(one.filename)]


def _is_own(file: str) -> bool:
    """Tell whether a file is neither of this project nor of an installed library."""
    return not file.startswith(_OURS) and not any(word in file for word in _INSTALLED)
