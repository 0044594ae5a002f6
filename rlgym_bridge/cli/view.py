"""Show a recording in Rerun's viewer: `rlgym-bridge view`."""

import argparse
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.markup import escape

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.server import ConfigError
from rlgym_bridge.user_input.extras import explain_install
from rlgym_bridge.user_input.stop_signals import stopped_by_signals
from rlgym_bridge.view.watch import Watch

_WAIT_SECONDS = 0.2


STATUS: Final = "0 shown or written, 2 the recording cannot be read or shown"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Show a recording in the Rerun viewer: field, cars, ball, boost pads, the policies' actions, and "
        "speed, boost and controls over time. Without a display it is served to browsers on this machine. "
        "Ctrl-C ends it."
    )
    parser.add_argument("file", type=Path, metavar="FILE", help=".mcap, .replay, or a table with --columns")
    shared.add_columns_option(parser)
    parser.add_argument(
        "--compare", action="store_true",
        help="also show a simulator, put into the recorded state every second and driven with its inputs",
    )  # fmt: skip
    shared.add_simulator_option(parser, None)
    parser.add_argument(
        "--save", type=Path, metavar="FILE.rrd",
        help="write a file for Rerun and show nothing, unless --web or --window is given",
    )  # fmt: skip
    add_viewer_options(parser)
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Read the recording, write it as Rerun's file, and show that."""
    console = shared.console_of(options)
    if options.save is not None and options.save.suffix != ".rrd":
        raise ValueError(f"--save is {options.save}, expected a file whose name ends with .rrd")
    write_rrd = _writer()
    output_files.check_outputs(options.save, options.json, inputs=[options.file, options.columns])
    recording = open_recording(options.file, options.columns)
    for note in recording.notes:
        console.print(escape(note), soft_wrap=True)
    if options.save is not None:
        write_rrd(recording, options.save, options.compare, options.simulator)
        if not output_files.write_json(options.json, _summary(recording, options)):
            return 2
        name = escape(str(options.save))
        console.print(f"written to {name}; `rerun {name}` opens it", soft_wrap=True)
        if options.web or options.window:
            _show(options.save, options, console)
        return 0
    with tempfile.TemporaryDirectory(prefix="rlgym-bridge-") as folder:
        path = Path(folder) / f"{options.file.stem}.rrd"
        write_rrd(recording, path, options.compare, options.simulator)
        if not output_files.write_json(options.json, _summary(recording, options)):
            return 2
        _show(path, options, console)
    return 0


def _summary(recording: Recording, options: argparse.Namespace) -> dict[str, Any]:
    """Return what is shown, for `--json`; it is written before it is shown."""
    return {
        "source": recording.source,
        "rows": len(recording.tick),
        "cars": list(recording.state.agents),
        "notes": list(recording.notes),
        "compared": options.compare,
        "saved": None if options.save is None else str(options.save),
    }


def _writer() -> Any:
    """Return `write_rrd`.

    Raises:
        ImportError: Rerun is not installed.
    """
    try:
        import rerun  # noqa: F401
    except ImportError as error:
        raise ImportError(f"looking at a recording needs Rerun: {explain_install('view')}") from error
    from rlgym_bridge.view.write import write_rrd

    return write_rrd


def _show(path: Path, options: argparse.Namespace, console: Console) -> None:
    """Show a file until Ctrl-C, or until the window is closed.

    Raises:
        ViewerError: The viewer does not start.
    """
    from rlgym_bridge.view.viewer import ViewerError, browser_page, has_display, window

    stopped = threading.Event()
    windowed = options.window or (has_display() and not options.web)
    with stopped_by_signals(stopped.set), ExitStack() as stack:
        if windowed:
            process = stack.enter_context(window(path))
        else:
            address, process = stack.enter_context(browser_page(path))
            console.print(f"look at {address}\nCtrl-C ends", soft_wrap=True)
            if has_display():
                webbrowser.open(address)
            else:
                console.print("a browser without a graphics card may need &renderer=webgl at its end")
        while process.poll() is None and not stopped.wait(_WAIT_SECONDS):
            pass
        # Ctrl-C in a terminal ends the viewer too, perhaps before it is noticed here.
        if not stopped.wait(_WAIT_SECONDS) and (process.returncode or not windowed):
            instead = "; --web shows the same in the browser" if windowed else ""
            raise ViewerError(
                f"Rerun's viewer ended with exit code {process.returncode}; its message is above{instead}"
            )


def add_viewer_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the viewer opens."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--web", action="store_true", help="open it in the browser")
    where.add_argument("--window", action="store_true", help="open it in Rerun's own window")


def add_watch_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that show a match while it is played."""
    parser.add_argument(
        "--watch", action="store_true",
        help="show it in Rerun while it is played, with what bots draw: in a window, or without a display "
        "on a page for browsers on this machine. Closing it stops nothing",
    )  # fmt: skip
    add_viewer_options(parser)


@contextmanager
def watched(options: argparse.Namespace) -> Iterator[Watch | None]:
    """Show matches until the block ends, as the options say; None where they do not.

    Raises:
        ConfigError: `--web` or `--window` without `--watch`.
        ImportError: Rerun is not installed.
        WatchError: The viewer does not start.
    """
    if not options.watch:
        if options.web or options.window:
            raise ConfigError("--web and --window say where --watch shows the match, expected --watch, too")
        yield None
        return
    watch = Watch("web" if options.web else "window" if options.window else "")
    try:
        if watch.address:
            shared.console_of(options).print(f"look at {watch.address}", soft_wrap=True, markup=False)
        yield watch
    finally:
        watch.close()
