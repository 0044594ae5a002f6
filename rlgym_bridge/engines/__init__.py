"""Run RLGym's `TransitionEngine` over the simulator and over a live match."""
