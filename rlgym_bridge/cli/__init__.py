"""The command line: `rlgym-bridge COMMAND`, and `python -m training` for the commands that train.

Each command's module has `add_to(parser)`, its options, and `run(options)`, which returns the exit code.
"""

import argparse
import io
import logging
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from rlgym_bridge.cli.commands import COMMANDS, REMOVED, explain_broken, make_parser, module_of, overview
from rlgym_bridge.components.user_errors import describe_error, is_ours
from rlgym_bridge.user_input.arguments import nearest_key
from rlgym_bridge.user_input.extras import explain_missing
from rlgym_bridge.user_input.failures import Failure
from rlgym_bridge.user_input.text_files import escape_controls

_MOST_LETTERS = 4000  # of an error's message
_STATUS = "0 fine, 1 a failure was found, 2 bad usage or input"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `rlgym-bridge` with these words, or those of this process; return the exit code.

    It is 0 fine, 1 a failure was found or Ctrl-C ended it, 2 bad usage or input.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        with suppress(BrokenPipeError):  # who reads it may have read enough
            print(overview(), file=sys.stdout if words else sys.stderr, flush=True)
        return 0 if words else 2
    name = words[0]
    if name in COMMANDS:
        return run_command(name, words[1:], f"rlgym-bridge {name}")
    wrong = f"the command {name} is gone: {REMOVED.get(name)}"
    if name not in REMOVED:
        hint = f"did you mean {near[0]}? " if (near := _nearest([name], COMMANDS)) else ""
        wrong = f"there is no command {name!r}, {hint}expected one of {', '.join(COMMANDS)}"
    print(f"error: {wrong}", file=sys.stderr)
    return 2


def serve() -> int:
    """Run `rlgym-server`: `rlgym-bridge server` under a name by which rlbot's `MatchManager` finds it."""
    return run_command("server", program="rlgym-server")


def run_module(name: str) -> NoReturn:
    """Run a command as the module that Python was started with (`python -m training.NAME`), and end."""
    started = sys.modules["__main__"].__spec__
    module = started.name.removesuffix(".__main__") if started else name
    sys.exit(run_command(name, program=f"python -m {module}"))


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end a command as Ctrl-C does; a second signal ends it at once."""

    def end(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [
        number for name in names if signal.getsignal(number := getattr(signal, name)) == signal.SIG_DFL
    ]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _logging_to_stderr(level: int) -> Iterator[None]:
    """Show our own log and others' warnings on stderr for one command, unless the program has handlers."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LogFormat("%(levelname)s %(name)s: %(message)s"))
    ours = logging.getLogger("rlgym_bridge")
    if not logging.root.handlers:
        logging.root.addHandler(handler)
    before = ours.level
    ours.setLevel(level)  # what others' libraries do interests nobody
    try:
        yield
    finally:
        logging.root.removeHandler(handler)  # the next command may have another stderr
        ours.setLevel(before)


@_ended_by_signals()
def run_command(name: str, arguments: Sequence[str] | None = None, program: str | None = None) -> int:
    """Run one command, by its name and the words after it, and return the exit code.

    None takes the words of this process. `program` is the name in the help. Raises argparse's SystemExit for
    `--help` and unknown options.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of bots may have what a redirected output lacks
            stream.reconfigure(errors="backslashreplace")
    try:
        command = module_of(name)
        parser = make_parser(name, program)
        status = f"exit status: {getattr(command, 'STATUS', _STATUS)}"
        parser.epilog = status if parser.epilog is None else f"{parser.epilog}\n\n{status}"
        options, unknown = parser.parse_known_args(arguments)
        if unknown:
            parser.error(_explain_unknown(unknown, parser))
        told = logging.DEBUG if getattr(options, "verbose", False) else logging.INFO
        with _logging_to_stderr(logging.WARNING if options.quiet else told):
            return _guarded(command, options)
    except ImportError as error:
        missing = explain_missing(error.name) or explain_broken(error)
        if missing is None:
            raise
        print(f"error: {name}: {missing}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        print(": ".join(["stopped", *getattr(error, "__notes__", ())]), file=sys.stderr)
        return 1


def _nearest(words: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the known words that are spelt most like some others, each once."""
    near = (nearest_key(word.partition("=")[0], known, 0.6) for word in words)
    return list(dict.fromkeys(one for one in near if one))


def _explain_unknown(words: Sequence[str], parser: argparse.ArgumentParser) -> str:
    """Return what is wrong with words that a command does not know, with the options they may mean."""
    known = [flag for flag in parser._option_string_actions if flag.startswith("--")]  # no public way to them
    meant = ", ".join(_nearest((word for word in words if word.startswith("--")), known))
    return f"unrecognized arguments: {' '.join(words)}" + (f", did you mean {meant}?" if meant else "")


class _LogFormat(logging.Formatter):
    """Lines of the log in which no name and no output of a bot controls the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text, control characters spelt out; news that is no fault is shown alone."""
        news = record.levelno == logging.INFO
        return escape_controls(record.getMessage() if news else super().format(record))


def _shorten(text: str) -> str:
    """Return a message without its middle where something in it is endless, such as the name of a column."""
    half = _MOST_LETTERS // 2
    return text if len(text) <= _MOST_LETTERS else f"{text[:half]} ... {text[-half:]}"


def _guarded(command: Any, options: argparse.Namespace) -> int:
    """Run a command; 1 for a `Failure`, 2 for other errors: what the user or a user's code did."""
    try:
        return int(command.run(options))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever components of one's own raise
        notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
        missing = explain_missing(error.name) if isinstance(error, ModuleNotFoundError) else None
        plain = is_ours(error) and not isinstance(error, OSError)
        text = missing or (str(error).strip() if plain else describe_error(error))
        print(f"error: {escape_controls(_shorten(text + notes))}", file=sys.stderr)
        return 1 if isinstance(error, Failure) else 2
