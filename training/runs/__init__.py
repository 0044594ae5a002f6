"""Keep a training run: its folder, checkpoints, progress and end."""
