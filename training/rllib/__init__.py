"""Training with Ray RLlib: the same settings, networks, matches and policy folders on many machines."""
