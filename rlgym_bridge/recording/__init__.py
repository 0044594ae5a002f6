"""Matches as files: written while they are played, read back, and read from what others recorded."""
