"""Convert RocketSim arenas to `MatchState` and back, and step many of them."""
