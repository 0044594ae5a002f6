"""Measure the speed of `overlap`: `python -m tests.benchmarks.overlap [--rounds N] [CONFIG]`.

It prints agent steps a second of training as the files of settings say, and processor time, on and off in
turns, and the medians of the ratios. What it learns a step is for `learning_curves` to say.
"""

import argparse
import statistics
import time
from pathlib import Path

from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import Local
from rlgym_bridge.training.settings import TrainingSettings, load_settings

_ITERATIONS = 4  # of a round


def show_speed(files: list[Path], rounds: int) -> None:
    """Print agent steps a second of each round, and the median of the ratios."""
    ratios = []
    for _ in range(rounds):
        (turns, turns_cpu), (both, both_cpu) = (
            measure_speed(load_settings(*files, overlap=overlap)) for overlap in (False, True)
        )
        ratios.append((both / turns, both_cpu / turns_cpu))
        print(
            f"in turns {turns:,.0f} agent steps/s, {turns_cpu:.0f} us of processor time each; overlapping "
            f"{both:,.0f} and {both_cpu:.0f}"
        )
    for name, column_of in zip(("speed", "processor time"), zip(*ratios, strict=True), strict=True):
        middle = statistics.median(column_of)
        print(f"{name}, ratio: median {middle:.2f} ({min(column_of):.2f} to {max(column_of):.2f})")


def measure_speed(settings: TrainingSettings) -> tuple[float, float]:
    """Return agent steps a second, and microseconds of all processes' time an agent step."""
    learner = PPOLearner(settings)
    learner.start()
    steps, seconds = 0, 0.0
    with Local(learner) as engine:
        engine.restart()
        for number in range(_ITERATIONS + 1):
            if number == 1:  # the first one warms up
                began, used = time.perf_counter(), time.process_time()
            done = engine.iterate(learner.draw_older())
            learner.steps += done.steps
            if number and done.times is not None:
                steps += done.steps
                seconds += done.times.cpu * engine.count
        seconds += time.process_time() - used
        return steps / (time.perf_counter() - began), 1e6 * seconds / steps


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", nargs="*", type=Path, default=[Path("training/config.toml")])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    show_speed(options.config, options.rounds)


if __name__ == "__main__":
    main()
