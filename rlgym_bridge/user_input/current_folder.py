"""Keep files of the current folder from being imported in place of installed packages.

It imports nothing that is not loaded already: any further module could be a file of that folder.
"""

# ruff: noqa: PTH100, PTH109, PTH118

import os
import sys

_OURS = ("rlgym_bridge", "training")


def leave_out_current_folder() -> None:
    """Take the current folder off the front of the search path, where `python -m` of ours has put it.

    The file of a stranger who gave away a folder must not be imported in place of an installed package,
    because somebody is in that folder. Where this package itself comes from there, the folder goes last.
    It has an effect once, when this package is imported.
    """
    words = sys.orig_argv  # while the package of what `python -m` runs is imported, argv begins with -m
    name = words[words.index("-m") + 1] if sys.argv[:1] == ["-m"] and "-m" in words[:-1] else ""
    if name.partition(".")[0] not in _OURS or not sys.path or sys.flags.safe_path:
        return
    here = os.getcwd()
    if os.path.abspath(sys.path[0] or ".") != here:
        return
    del sys.path[0]
    if os.path.abspath(__file__).startswith(os.path.join(here, "")) and here not in sys.path:
        sys.path.append(here)
