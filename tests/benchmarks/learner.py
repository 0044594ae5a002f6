"""Measure the learner by itself: `python -m tests.benchmarks.learner [--threads N]`.

Made-up rollouts of 1v1 with 2x256 networks, 2 epochs and minibatches of 8192, as in training but without
collectors.
"""

import argparse
import statistics
import time

from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import batch_of, improve
from rlgym_bridge.training.processes import count_usable_cores
from rlgym_bridge.training.rollouts import CollectedSteps
from rlgym_bridge.training.settings import check_settings
from tests.benchmarks.device_check import made_up_rollouts


def main() -> None:
    """Print agent steps a second: the median and the best of some iterations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0: one for each core")
    parser.add_argument("--minibatch", type=int, default=8192)
    parser.add_argument("--iterations", type=int, default=10)
    options = parser.parse_args()
    settings = check_settings(
        {"collectors": 2, "snapshot_share": 0.0, "minibatch": options.minibatch, "threads": options.threads}
    )
    learner = PPOLearner(settings)
    rollouts = made_up_rollouts(learner, 2)
    preparing, whole = [], []
    for _ in range(options.iterations + 1):
        began = time.perf_counter()
        batch = batch_of(learner, CollectedSteps.of(learner, rollouts))
        preparing.append(time.perf_counter() - began)
        improve(learner, batch)
        whole.append(time.perf_counter() - began)
    size, share = len(batch.rows), statistics.median(preparing[1:]) / statistics.median(whole[1:])
    print(
        f"{settings.threads or count_usable_cores()} threads, {size} agent steps: "
        f"median {size / statistics.median(whole[1:]):,.0f} a second, best {size / min(whole):,.0f}; "
        f"{share:.0%} of it before the first minibatch"
    )


if __name__ == "__main__":
    main()
