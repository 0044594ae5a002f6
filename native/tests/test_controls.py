"""Control vectors act after their delays."""

import numpy as np
from scenes import bits, playing, random_controls, resting


class Queues:
    """Hold delayed vectors in plain Python: for each car a list of (tick, vector)."""

    def __init__(self, cars):
        self.held, self.waiting, self.tick = [np.zeros(8, np.float32)] * cars, [[] for _ in range(cars)], 0

    def step(self, vectors, delay, ticks):
        """Take `(cars, 1 or ticks, 8)`; return what each car holds in each tick, `(cars, ticks, 8)`."""
        acting = np.zeros((len(self.held), ticks, 8), np.float32)
        for car, rows in enumerate(vectors):
            begins = self.tick + delay[car]
            queue = [(tick, row) for tick, row in self.waiting[car] if tick < begins]
            queue += [(begins + late, row) for late, row in enumerate(rows)]
            for at in range(ticks):
                while queue and queue[0][0] <= self.tick + at:
                    self.held[car] = queue.pop(0)[1]
                acting[car, at] = self.held[car]
            self.waiting[car] = queue
        self.tick += ticks
        return acting


def test_random_delays_act_as_a_plain_list_does():
    random = np.random.default_rng(6)
    delayed, plain = (playing(4, 2, 1, seed=8) for _ in range(2))
    for world in (delayed, plain):
        world.put()  # clears what is held over
        world.state["car_controls"][:] = 0
        world.put()
    queues = [Queues(3) for _ in range(4)]
    for _ in range(150):
        ticks = int(random.integers(1, 13))
        controls = random_controls(random, 4, 3, random.choice([1, ticks]))
        delay = random.integers(0, 25, (4, 3)) if random.random() < 0.8 else np.full((4, 3), 3)
        acting = np.array(
            [queue.step(*pair, ticks) for queue, *pair in zip(queues, controls, delay, strict=True)]
        )
        delayed.step(controls, ticks, delay)
        plain.step(acting) if ticks == 1 else plain.step(acting, ticks)
        assert (delayed.state["car_controls"] == acting[:, :, -1]).all()
        assert (bits(delayed.buffer) == bits(plain.buffer)).all()


def test_a_vector_a_tick_is_the_same_as_single_ticks():
    whole, single = (playing(3, 1, 1, seed=1) for _ in range(2))
    controls = random_controls(np.random.default_rng(2), 3, 2, 50)
    whole.step(controls, 50)
    for tick in range(50):
        single.step(controls[:, :, tick : tick + 1])
    touches = [name for name in whole.state if name == "car_ball_touches"]
    for world in (whole, single):
        world.state[touches[0]][:] = 0  # counts of a step
    assert (bits(whole.buffer) == bits(single.buffer)).all()


def test_put_and_kickoff_drop_what_waits():
    for restart in ("put", "kickoff"):
        world = resting(1, 1, 1)
        world.step(np.ones((1, 2, 1, 8), np.float32), 1, np.full((1, 2), 3))
        if restart == "put":
            world.put()
        else:
            world.matches.kickoff([0], world.buffer)
        world.step(np.zeros((1, 2, 1, 8), np.float32), 6, np.full((1, 2), 6))
        assert (world.state["car_controls"] == 0).all(), restart


def test_a_held_vector_acts_again_after_a_respawn():
    world = resting(1, 1, 1)
    world.matches.set_mutators(0, {"respawn_delay": 0.1})
    world.put()
    world.matches.demolish(0, 0, world.buffer)
    assert world.state["car_is_demoed"][0].tolist() == [1, 0]
    controls = np.zeros((1, 2, 1, 8), np.float32)
    controls[..., 0] = 1
    world.step(controls, 40)
    assert world.state["car_is_demoed"][0, 0] == 0
    assert np.linalg.norm(world.state["car_linear_velocity"][0, 0]) > 100


def test_play_equals_steps_and_ends_each_match_at_its_length():
    played, stepped = (playing(3, 1, 1, seed=3) for _ in range(2))
    controls = random_controls(np.random.default_rng(4), 3, 2, 30)
    frame = played.state["frame"].copy()
    frames = played.matches.play(played.buffer, controls, every=4, lengths=[30, 9, 0])
    assert frames.shape == (3, 7, played.layout.size)
    assert (np.isnan(frames).all(axis=2).sum(axis=1) == [0, 5, 7]).all()
    assert (played.state["frame"] - frame).tolist() == [30, 9, 0]
    for end in range(4, 29, 4):
        stepped.step(controls[:, :, end - 4 : end], 4)
        kept = np.ones(played.layout.size, bool)
        for car in range(2):
            column = played.layout.car_start + car * played.layout.car_stride
            kept[column + played.layout.fields["car_ball_touches"][0]] = False  # counts of a step
        assert (bits(frames[0, end // 4 - 1, kept]) == bits(stepped.buffer[0, kept])).all()
