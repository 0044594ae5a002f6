"""The bot that RLBot starts: it plays the folder `policy` beside this file."""

import sys
from pathlib import Path

from rlgym_bridge import play

POLICY = Path(__file__).parent / "policy"

if __name__ == "__main__":
    sys.exit(play(POLICY, agent_id="{agent_id}", allow_modules=()))
