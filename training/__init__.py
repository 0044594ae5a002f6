"""PPO self-play in RocketSim: `python -m training [config.toml]`."""

from rlgym_bridge.user_input.user_modules import leave_out_current_folder

leave_out_current_folder()  # before anything else is imported, which a stranger's file could replace
