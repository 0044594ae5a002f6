"""PPO self-play in RocketSim: the package `rlgym_bridge.training`.

In a clone the folder also answers to `python -m training`, which only starts programs: all imports say
`rlgym_bridge.training`.
"""

import rlgym_bridge  # noqa: F401  (the first: it leaves out the current folder, where a stranger's files may be)
