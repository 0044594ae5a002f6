"""Open our own page in the browser, and name the policies that may drive a car on it."""

import argparse
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlgym_bridge.cli import options as shared
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.policy.files import all_checkpoints, newest_checkpoint, run_of, shorten_policy
from rlgym_bridge.policy.load_player import BUILT_IN, load_player
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.server.result import ConfigError
from rlgym_bridge.user_input.extras import explain_install
from rlgym_bridge.user_input.stop_signals import apart, await_end
from rlgym_bridge.user_input.user_modules import add_module_folders
from rlgym_bridge.view.display import open_browser

if TYPE_CHECKING:
    from rlgym_bridge.view.web.page_server import PageServer, Show

_MOST_CHECKPOINTS: Final = 20  # of a run that are offered
_OTHER_DRIVERS: Final = ("human", "recorded")  # names that are no policy's
_END_SECONDS: Final = 10.0


def add_page_options(parser: argparse.ArgumentParser, web: str = "") -> None:
    """Add the options that say where the page is, and `--web`, if its help is given."""
    if web:
        shared.add_option(parser, "--web", web)
    shared.add_option(parser, "--no-browser", "print the page's address and open no browser")
    shared.add_option(
        parser, "--port N", "port of the page on this machine (default: any free one)", shared.port, default=0
    )


def check_port(options: argparse.Namespace, has_page: bool) -> None:
    """Raise `ConfigError` where `--port` is given without the page that it is of."""
    if options.port and not has_page:
        raise ConfigError(f"--port {options.port} is of the page, expected --web, too")


def check_installed() -> None:
    """Raise `ImportError` where the extra that serves the page is not installed."""
    if find_spec("aiohttp") is None:
        raise ImportError(f"the page in the browser needs aiohttp: {explain_install('play')}")


def page_opener(options: argparse.Namespace) -> "Callable[[Show], PageServer]":
    """Return what serves a show's page and opens the browser, as the options of `add_page_options` say."""
    from rlgym_bridge.view.web.page_server import PageServer

    def serve(show: "Show") -> PageServer:
        pages = PageServer(show, options.port)
        shared.printer(options)(f"look at {pages.address}\nCtrl-C ends")
        if not options.no_browser:
            open_browser(pages.address)
        return pages

    return serve


@contextmanager
def shown_run(options: argparse.Namespace, run: Path) -> Iterator[None]:
    """Show a training run on the page until the block ends, from its first checkpoint on.

    A process of its own plays, so that training waits for nothing.
    """
    if not options.web:
        yield
        return
    check_installed()
    words = [sys.executable, "-P", "-m", "rlgym_bridge.view.web.shown_run", str(run), str(options.port)]
    process = subprocess.Popen(
        words if options.no_browser else [*words, "browser"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **apart(),
    )  # fmt: skip
    say = shared.printer(options)
    if newest_checkpoint(run) is None:
        say("the page opens at the first checkpoint; checkpoint_every sets after how many steps that is")
    teller = threading.Thread(target=_tell_address, args=(process, say), daemon=True)
    teller.start()
    try:
        yield
    finally:
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()  # the process ends with it
        await_end(process, _END_SECONDS)
        teller.join(_END_SECONDS)


def _tell_address(process: "subprocess.Popen[str]", say: Callable[[str], None]) -> None:
    """Print where the run is shown, or why it is not; other lines are prints of the user's own components."""
    from rlgym_bridge.view.web import READY

    assert process.stdout is not None
    said = ""
    for line in process.stdout:  # to the end: a full pipe would stop the process
        said = line.strip()
        if said.startswith(READY):
            say(f"look at {said.removeprefix(READY)}")
    if process.wait() == 2:
        print(f"warning: --web shows nothing: {said}", file=sys.stderr)


class NamedPolicies:
    """Policies by the names that the page shows.

    Args:
        given: Paths of policy folders, or names as `load_player` takes them.
        allow_modules: Modules of the user's own that folders may import.
    """

    def __init__(self, given: Iterable[str], allow_modules: Sequence[str] = ()) -> None:
        self._paths: dict[str, str] = {}
        self._allow = tuple(allow_modules)
        if allow_modules:
            add_module_folders(Path.cwd())
        given = list(dict.fromkeys(given))
        runs = [run for run in map(run_of, given) if run is not None and run.is_dir()]
        newest = [str(one) for run in runs for one in all_checkpoints(run)[-_MOST_CHECKPOINTS:][::-1]]
        for path in dict.fromkeys((*given, *BUILT_IN, *newest)):
            short = path if path in BUILT_IN else shorten_policy(path)
            is_taken = path not in BUILT_IN and short in {*BUILT_IN, *_OTHER_DRIVERS, *self._paths}
            self._paths[path if is_taken else short] = path
        self._names = {path: name for name, path in self._paths.items()}
        self.load = cache(self._load)

    @property
    def names(self) -> list[str]:
        """List the names of all that may drive, those that were given first."""
        return list(self._paths)

    def name_of(self, path: str) -> str:
        """Return what the page calls a policy; no two have one name."""
        return self._names[path]

    def _load(self, name: str) -> PlayerSpec:
        path = self._paths[name]
        modules = () if path in BUILT_IN else run_modules(path, self._allow)
        if modules:
            add_module_folders(Path.cwd())
        return load_player(path, (*self._allow, *modules))
