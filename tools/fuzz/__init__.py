"""Fuzzing of everything that reads what others have written: `python -m tools.fuzz --seconds N`."""
