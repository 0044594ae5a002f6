"""`python -m rlgym_bridge.cli` is `rlgym-bridge`."""

import sys

from rlgym_bridge.cli import main

if __name__ == "__main__":
    sys.exit(main())
