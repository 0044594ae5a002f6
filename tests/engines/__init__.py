"""RLGym over a simulator and over a match."""
