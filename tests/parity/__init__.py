"""Ask whether a bot sees in a match what it saw in training; `python -m tools.parity` counts every field."""
