"""Play a match in RocketSim by its rules, and build its packets."""
