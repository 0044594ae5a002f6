"""Hold the observations, actions, rewards, conditions and mutators that training and play share."""
