import numpy as np

from rlgym_bridge import RelativeObs


class SpeedObs(RelativeObs):
    """RelativeObs, and how fast the car is."""

    def build_batch(self, state, seats=None):
        seen = super().build_batch(state, seats)
        cars = range(state.layout.cars) if seats is None else seats
        speed = np.linalg.norm(state.car_linear_velocity[:, list(cars)], axis=-1, keepdims=True)
        return np.concatenate([seen, speed / 2300], axis=-1)

    def get_obs_space(self, agent):
        kind, size = super().get_obs_space(agent)
        return kind, size + 1 if size > 0 else size

    def names(self, blue, orange, seat=0):
        return (*super().names(blue, orange, seat), "speed")
