"""Train a Rocket League bot in RocketSim, play it in real matches, see the difference."""
