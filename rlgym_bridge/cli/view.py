"""Show a recording in Rerun's viewer: `rlgym-bridge view`."""

import argparse
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from rlgym_bridge.cli import browser_page, output_files
from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli.match_summary import describe_match
from rlgym_bridge.policy.files import all_checkpoints, policy_path, read_files
from rlgym_bridge.policy.load_player import BUILT_IN, CHASER
from rlgym_bridge.project.this_project import run_folder
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.server import ConfigError
from rlgym_bridge.server.lineup import find_shipped_folder
from rlgym_bridge.user_input.extras import explain_install
from rlgym_bridge.user_input.stop_signals import stopped_by_signals
from rlgym_bridge.view.display import has_display, open_browser
from rlgym_bridge.view.watch import Watch

_WAIT_SECONDS = 0.2
_MOST_TRIED: Final = 20  # checkpoints

STATUS: Final = "0 shown or written, 2 the recording cannot be read or shown"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Show a recording in the Rerun viewer, or on a page of its own (--web, --html): field, cars, ball, "
        "boost pads, the policies' actions, and speed, boost and controls over time. Without a display it is "
        "served to browsers on this machine. Ctrl-C ends it."
    )
    shared.add_recording(parser)
    shared.add_option(
        parser, "--html", "write a page with the recording in it as one file, which any browser opens "
        "without a server or the internet, and show nothing",
    )  # fmt: skip
    shared.add_option(parser, "-o --out OUT.html", "with --html: the file (default: FILE.html here)", Path)
    shared.add_option(
        parser, "--policy BOT", "with --web: a policy that may drive cars where you play on from a moment; "
        "of cars that it drove in the recording, its likeliest choices are shown (default: the one of the "
        "run here, or the shipped bot, that drove, else chaser)",
    )  # fmt: skip
    browser_page.add_page_options(parser)
    shared.add_option(
        parser, "--compare", "also show a simulator, put into the recorded state every second and driven "
        "with its inputs",
    )  # fmt: skip
    shared.add_simulator_option(parser, None)
    shared.add_option(
        parser, "--save FILE.rrd", "write a file for Rerun and show nothing, unless --rerun-page or --window "
        "is given", Path,
    )  # fmt: skip
    where = parser.add_mutually_exclusive_group()
    shared.add_option(
        where, "--web", "show it on the page of `play` in the browser, without Rerun; one can play on from "
        "any moment",
    )  # fmt: skip
    shared.add_option(where, "--rerun-page", "open Rerun in the browser")
    shared.add_option(where, "--window", "open it in Rerun's own window")


def run(options: argparse.Namespace) -> int:
    """Read the recording and show it: in Rerun, on the page, or as a file for others."""
    console = shared.console_of(options)
    _check_together(options)
    if options.web:
        browser_page.check_installed()
    if options.html:
        options.out = options.out or Path(f"{options.file.stem}.html")
    in_rerun = not options.web and not options.html
    write_rrd = _writer() if in_rerun else None
    saved = options.save or options.out
    output_files.check_outputs(saved, options.json, inputs=[options.file, options.columns])
    recording = open_recording(options.file, options.columns)
    for note in recording.notes:
        console.print(note, markup=False)
    summary = {
        "source": recording.source,
        "rows": len(recording.tick),
        "cars": list(recording.state.agents),
        "notes": list(recording.notes),
        "compared": options.compare,
        "saved": None if saved is None else str(saved),
    }
    with tempfile.TemporaryDirectory(prefix="rlgym-bridge-") as folder:
        file = options.save or Path(folder) / f"{options.file.stem}.rrd"
        if write_rrd is not None:
            write_rrd(recording, file, options.compare, options.simulator)
        output_files.write_json(options.json, summary)  # before it is shown, which Ctrl-C ends
        if options.html:
            from rlgym_bridge.view.web.recorded_frames import write_single_page

            size = write_single_page(recording, options.out)
            console.print(f"written to {options.out}, {size / 1e6:.1f} MB", markup=False)
        elif options.web:
            _show_page(recording, options)
        elif options.save is not None:
            console.print(f"written to {file}; `rerun {file}` opens it", markup=False)
        if in_rerun and (options.save is None or options.rerun_page or options.window):
            _show(file, options, console)
    return 0


