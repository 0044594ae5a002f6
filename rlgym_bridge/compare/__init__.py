"""How far the two worlds differ: timing, parity, and where RocketSim and a recording part."""
