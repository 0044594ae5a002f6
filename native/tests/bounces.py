"""Compare the ball's bounces with RocketSim 2.2.1's.

RocketSim 2.2.1 has a mutator for the bounciness, which RocketSim 3 lacks and the module adds.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scenes import World

BOUNCINESS = (0.3, 0.6, 0.9, 1.2)
"""0.6 is that of both simulators: there the module corrects nothing."""

DIAGONAL = np.sqrt(0.5)
SURFACES = {
    "floor": ((0, 0, 0), (0, 0, 1)),
    "side wall": ((4096, 0, 1000), (-1, 0, 0)),
    "back wall": ((1900, 5120, 1100), (0, -1, 0)),
    "ceiling": ((0, 0, 2044), (0, 0, -1)),
    "corner": ((3520, 4544, 1000), (-DIAGONAL, -DIAGONAL, 0)),
    "slope": ((4021, 0, 75), (-DIAGONAL, 0, DIAGONAL)),
}
"""A point of each surface in uu, and its normal there."""

SPEEDS = (300, 1000, 2500, 4500)  # uu/s
ANGLES = (0, 15, 30, 50, 70)  # degrees from the normal
SPINS = (0, 2, 5)  # rad/s, about an axis of chance
RADIUS = 91.25  # uu
AHEAD = 12  # ticks from the start to the bounce
AFTER = 3  # ticks after which velocities are compared, in the tick of the bounce or of the later one


def starts(surface):
    """Return balls that are about to bounce: positions, velocities and spins, `(60, 3)` each."""
    random = np.random.default_rng(sorted(SURFACES).index(surface))
    point, normal = (np.array(part, float) for part in SURFACES[surface])
    found = []
    for speed in SPEEDS:
        for angle in np.radians(ANGLES):
            for spin in SPINS:
                across = np.cross(normal, random.normal(size=3))
                across /= np.linalg.norm(across)
                velocity = speed * (np.sin(angle) * across - np.cos(angle) * normal)
                place = point + RADIUS * normal - velocity * AHEAD / 120
                axis = random.normal(size=3)
                found.append((place, velocity, spin * axis / np.linalg.norm(axis)))
    places, velocities, spins = (np.array(part) for part in zip(*found, strict=True))
    return np.round(places, 2), cut(velocities, 100), cut(spins, 10_000)


def cut(numbers, scale):
    """Return numbers that RocketSim 3 rounds to themselves, so that both simulators begin alike."""
    return np.trunc(numbers * scale) / scale + np.sign(numbers) * 0.1 / scale


def load_old_meshes():
    """Load the meshes for RocketSim 2.2.1, once in a process."""
    import RocketSim as rsim

    (rlgym,) = find_spec("rlgym").submodule_search_locations
    try:
        rsim.init(str(Path(rlgym, "rocket_league", "sim", "collision_meshes")))
    except RuntimeError as error:
        if "Already inited" not in str(error):
            raise


def play_new(surface, bounciness, ticks):
    """Return velocities and spins of RocketSim 3, `(60, ticks, 6)`."""
    places, velocities, spins = starts(surface)
    world = World(len(places), 0, 0)
    state = world.state
    state["gravity"][:] = state["boost_consumption"][:] = 1
    state["ball_rotation"][:] = np.eye(3)
    state["ball_position"][:], state["ball_linear_velocity"][:] = places, velocities
    state["ball_angular_velocity"][:] = spins
    for match in world.all:
        world.matches.set_mutators(match, {"ball_bounciness": bounciness})
    world.put()
    shown = []
    for _ in range(ticks):
        world.step()
        shown.append(np.concatenate([state["ball_linear_velocity"], state["ball_angular_velocity"]], axis=1))
    return np.stack(shown, axis=1)


def play_old(surface, bounciness, ticks):
    """Return velocities and spins of RocketSim 2.2.1, `(60, ticks, 6)`."""
    import RocketSim as rsim

    arena = rsim.Arena(rsim.GameMode.SOCCAR)
    config = arena.get_mutator_config()
    config.ball_world_restitution = bounciness
    arena.set_mutator_config(config)
    shown = []
    for place, velocity, spin in zip(*starts(surface), strict=True):
        state = rsim.BallState()
        state.pos, state.vel, state.ang_vel = (
            rsim.Vec(*map(float, part)) for part in (place, velocity, spin)
        )
        arena.ball.set_state(state)
        shown.append([])
        for _ in range(ticks):
            arena.step(1)
            now = arena.ball.get_state()
            shown[-1].append((*now.vel.as_tuple(), *now.ang_vel.as_tuple()))
    return np.array(shown)


def bounced(shown, velocities):
    """Return the tick of each ball's first bounce, -1 without one."""
    before = np.concatenate([velocities[:, None], shown[:, :-1, :3]], axis=1)
    changes = np.linalg.norm(shown[..., :3] - before, axis=2) > 12  # gravity and drag: 6.7 uu/s at most
    return np.where(changes.any(axis=1), changes.argmax(axis=1), -1)


def errors(surface, bounciness):
    """Return how far velocities (uu/s) and spins (rad/s) are apart after the first bounce, `(balls, 2)`.

    Balls that are too slow to reach the surface are left out.
    """
    ticks = AHEAD + 30
    new, old = (play(surface, bounciness, ticks) for play in (play_new, play_old))
    velocities = starts(surface)[1]
    first, other = bounced(new, velocities), bounced(old, velocities)
    numbers = np.flatnonzero(first >= 0)
    assert ((first >= 0) == (other >= 0)).all()
    ends = np.maximum(first, other)[numbers] + AFTER
    apart = new[numbers, ends] - old[numbers, ends]
    return np.stack([np.linalg.norm(apart[:, :3], axis=1), np.linalg.norm(apart[:, 3:], axis=1)], axis=1)
