"""Print text as it is written, whatever names and messages of others hold."""

import os
import sys
from typing import Any

from rich.console import Console, RenderableType
from rich.status import Status
from rich.text import Text

from rlgym_bridge.user_input.text_files import escape_controls


class PlainConsole(Console):
    """A console that shows names of others as they are, and that survives a reader who leaves.

    Control characters are spelt out, `:fire:` stays these six letters, and only the terminal wraps lines of
    text: rich would draw a picture, and cut paths in two. With `markup` names need `rich.markup.escape`.
    """

    def __init__(self, *, markup: bool = True, **how: Any) -> None:
        super().__init__(highlight=False, emoji=False, markup=markup, **how)

    def print(self, *objects: Any, **how: Any) -> None:
        """Print as rich does, text without line breaks of rich's own."""
        soft_wrap = all(isinstance(one, str) for one in objects)
        super().print(*objects, **{"soft_wrap": soft_wrap} | how)

    def render_str(self, text: str, **how: Any) -> Text:
        """Return a text to show, with control characters spelt out."""
        return super().render_str(escape_controls(text), **how)

    def status(self, status: RenderableType, **how: Any) -> Status:
        """Return a line that changes while something goes on; a text in it has no markup."""
        return _PlainStatus(_unchanged(status), console=self, **how)

    def on_broken_pipe(self) -> None:
        """Print nothing any more."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _PlainStatus(Status):
    """A status whose texts have no markup: rich's spinner reads them past the console."""

    def update(self, status: RenderableType | None = None, **how: Any) -> None:
        super().update(None if status is None else _unchanged(status), **how)


def _unchanged(what: RenderableType) -> RenderableType:
    return Text(escape_controls(what)) if isinstance(what, str) else what
