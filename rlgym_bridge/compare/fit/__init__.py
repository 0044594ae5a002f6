"""Fit the time of a recording, and how late its inputs act."""
