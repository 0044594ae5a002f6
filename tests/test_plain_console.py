"""Names and messages of others are printed as they are: no emoji codes, no markup, no control characters."""

import ast
import io
import re
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live
from rich.table import Table

from rlgym_bridge.cli.options import console_of, printer
from rlgym_bridge.training.runs.progress import say_nothing_left
from rlgym_bridge.training.settings import TrainingSettings
from rlgym_bridge.user_input.plain_console import PlainConsole
from tests.support.documentation import ROOT

NAME = "Hot :fire: Bot :100:"
HOME = ROOT / "rlgym_bridge/user_input/plain_console.py"
SOURCES = [path for room in ("rlgym_bridge", "training") for path in sorted((ROOT / room).rglob("*.py"))]

TAKEN_FROM_RICH = {
    "rich.console": {"Console"},  # to name the type: `PlainConsole` makes them
    "rich.live": {"Live"},
    "rich.markup": {"escape"},
    "rich.status": {"Status"},  # to name the type: `PlainConsole.status` makes them
    "rich.table": {"Table"},
}
"""Name what product code takes from rich: Panel, Progress and others read emoji codes past the console."""


def terminal(markup: bool = True) -> PlainConsole:
    return PlainConsole(file=io.StringIO(), force_terminal=True, width=100, color_system=None, markup=markup)


def table(name: str) -> Table:
    """Return a table with a name in each of its parts."""
    made = Table(title=name, caption=name)
    made.add_column(name, footer=name)
    made.add_row(name)
    return made


def show_live(console: Console) -> None:
    with Live(table(NAME), console=console, auto_refresh=False) as live:
        live.update(table(NAME), refresh=True)


def show_status(console: Console) -> None:
    with console.status(NAME) as status:
        time.sleep(0.1)
        status.update(f"{NAME} plays")
        time.sleep(0.2)


@pytest.mark.parametrize(
    "show",
    [
        lambda console: console.print(NAME),
        lambda console: console.print(f"[bold]{NAME}[/]"),
        lambda console: console.print(NAME, markup=False, soft_wrap=True),
        lambda console: console.print(table(NAME)),
        lambda console: console.rule(NAME),
        lambda console: console.log(NAME),
        show_live,
        show_status,
    ],
    ids=["print", "markup", "plain", "table", "rule", "log", "live", "status"],
)
@pytest.mark.parametrize("markup", [True, False])
def test_emoji_codes_stay_letters(show: Callable[[Console], None], markup: bool) -> None:
    console = terminal(markup)
    show(console)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert ":fire:" in shown and ":100:" in shown
    assert "\N{FIRE}" not in shown and "\N{HUNDRED POINTS SYMBOL}" not in shown


def test_a_status_shows_brackets_and_spells_out_controls() -> None:
    console = terminal()
    with console.status("[red]Red[/] \x1b[2J"):
        time.sleep(0.1)
    assert isinstance(console.file, io.StringIO)
    assert "[red]Red[/] \\x1b[2J" in console.file.getvalue()


def test_commands_and_training_print_through_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = Namespace(quiet=False)
    assert isinstance(console_of(options), PlainConsole)
    printer(options)(NAME)
    say_nothing_left(TrainingSettings(out=str(tmp_path / "a :fire: run"), steps=10), 10, quiet=False)
    out, err = capsys.readouterr()
    assert out == f"{NAME}\n" and "a :fire: run has 10 of 10 steps" in err


def goes_past_it(node: ast.AST) -> bool:
    """Tell whether code makes a console, or takes from rich what reads emoji codes past ours."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rich":
        return not {name.name for name in node.names} <= TAKEN_FROM_RICH.get(node.module or "", set())
    if isinstance(node, ast.Import):
        return any(name.name.split(".")[0] == "rich" for name in node.names)
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("Console", "Status")


def test_no_other_console_is_made() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES if path != HOME}
    suspects = [path for path, text in texts.items() if re.search(r"\brich\b|\b(Console|Status)\(", text)]
    assert len(suspects) > 10
    assert not [
        f"{path}: {ast.unparse(node)}"
        for path in suspects
        for node in ast.walk(ast.parse(texts[path]))
        if goes_past_it(node)
    ]
