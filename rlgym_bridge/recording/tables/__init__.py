"""Read tables of numbers that others recorded."""
