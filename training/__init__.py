"""PPO self-play in RocketSim: `python -m training [config.toml]`."""

import rlgym_bridge  # noqa: F401  (the first: it leaves out the current folder, where a stranger's files may be)
