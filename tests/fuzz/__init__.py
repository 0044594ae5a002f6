"""Fuzzing of everything that reads what others have written: `python -m tests.fuzz --seconds N`."""
