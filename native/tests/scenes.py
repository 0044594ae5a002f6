"""Make matches for the tests, and their control vectors."""

import hashlib

import numpy as np
import rocketsim_batch as rs

SPREAD = [(-1000, -2000), (1000, -2000), (-500, -3500), (500, -3500)]
"""Places of the blue cars of `resting`, uu; the orange ones stand opposite."""


class World:
    """A group of matches with its buffer.

    Attributes:
        matches: The group.
        layout: Of its rows.
        buffer: `(matches, size)` float32.
        state: Named views of the buffer.
    """

    def __init__(self, matches=1, blue=1, orange=1, *, seed=0, threads=1, layout=None):
        rs.load_meshes()
        self.layout = layout or rs.Layout(blue, orange)
        self.count, self.cars = matches, self.layout.blue + self.layout.orange
        self.matches = rs.Matches(matches, self.layout, seed=seed, threads=threads)
        self.buffer = np.zeros((matches, self.layout.size), np.float32)
        self.state = rs.views(self.layout, self.buffer)

    @property
    def all(self):
        return list(range(self.count))

    def put(self, states=None):
        """Put all matches as the buffer is, or as `states` are."""
        self.matches.put(self.all, (self.buffer if states is None else states).copy(), self.buffer)

    def step(self, controls=None, ticks=1, delay=None):
        """Step by control vectors `(matches, cars, 1 or ticks, 8)`, or by none; return the events."""
        if controls is None:
            controls = np.zeros((self.count, self.cars, 1, 8), np.float32)
        self.matches.step(self.buffer, np.ascontiguousarray(controls), ticks, delay)
        return self.matches.events()


def resting(matches=1, blue=1, orange=1, **options):
    """Return a world whose cars stand apart from each other and the ball, which rests at the centre."""
    world = World(matches, blue, orange, **options)
    state = world.state
    for name in ("gravity", "boost_consumption"):
        state[name][:] = 1
    state["dodge_deadzone"][:] = 0.5
    for name in ("ball_rotation", "car_rotation"):
        state[name][:] = np.eye(3)
    state["ball_position"][:] = (0, 0, 93.15)
    if world.cars:
        state["car_boost_amount"][:] = 33
    for car in range(world.cars):
        side = 1 if car < world.layout.blue else -1
        x, y = SPREAD[car if side == 1 else car - world.layout.blue]
        stand(state, car, (side * x, side * y, 17), yaw=side * np.pi / 2)
    world.put()
    return world


def playing(matches=1, blue=1, orange=1, *, seed=0, ticks=240, **options):
    """Return a world after `ticks` of random play from kickoffs, the ball on its way."""
    world = resting(matches, blue, orange, seed=seed, **options)
    world.matches.kickoff(world.all, world.buffer)
    state, random = world.state, np.random.default_rng(seed)
    state["ball_position"][:] = random.uniform((-3000, -4000, 150), (3000, 4000, 1500), (matches, 3))
    state["ball_linear_velocity"][:] = random.uniform(-1500, 1500, (matches, 3))
    state["car_boost_amount"][:] = 100
    world.put()
    for _ in range(ticks // 8):
        world.step(random_controls(random, matches, world.cars), 8)
    return world


def random_controls(random, matches, cars, ticks=1):
    """Return control vectors `(matches, cars, ticks, 8)`: cars drive, turn, jump, boost and dodge."""
    controls = random.uniform(-1, 1, (matches, cars, ticks, 8)).astype(np.float32)
    controls[..., 0] = np.where(random.random(controls.shape[:-1]) < 0.7, 1, controls[..., 0])
    controls[..., 5:] = random.random(controls[..., 5:].shape) < (0.3, 0.6, 0.1)
    return controls


def stand(state, car, place, *, yaw=0.0, velocity=(0, 0, 0), match=0):
    """Place a car in the buffer, upright, its nose turned by `yaw`."""
    cos, sin = np.cos(yaw), np.sin(yaw)
    state["car_position"][match, car] = place
    state["car_rotation"][match, car] = [(cos, -sin, 0), (sin, cos, 0), (0, 0, 1)]
    state["car_linear_velocity"][match, car] = velocity


def fly(state, place, velocity, match=0):
    """Place the ball in the buffer."""
    state["ball_position"][match] = place
    state["ball_linear_velocity"][match] = velocity


def digest(buffer):
    """Return a hash of numbers to the bit."""
    return hashlib.sha256(np.ascontiguousarray(buffer).tobytes()).hexdigest()[:16]


def bits(numbers):
    """Return float32 as their bits, which compare exactly."""
    return np.ascontiguousarray(numbers).view(np.uint32)
