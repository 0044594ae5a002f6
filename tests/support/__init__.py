"""Helpers that tests and benchmarks share and the package does not have."""
