"""Observations, actions, rewards, conditions and mutators: what training and play share."""
