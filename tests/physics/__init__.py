"""Measure how near both simulators come to the real game: `python -m tests.physics` writes the table."""
