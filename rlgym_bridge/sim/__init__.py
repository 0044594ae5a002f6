"""The simulator side: RocketSim arenas to `MatchState` and back."""
