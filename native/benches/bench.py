"""Compare ticks a second with those of RocketSim 2.2.1, in one run: `python benches/bench.py [SECONDS]`.

Both play the same control vectors, held for 8 ticks; the module's times include whole states read into numpy,
those of RocketSim 2.2.1 (the package `RocketSim`) physics alone. "held" repeats vectors that drive and steer,
"random" draws new ones for every 8 ticks. Each number is the best of three runs.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import rocketsim_batch as rs

MATCHES, TICKS = 64, 8


def controls(random: np.random.Generator, cars: int, kind: str) -> np.ndarray:
    """Return control vectors `(50, matches, cars, 1, 8)`."""
    vectors = random.uniform(-1, 1, (50, MATCHES, cars, 1, 8)).astype(np.float32)
    vectors[..., 5:] = vectors[..., 5:] > 0
    if kind == "held":
        vectors[1:] = vectors[0]
        vectors[..., 0], vectors[..., 5] = 1, 0
    return vectors


def rate(step: Callable[[int], object], seconds: float) -> float:
    """Return ticks of single matches a second."""
    best = 0.0
    for _ in range(3):
        begin, steps = time.perf_counter(), 0
        while time.perf_counter() < begin + seconds:
            step(steps % 50)
            steps += 1
        best = max(best, steps * MATCHES * TICKS / (time.perf_counter() - begin))
    return best


def batched(size: int, vectors: np.ndarray, threads: int, seconds: float) -> float:
    """Measure this module."""
    layout = rs.Layout(size, size)
    matches, buffer = (
        rs.Matches(MATCHES, layout, threads=threads),
        np.zeros((MATCHES, layout.size), np.float32),
    )
    state = rs.views(layout, buffer)
    state["ball_rotation"][:] = state["car_rotation"][:] = np.eye(3)
    state["gravity"][:] = state["boost_consumption"][:] = 1
    matches.put(list(range(MATCHES)), buffer.copy(), buffer)
    matches.kickoff(list(range(MATCHES)), buffer)
    return rate(lambda step: matches.step(buffer, vectors[step], TICKS), seconds)


def arenas(size: int, vectors: np.ndarray, seconds: float) -> float:
    """Measure RocketSim 2.2.1, arena by arena."""
    import RocketSim as rsim

    made, cars = [], []
    for match in range(MATCHES):
        arena = rsim.Arena(rsim.GameMode.SOCCAR)
        for car in range(2 * size):
            arena.add_car(
                rsim.Team.BLUE if car < size else rsim.Team.ORANGE, rsim.CarConfig(rsim.CarConfig.OCTANE)
            )
        arena.reset_kickoff(match)
        made.append(arena)
        cars.append(arena.get_cars())
    names = ("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")
    rows = []
    for step in vectors[:, :, :, 0]:
        rows.append([])
        for match in step:
            of_cars = []
            for vector in match:
                own = rsim.CarControls()
                for name, value in zip(names, vector.tolist(), strict=True):
                    setattr(own, name, bool(value > 0) if name in names[5:] else value)
                of_cars.append(own)
            rows[-1].append(of_cars)

    def step(number: int) -> None:
        for arena, of_match, own in zip(made, cars, rows[number], strict=True):
            for car, vector in zip(of_match, own, strict=True):
                car.set_controls(vector)
            arena.step(TICKS)

    return rate(step, seconds)


def main() -> None:
    """Print a table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rs.load_meshes()
    try:
        from importlib.util import find_spec

        import RocketSim as rsim

        (place,) = find_spec("rlgym").submodule_search_locations  # type: ignore[union-attr, misc]
        rsim.init(str(Path(place, "rocket_league/sim/collision_meshes")))
        old = True
    except ImportError:
        old = False
    print(f"{MATCHES} matches, ticks a second     2.2.1   1 thread  2 threads   1 / 2.2.1   2 / 1")
    for size in (1, 3):
        for kind in ("held", "random"):
            vectors = controls(np.random.default_rng(0), 2 * size, kind)
            base = arenas(size, vectors, seconds) if old else float("nan")
            one, two = (batched(size, vectors, threads, seconds) for threads in (1, 2))
            words = f"{size}v{size} {kind:<8} {base:22,.0f} {one:10,.0f} {two:10,.0f}"
            print(f"{words} {one / base:11.2f} {two / one:7.2f}")


if __name__ == "__main__":
    main()
