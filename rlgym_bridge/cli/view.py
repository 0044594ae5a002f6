"""Show a recording in Rerun's viewer: `rlgym-bridge view`."""

import argparse
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.markup import escape

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.cli.outcome import describe_match
from rlgym_bridge.cli.web_page import (
    NamedPolicies,
    add_page_options,
    check_installed,
    check_port,
    page_opener,
)
from rlgym_bridge.dialect import Dialect
from rlgym_bridge.policy.files import policy_path, read_files
from rlgym_bridge.policy.load_player import BUILT_IN, CHASER
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.server import ConfigError, Impairments
from rlgym_bridge.user_input.extras import explain_install
from rlgym_bridge.user_input.stop_signals import stopped_by_signals
from rlgym_bridge.view.display import has_display, open_browser
from rlgym_bridge.view.watch import Watch

_WAIT_SECONDS = 0.2


STATUS: Final = "0 shown or written, 2 the recording cannot be read or shown"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Show a recording in the Rerun viewer, or on a page of its own (--web, --html): field, cars, ball, "
        "boost pads, the policies' actions, and speed, boost and controls over time. Without a display it is "
        "served to browsers on this machine. Ctrl-C ends it."
    )
    parser.add_argument("file", type=Path, metavar="FILE", help=".mcap, .replay, or a table with --columns")
    shared.add_columns_option(parser)
    parser.add_argument(
        "--html", action="store_true",
        help="write a page with the recording in it as one file, which any browser opens without a server or "
        "the internet, and show nothing",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--out", type=Path, metavar="OUT.html", help="with --html: the file (default: FILE.html here)"
    )
    parser.add_argument(
        "--policy", metavar="BOT",
        help="with --web: a policy that may drive cars where you play on from a moment (default: chaser). Of "
        "cars that it drove in the recording, its likeliest choices are shown",
    )  # fmt: skip
    add_page_options(parser)
    parser.add_argument(
        "--compare",
        action="store_true",
        help="also show a simulator, put into the recorded state every second and driven with its inputs",
    )  # fmt: skip
    shared.add_simulator_option(parser, None)
    parser.add_argument(
        "--save",
        type=Path,
        metavar="FILE.rrd",
        help="write a file for Rerun and show nothing, unless --rerun-page or --window is given",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--web", action="store_true",
        help="show it on the page of `play` in the browser, without Rerun; one can play on from any moment",
    )  # fmt: skip
    where.add_argument("--rerun-page", action="store_true", help="open Rerun in the browser")
    where.add_argument("--window", action="store_true", help="open it in Rerun's own window")
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Read the recording and show it: in Rerun, on the page, or as a file for others."""
    console = shared.console_of(options)
    _check_together(options)
    if options.web or options.html:
        return _run_page(options, console)
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
        if options.rerun_page or options.window:
            _show(options.save, options, console)
        return 0
    with tempfile.TemporaryDirectory(prefix="rlgym-bridge-") as folder:
        path = Path(folder) / f"{options.file.stem}.rrd"
        write_rrd(recording, path, options.compare, options.simulator)
        if not output_files.write_json(options.json, _summary(recording, options)):
            return 2
        _show(path, options, console)
    return 0


def _check_together(options: argparse.Namespace) -> None:
    """Raise `ConfigError` for options that have no effect together."""
    of_rerun = {"--save": options.save, "--compare": options.compare}
    for name, given in (("--web", options.web), ("--html", options.html)):
        wrong = [other for other, its in of_rerun.items() if its] if given else []
        if wrong:
            raise ConfigError(f"{wrong[0]} is for Rerun, expected it without {name}")
    if options.html and (options.web or options.rerun_page or options.window):
        raise ConfigError("--html writes a file and shows nothing, expected it alone")
    if options.out is not None and not options.html:
        raise ConfigError("--out is the file of --html, expected --html, too")
    if options.policy is not None and not options.web:
        raise ConfigError("--policy plays on from a recording on the page, expected --web, too")
    check_port(options, options.web)


def _run_page(options: argparse.Namespace, console: Console) -> int:
    """Show the recording on our own page until Ctrl-C, or write it with the page as one file."""
    options.out = out = options.out or Path(f"{options.file.stem}.html")
    if not options.html:
        check_installed()
    output_files.check_outputs(
        options.json, out if options.html else None, inputs=[options.file, options.columns]
    )
    recording = open_recording(options.file, options.columns)
    for note in recording.notes:
        console.print(escape(note), soft_wrap=True)
    if not output_files.write_json(options.json, _summary(recording, options)):
        return 2
    if options.html:
        from rlgym_bridge.view.web.recorded_frames import write_single_page

        size = write_single_page(recording, out)
        console.print(f"written to {escape(str(out))}, {size / 1e6:.1f} MB", soft_wrap=True)
        return 0
    from rlgym_bridge.view.web.shown_recording import ShownRecording

    policy = policy_path(options.policy or CHASER)
    policies = NamedPolicies([policy])
    weights = None if policy in BUILT_IN else read_files(Path(policy))[0].weights_sha256
    about = describe_match("Soccar", Impairments(), Dialect(), {}, None, pace="realtime", seed=0)
    shown = ShownRecording(recording, policies.load, policies.names, page_opener(options), about, weights)
    with stopped_by_signals(shown.stop):
        shown.run()
    return 0


def _summary(recording: Recording, options: argparse.Namespace) -> dict[str, Any]:
    """Return what is shown, for `--json`; it is written before it is shown."""
    return {
        "source": recording.source,
        "rows": len(recording.tick),
        "cars": list(recording.state.agents),
        "notes": list(recording.notes),
        "compared": options.compare,
        "saved": str(options.out) if options.html else None if options.save is None else str(options.save),
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
    from rlgym_bridge.view.viewer import ViewerError, browser_page, window

    stopped = threading.Event()
    windowed = options.window or (has_display() and not options.rerun_page)
    with stopped_by_signals(stopped.set), ExitStack() as stack:
        if windowed:
            process = stack.enter_context(window(path))
        else:
            address, process = stack.enter_context(browser_page(path))
            console.print(f"look at {address}\nCtrl-C ends", soft_wrap=True)
            if has_display():
                open_browser(address)
            else:
                console.print("a browser without a graphics card may need &renderer=webgl at its end")
        while process.poll() is None and not stopped.wait(_WAIT_SECONDS):
            pass
        # Ctrl-C in a terminal ends the viewer too, perhaps before it is noticed here.
        if not stopped.wait(_WAIT_SECONDS) and (process.returncode or not windowed):
            instead = "; --rerun-page shows the same in the browser" if windowed else ""
            raise ViewerError(
                f"Rerun's viewer ended with exit code {process.returncode}; its message is above{instead}"
            )


def add_watch_options(parser: argparse.ArgumentParser, of_web: str = "") -> None:
    """Add the options that show a match while it is played; `of_web` adds to the help of `--web`."""
    parser.add_argument(
        "--watch", action="store_true",
        help="show it in Rerun while it is played, with what bots draw: in a window, or without a display "
        "on a page for browsers on this machine. Closing it stops nothing",
    )  # fmt: skip
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--web", action="store_true", help=f"open it in the browser{of_web}")
    where.add_argument("--window", action="store_true", help="open it in Rerun's own window")


@contextmanager
def watched(options: argparse.Namespace, has_page: bool = False) -> Iterator[Watch | None]:
    """Show matches in Rerun until the block ends, as the options say; None where they do not.

    Args:
        options: Of `add_watch_options`.
        has_page: Whether `--web` alone means another page, which the caller shows.

    Raises:
        ConfigError: `--web` or `--window` without `--watch`.
        ImportError: Rerun is not installed.
        WatchError: The viewer does not start.
    """
    if not options.watch:
        if options.window or (options.web and not has_page):
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
