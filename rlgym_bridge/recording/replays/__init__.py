"""Read the game's replay files."""
