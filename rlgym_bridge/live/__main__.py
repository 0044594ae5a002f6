"""Run a policy, or with `--follow` a run's newest checkpoint, as a bot process without a `bot.py`."""

import sys
from pathlib import Path

from rlgym_bridge.live.play import play  # isort: skip  (the first: it sets numpy's threads)
from rlgym_bridge.policy.load_player import BUILT_IN
from rlgym_bridge.user_input.user_modules import add_module_folders

if __name__ == "__main__":
    follow = sys.argv[1:2] == ["--follow"]
    words = sys.argv[1 + follow :]
    if not words:
        sys.exit("usage: python -m rlgym_bridge.live POLICY_FOLDER|chaser|random|--follow RUN [MODULE...]")
    policy, modules = words[0], words[1:]
    if modules:  # nothing else of the current folder is used: it was not started in one of its own
        add_module_folders(Path.cwd())
    sys.exit(
        play(policy, allow_modules=modules, folder=None if policy in BUILT_IN else policy, follow=follow)
    )
