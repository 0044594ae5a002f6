"""Run a policy as a bot process without a `bot.py`: `python -m rlgym_bridge.live POLICY`."""

import sys
from pathlib import Path

from rlgym_bridge.live.play import play  # isort: skip  (the first: it sets numpy's threads)
from rlgym_bridge.policy.load_player import CHASER
from rlgym_bridge.user_input.user_modules import add_module_folders, leave_out_current_folder

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m rlgym_bridge.live POLICY_FOLDER|chaser [MODULE...]")
    policy, modules = sys.argv[1], sys.argv[2:]
    # It was not started in a folder of its own, so it uses nothing of the current folder but the modules
    # that the user named.
    leave_out_current_folder()
    if modules:
        add_module_folders(Path.cwd())
    sys.exit(play(policy, allow_modules=modules, folder=None if policy == CHASER else policy))
