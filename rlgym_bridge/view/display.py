"""Find out whether this machine shows windows, and open pages in its browser."""

import os
import sys
import threading
import webbrowser
from contextlib import suppress
from typing import Final

_OF_TERMINALS: Final = ("GenericBrowser", "Elinks")  # webbrowser's classes for w3m, lynx and the like


def has_display() -> bool:
    """Tell whether a window can be opened."""
    if sys.platform.startswith(("win", "darwin")):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_browser(address: str) -> None:
    """Open a page in a browser with windows, if there is one; nothing waits for it.

    A browser of the terminal would take that away from the command, and wait until it is closed.
    """
    threading.Thread(target=_open, args=(address,), name="browser", daemon=True).start()


def _open(address: str) -> None:
    is_chosen = bool(os.environ.get("BROWSER"))
    with suppress(webbrowser.Error):
        of_terminal = not has_display() or type(webbrowser.get()).__name__ in _OF_TERMINALS
        if is_chosen or not of_terminal:
            webbrowser.open(address)
