"""Does a bot see in a match what it saw in training? `python -m tests.parity` counts every field."""
