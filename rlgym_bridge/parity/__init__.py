"""Check that components see and do the same in the simulator and in packets."""
