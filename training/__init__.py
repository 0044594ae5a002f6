"""PPO self-play in RocketSim: `python -m training [config.toml]`."""

import os

# torch's threads spin while they wait for each other. Beside any other busy process that makes two threads
# up to ten times slower than one; asleep they lose nothing. Read when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
