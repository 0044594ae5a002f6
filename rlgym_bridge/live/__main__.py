"""`python -m rlgym_bridge.live POLICY`: a bot process without a `bot.py`, for `rlgym-bridge match`."""

import sys

from rlgym_bridge.live.bot import play

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m rlgym_bridge.live POLICY_FOLDER|chaser [MODULE...]")
    sys.exit(play(sys.argv[1], allow_modules=sys.argv[2:]))
