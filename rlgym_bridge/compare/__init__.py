"""How far the two worlds differ: timing, parity."""
