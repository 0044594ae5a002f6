"""Equal seeds, states and control vectors give equal matches to the bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rocketsim_batch as rs
from scenes import World, bits, digest, playing, random_controls, resting

GOLDEN = Path(__file__).with_name("golden.json")
SLOW = bool(os.environ.get("ROCKETSIM_BATCH_SLOW"))
MATCHES, STEPS = (500, 300) if SLOW else (100, 100)


def begin(world, seed=0):
    """Put all matches on kickoffs with the ball on its way."""
    world.matches.seed(seed)
    world.put(resting(1, world.layout.blue, world.layout.orange).buffer.repeat(world.count, 0))
    world.matches.kickoff(world.all, world.buffer)
    random = np.random.default_rng(seed)
    world.state["ball_position"][:] = random.uniform(
        (-2000, -3000, 150), (2000, 3000, 1500), (world.count, 3)
    )
    world.state["ball_linear_velocity"][:] = random.uniform(-1500, 1500, (world.count, 3))
    world.state["car_boost_amount"][:] = 100
    world.put()


def play(world, steps=STEPS, seed=1):
    """Play random controls for steps of 8 ticks; return a hash of the rows of each step."""
    random, hashes = np.random.default_rng(seed), []
    for _ in range(steps):
        events = world.step(random_controls(random, world.count, world.cars), 8)
        hashes.append(digest(world.buffer) + digest(events))
    return hashes


def begun(threads=1, count=MATCHES):
    world = World(count, 3, 3, threads=threads)
    begin(world)
    return world


@pytest.fixture(scope="module")
def expected():
    return play(begun())


def test_two_threads_play_the_bits_of_one(expected):
    assert play(begun(threads=2)) == expected


def test_another_process_plays_the_same_bits(expected):
    code = "import test_determinism as t; print(' '.join(t.play(t.begun(threads=2))))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=1200
    )
    assert done.stdout.split() == expected, done.stderr


def test_used_arenas_play_the_bits_of_fresh_ones(expected):
    world = World(MATCHES, 3, 3)
    begin(world, seed=5)
    play(world, 40, seed=9)
    begin(world)
    assert play(world) == expected


def test_other_groups_beside_change_no_bit(expected):
    world, other = begun(), playing(7, 1, 1, seed=3)
    random, own = np.random.default_rng(4), np.random.default_rng(1)
    for step in range(20):
        parts = []
        for group, numbers in ((other, random), (world, own)):
            parts.append(
                (group.matches, group.buffer, random_controls(numbers, group.count, group.cars), None)
            )
        rs.step_groups(parts, 8)
        assert digest(world.buffer) + digest(world.matches.events()) == expected[step]


def test_matches_are_the_same_alone_and_in_any_company():
    three, one = playing(3, 2, 2, seed=6), World(1, 2, 2)
    one.put(three.buffer[2:])
    again = World(3, 2, 2)
    again.put(three.buffer[[2, 0, 2]])
    controls = random_controls(np.random.default_rng(1), 1, 4, 200)
    one.step(controls, 200)
    again.step(controls.repeat(3, 0), 200)
    assert (bits(again.buffer[[0, 2]]) == bits(one.buffer)).all()


def test_clones_go_on_as_their_sources_with_queues_and_random_streams():
    world = playing(4, 2, 2, seed=2)
    random = np.random.default_rng(3)
    world.step(random_controls(random, 4, 4), 8, np.full((4, 4), 20))  # acts later
    world.matches.clone_into([0, 1], [2, 3], world.buffer)
    assert (bits(world.buffer[:2]) == bits(world.buffer[2:])).all()
    assert (world.matches.statistics()[:2] == world.matches.statistics()[2:]).all()
    for late in (30, 0, 0, 0):
        controls = random_controls(random, 2, 4)
        for match in range(4):
            world.matches.demolish(match, 0, world.buffer)
        world.step(np.concatenate([controls] * 2), 400, np.full((4, 4), late))
        assert (bits(world.buffer[:2]) == bits(world.buffer[2:])).all()
    world.matches.kickoff(world.all, world.buffer)
    assert (bits(world.buffer[:2]) == bits(world.buffer[2:])).all()


def test_a_clone_of_a_clone_overlaps_as_if_all_were_copied_at_once():
    world = playing(3, 1, 1, seed=1)
    before = world.buffer.copy()
    world.matches.clone_into([0, 1], [1, 2], world.buffer)
    assert (bits(world.buffer) == bits(before[[0, 0, 1]])).all()


def test_seeds_decide_kickoffs_and_respawns_and_matches_differ():
    def spots(seed):
        world = resting(20, 1, 1, seed=seed)
        places = []
        for _ in range(3):
            world.matches.kickoff(world.all, world.buffer)
            places.append(world.state["car_position"].copy())
        for match in range(20):
            world.matches.respawn(match, 0, world.buffer)
        return np.array([*places, world.state["car_position"].copy()])

    first = spots(1)
    assert (first == spots(1)).all() and (first != spots(2)).any()
    assert len(np.unique(first[0, :, 0], axis=0)) >= 4
    assert len(np.unique(first[3, :, 0], axis=0)) >= 3


def test_seeding_some_matches_leaves_the_others_streams():
    one, two = (resting(4, 1, 1, seed=3) for _ in range(2))
    one.matches.seed(9, [1, 2])
    for world in (one, two):
        world.matches.kickoff(world.all, world.buffer)
    assert (one.buffer[[0, 3]] == two.buffer[[0, 3]]).all()


def trajectories():
    """Return the hashes of ten matches of 1,000 ticks, with sizes from 0v0 to 4v4."""
    sizes = [(0, 0), (1, 0), (0, 1), (1, 1), (1, 1), (2, 2), (2, 2), (3, 3), (3, 2), (4, 4)]
    found = {}
    for number, (blue, orange) in enumerate(sizes):
        world = playing(1, blue, orange, seed=number, ticks=0)
        if number % 2:
            world.matches.set_mutators(0, {"ball_bounciness": 0.8, "boost_accel_air": 1500})
            world.put()
        rows = [digest(world.buffer)]
        random = np.random.default_rng(100 + number)
        for _ in range(125):
            world.step(random_controls(random, 1, world.cars), 8)
            rows.append(digest(world.buffer))
        found[f"{number}: {blue}v{orange}"] = digest(np.frombuffer("".join(rows).encode(), np.uint8))
    return found


def test_golden_trajectories_hold():
    """They change with crate, compiler or code; after a look: `python test_determinism.py --renew`."""
    assert trajectories() == json.loads(GOLDEN.read_text(encoding="utf-8"))


if __name__ == "__main__" and sys.argv[1:] == ["--renew"]:
    GOLDEN.write_text(json.dumps(trajectories(), indent=1) + "\n", encoding="utf-8")
