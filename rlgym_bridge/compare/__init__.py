"""Measure how far simulator and game differ, in timing, physics and play."""
