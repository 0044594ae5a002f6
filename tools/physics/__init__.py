"""Measure how near both simulators come to the real game: `python -m tools.physics` writes the table."""
