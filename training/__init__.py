"""PPO self-play in RocketSim: `python -m training [config.toml]`."""
