"""The bot that RLBot starts: it plays the folder `policy` if there is one, else the newest checkpoint."""

import sys
from pathlib import Path

from rlgym_bridge import play

HERE = Path(__file__).parent
POLICY = HERE / "policy"
RUN = HERE / "runs" / "mine"

if __name__ == "__main__":
    chosen = POLICY if POLICY.is_dir() else RUN
    sys.exit(play(chosen, agent_id="{agent_id}", allow_modules=("my_parts",), follow=chosen == RUN))