def _check_together(options: argparse.Namespace) -> None:
    """Raise `ConfigError` for options that have no effect together, or a file of another kind."""
    if options.save is not None and options.save.suffix != ".rrd":
        raise ConfigError(f"--save is {options.save}, expected a file whose name ends with .rrd")
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
    browser_page.check_port(options, options.web)


def _show_page(recording: Recording, options: argparse.Namespace) -> None:
    from rlgym_bridge.view.web.shown_recording import ShownRecording

    policy = policy_path(options.policy or _find_policy(recording))
    policies = browser_page.NamedPolicies([policy])
    weights = None if policy in BUILT_IN else read_files(Path(policy))[0].weights_sha256
    about = describe_match("Soccar", {"simulator": None, "pace": "realtime", "seed": 0})
    shown = ShownRecording(
        recording, policies.load, policies.names, browser_page.page_opener(options), about, weights
    )
    with stopped_by_signals(shown.stop):
        shown.run()


def _find_policy(recording: Recording) -> str:
    """Return the folder of a policy that drove in a recording: of the run here or shipped; else Chaser."""
    tracks = recording.agents.values() if isinstance(recording, MatchRecording) else ()
    played = {track.policy.get("weights_sha256") for track in tracks if track.policy}
    folders: list[Path] = []
    if played:
        with suppress(OSError, ValueError):  # no readable settings are here
            folders += all_checkpoints(Path(run_folder() or ""))[:-_MOST_TRIED:-1]
        folders.append(find_shipped_folder() / "bot" / "policy")
    for folder in folders:
        with suppress(OSError, ValueError):
            if read_files(folder)[0].weights_sha256 in played:
                return str(folder)
    return CHASER


def _writer() -> Any:
    """Return `write_rrd`; `ImportError` where Rerun is not installed."""
    try:
        import rerun  # noqa: F401
    except ImportError as error:
        needed = f"looking at a recording needs Rerun: {explain_install('view')}"
        raise ImportError(f"{needed}; or use --html, which needs nothing") from error
    from rlgym_bridge.view.write import write_rrd

    return write_rrd


def _show(path: Path, options: argparse.Namespace, console: Console) -> None:
    """Show a file until Ctrl-C, or until the window is closed."""
    from rlgym_bridge.view.viewer import ViewerError, viewer

    stopped = threading.Event()
    windowed = options.window or (has_display() and not options.rerun_page)
    with stopped_by_signals(stopped.set), viewer(windowed, path) as (address, _, process):
        if not windowed:
            console.print(f"look at {address}\nCtrl-C ends")
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
    shared.add_option(
        parser, "--watch", "show it in Rerun while it is played, with what bots draw: in a window, or "
        "without a display on a page for browsers on this machine. Closing it stops nothing",
    )  # fmt: skip
    where = parser.add_mutually_exclusive_group()
    shared.add_option(where, "--web", f"open it in the browser{of_web}")
    shared.add_option(where, "--window", "open it in Rerun's own window")


@contextmanager
def watched(options: argparse.Namespace, has_page: bool = False) -> Iterator[Watch | None]:
    """Show matches in Rerun until the block ends, as the options of `add_watch_options` say, or yield None.

    With `has_page` `--web` alone means another page, which the caller shows. Raises
    ConfigError for `--web` or `--window` without `--watch`; ImportError without Rerun; WatchError if the
    viewer does not start.
    """
    if not options.watch:
        if options.window or (options.web and not has_page):
            raise ConfigError("--web and --window say where --watch shows the match, expected --watch, too")
        yield None
        return
    watch = Watch("web" if options.web else "window" if options.window else "")
    try:
        if watch.address:
            shared.printer(options)(f"look at {watch.address}")
        yield watch
    finally:
        watch.close()
