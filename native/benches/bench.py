"""Compare ticks a second with those of RocketSim 2.2.1, in one run: `python benches/bench.py [SECONDS]`.

Both play the same control vectors, held for 8 ticks; the module's times include whole states read into numpy,
those of RocketSim 2.2.1 (the package `RocketSim`) physics alone. "held" repeats vectors that drive and steer,
"random" draws new ones for every 8 ticks. Each number is the best of five runs.
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


def rates(steps: list[Callable[[int], object]], seconds: float) -> np.ndarray:
    """Return ticks of single matches a second of each, `(steps, 2)`: by the wall's clock, and by CPU time.

    They take turns, so that other load hits all alike.
    """
    best = np.zeros((len(steps), 2))
    for _ in range(5):
        for number, step in enumerate(steps):
            count, begin, cpu = 0, time.perf_counter(), time.process_time()
            while time.perf_counter() < begin + seconds / 5:
                step(count % 50)
                count += 1
            took = time.perf_counter() - begin, time.process_time() - cpu
            best[number] = np.maximum(best[number], count * MATCHES * TICKS / np.array(took))
    return best


def batched(size: int, vectors: np.ndarray, threads: int) -> Callable[[int], object]:
    """Return what steps 64 matches of this module."""
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
    return lambda step: matches.step(buffer, vectors[step], TICKS)


def arenas(size: int, vectors: np.ndarray) -> Callable[[int], object]:
    """Return what steps 64 arenas of RocketSim 2.2.1, one by one."""
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

    return step


def main() -> None:
    """Print a table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    rs.load_meshes()
    try:
        from importlib.util import find_spec

        import RocketSim as rsim

        (place,) = find_spec("rlgym").submodule_search_locations  # type: ignore[union-attr, misc]
        rsim.init(str(Path(place, "rocket_league/sim/collision_meshes")))
        old = True
    except ImportError:
        old = False
    print(
        f"{MATCHES} matches, ticks a second     2.2.1   1 thread  2 threads   1 / 2.2.1   in CPU time   2 / 1"
    )
    for size in (1, 3):
        for kind in ("held", "random"):
            vectors = controls(np.random.default_rng(0), 2 * size, kind)
            steps = [batched(size, vectors, threads) for threads in (1, 2)]
            one, two, *others = rates(steps + [arenas(size, vectors)] * old, seconds)
            base = others[0] if others else np.full(2, np.nan)
            words = f"{size}v{size} {kind:<8} {base[0]:22,.0f} {one[0]:10,.0f} {two[0]:10,.0f}"
            print(
                f"{words} {one[0] / base[0]:11.2f} {one[1] / base[1]:15.2f} {two[0] / one[0]:7.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
