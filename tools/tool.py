"""Run a tool's `main` as a program: what its user did wrong is said in a line."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from rlgym_bridge.user_input.extras import explain_missing


def run_tool(main: Callable[[Sequence[str]], Any]) -> NoReturn:
    """Run `main` with the words of this process, and end it.

    The exit code is what `main` returns, or else 0; 1 after Ctrl-C; 2 for OSErrors, ValueErrors and packages
    that are not installed, of which the message alone is shown.
    """
    code = 2
    try:
        code = main(sys.argv[1:]) or 0
    except KeyboardInterrupt:
        code = 1
        print("stopped", file=sys.stderr)
    except ImportError as error:
        print(f"error: {explain_missing(error.name) or error}", file=sys.stderr)
    except (OSError, ValueError) as error:
        place = isinstance(error, OSError) and error.filename is not None and error.strerror
        print(f"error: {f'{error.filename}: {error.strerror}' if place else error}", file=sys.stderr)
    sys.exit(code)
