"""`python -m rlgym_bridge.live POLICY`: a bot process without a `bot.py`, for `rlgym-bridge match`."""

import sys

from rlgym_bridge.live.bot import play  # isort: skip  (the first: it sets numpy's threads)
from rlgym_bridge.policy.load_player import CHASER

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m rlgym_bridge.live POLICY_FOLDER|chaser [MODULE...]")
    policy = sys.argv[1]
    # It was not started in a folder of its own: what lies in the current one is none of its business.
    sys.exit(play(policy, allow_modules=sys.argv[2:], folder=None if policy == CHASER else policy))
