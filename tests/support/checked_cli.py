"""The command line with a checker on the packets of its matches: `python -m tests.support.checked_cli`."""

import sys

from rlgym_bridge.cli import main
from tests.support.watched_matches import watching

ODD_PACKETS = 70
"""Exit code where a packet broke a rule; what is wrong stands in stderr."""


def checked() -> int:
    """Run `rlgym-bridge` and return its exit code, or `ODD_PACKETS`."""
    with watching() as watch:
        code = main()
    try:
        watch.check()
    except AssertionError as error:
        print(error, file=sys.stderr)
        return ODD_PACKETS
    return code


if __name__ == "__main__":
    sys.exit(checked())
