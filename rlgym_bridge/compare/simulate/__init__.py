"""Simulate the windows of a recording from its own states."""
