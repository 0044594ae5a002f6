"""The bot that RLBot starts. `python bot.py` plays the folder `policy/`, `python bot.py chaser` Chaser."""

import sys
from pathlib import Path

from rlgym_bridge import play

POLICY = Path(__file__).parent / "policy"

if __name__ == "__main__":
    # Modules of your own that the policy names, such as an observation builder, go in allow_modules.
    trained = POLICY if POLICY.is_dir() and sys.argv[1:] != ["chaser"] else "chaser"
    sys.exit(play(trained, agent_id="rlgym_bridge/bot", allow_modules=()))
