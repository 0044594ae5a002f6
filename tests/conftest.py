"""Fixtures and settings of every test."""

import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: two workers share two cores
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process that a test starts would compile all anew

from rlgym_bridge.cli import main
from rlgym_bridge.project import package_bot
from rlgym_bridge.project.package_bot import pack_wheel
from tests.support.processes import guard
from tests.support.short_waits import lengthen_answer_wait, shorten_countdown
from tests.support.watched_matches import watching


def pytest_sessionstart() -> None:
    """Have all processes that tests start end with this one, and keep what is compiled."""
    guard()
    sys.dont_write_bytecode = False


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from what collecting the tests leaves, then and for good.

    That is a million objects. A full collection of them takes 0.3 s, and each match in this process makes
    several. A match freezes and unfreezes what is there; unfreezing would bring all of it back.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        for name in ("freeze", "unfreeze"):
            setattr(gc, name, lambda: None)
        gc.enable()


@pytest.fixture(autouse=True, scope="session")
def wheels_are_packed_once() -> Iterator[None]:
    """Keep the wheel that comes along with a packaged bot: to compress it takes most of the time."""
    kept = cache(lambda name, place: pack_wheel(name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package_bot, "pack_wheel", lambda name: kept(name, place_of(name)))
        yield


def place_of(name: str) -> str:
    """Return where a distribution is installed."""
    try:
        return str(metadata.distribution(name).locate_file(""))
    except metadata.PackageNotFoundError:
        return ""


@pytest.fixture(autouse=True)
def logs_have_the_level_of_commands() -> None:
    """Begin each test with the level of a command without `-q`, whatever the tests before it set."""
    logging.getLogger("rlgym_bridge").setLevel(logging.INFO)


@contextmanager
def forgetting_own_modules(base: Path) -> Iterator[None]:
    """Drop the modules that are imported from folders of tests: another test may use their names."""
    before, path, root = set(sys.modules), list(sys.path), Path(__file__).parents[1]
    own = (str(base), str(root / "tests" / "data"), str(root / "rlgym_bridge" / "project" / "template"))
    yield
    sys.path[:] = path  # commands add a user's folders
    for name in set(sys.modules) - before:
        attributes = getattr(sys.modules[name], "__dict__", {})  # modules of others make up any attribute
        places = f"{attributes.get('__file__')} {attributes.get('__path__')}"
        if any(folder in places for folder in own):
            del sys.modules[name]


@pytest.fixture(autouse=True, scope="module")
def own_modules_of_a_file_are_forgotten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget what fixtures of a file of tests import from folders of tests."""
    with forgetting_own_modules(tmp_path_factory.getbasetemp()):
        yield


@pytest.fixture(autouse=True)
def own_modules_are_forgotten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget what a test imports from its own folders."""
    with forgetting_own_modules(tmp_path_factory.getbasetemp()):
        yield


@pytest.fixture(autouse=True)
def bots_may_be_held_up(own_modules_are_forgotten: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give bots in lockstep more time than a user's match does.

    Modules are forgotten after `monkeypatch` has put back what it changed, so they come first here.
    """
    lengthen_answer_wait(monkeypatch)


@pytest.fixture
def usual_answer_wait(bots_may_be_held_up: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give bots in lockstep the time that a user's match gives them."""
    monkeypatch.undo()


@pytest.fixture
def short_countdowns(bots_may_be_held_up: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let countdowns last half a second: four of the five seconds of a short match are its countdown."""
    shorten_countdown(monkeypatch)


@pytest.fixture(autouse=True)
def packets_are_checked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold the packets of all matches that a test plays in this process against the checker.

    A test whose packets are wrong on purpose says so: `@pytest.mark.odd_packets("why")`.
    """
    with watching() as watch:
        yield
    if request.node.get_closest_marker("odd_packets") is None:
        watch.check()


@pytest.fixture
def hangups_end_processes() -> Iterator[None]:
    """Start processes that SIGHUP ends, even where these tests run under nohup."""
    number = getattr(signal, "SIGHUP", None)
    if number is None:
        yield
        return
    before = signal.signal(number, signal.SIG_DFL)
    yield
    signal.signal(number, before)


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return what runs a command that ends with status 2 and one line of error, and returns this line."""

    def run(*words: str | Path) -> str:
        capsys.readouterr()
        try:
            code: object = main([*map(str, words)])
        except SystemExit as ended:
            code = ended.code
        said = capsys.readouterr().err
        is_usage = said.startswith("usage: ")  # argparse's error
        assert code == 2 and (is_usage or (said.startswith("error: ") and said.count("\n") == 1)), said
        return said

    return run
