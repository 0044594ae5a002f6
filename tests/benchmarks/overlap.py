"""Measure `overlap`: `python -m tests.benchmarks.overlap learning|speed [--seeds N] [--rounds N] [CONFIG]`.

learning: a game with known returns, on and off with each seed; printed are the agent steps to nine tenths of
what can be had, and the mean of the last tenth of the run. speed: agent steps a second of training as the
files of settings say, and processor time, on and off in turns; printed are the medians of the ratios.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import Local
from rlgym_bridge.training.ppo import main as train
from rlgym_bridge.training.settings import TrainingSettings, check_settings, load_settings
from tests.support.training_runs import column

_GAME = {
    "components": "tests.support.mark_game", "collectors": 2, "threads": 1, "snapshot_share": 0.0,
    "matches": 32, "rollout_steps": 32, "minibatch": 512, "policy_layers": [32], "critic_layers": [32],
    "learning_rate": 2e-3, "gamma": 0.5, "steps": 200_000,
}  # fmt: skip
_KNOWN = 0.9
_DECISIONS = 900  # a car-minute
_ITERATIONS = 4  # of a round


def show_learning(seeds: int) -> None:
    """Print how soon and how well each seed learns, in turns and overlapping."""
    print(f"{'overlap':<9}{'seed':>6}{'steps to ' + str(_KNOWN):>15}{'last tenth':>12}")
    for overlap in (False, True):
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as folder:
                train(check_settings(_GAME | {"out": folder, "overlap": overlap, "seed": seed}), quiet=True)
                hits = [touches / _DECISIONS for touches in column(Path(folder), "touches_per_car_minute")]
                steps = column(Path(folder), "steps")
            first = next((int(step) for step, hit in zip(steps, hits, strict=True) if hit > _KNOWN), -1)
            last = statistics.mean(hits[-max(1, len(hits) // 10) :])
            print(f"{overlap!s:<9}{seed:>6}{first:>15,}{last:>12.4f}")


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
    parser.add_argument("what", choices=("learning", "speed"))
    parser.add_argument("config", nargs="*", type=Path, default=[Path("training/config.toml")])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.what == "learning":
        show_learning(options.seeds)
    else:
        show_speed(options.config, options.rounds)


if __name__ == "__main__":
    main()
