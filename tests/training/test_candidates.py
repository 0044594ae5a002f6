"""The harness that compares what the shipped bot may be trained with: equal steps, and spread."""

from pathlib import Path

from tests.benchmarks.candidate_runs import TrainedRun
from tests.benchmarks.candidates import SIZES, Judgement, choose_equal_steps, make_table


def run(name: str, seed: int, *steps: int) -> TrainedRun:
    return TrainedRun(name, seed, {one: Path(str(one)) for one in steps}, float(seed))


def test_equal_steps_are_those_that_the_slowest_run_made() -> None:
    runs = [run("a", 0, 100, 200, 310), run("b", 0, 90, 190, 290, 400), run("c", 0, 250)]
    assert choose_equal_steps(runs) == {("a", 0): 200, ("b", 0): 190, ("c", 0): 250}


def test_the_table_has_medians_and_spread_of_the_seeds() -> None:
    runs = [run("a", seed, 1000 * (seed + 1)) for seed in range(3)]
    judgements = [
        Judgement("a", seed, size, equal, 1000, 0.5, lead, 1.0)
        for seed, lead in enumerate((-1.0, 0.5, 0.25))
        for size in SIZES
        for equal in ("time", "steps")
    ]
    (line,) = make_table(runs, judgements)[2:]
    assert line.startswith("| a | 2 (1 to 3) | 1.0 (0.0 to 2.0) | +0.25 (-1.00 to +0.50) |")
    assert line.count("+0.25 (-1.00 to +0.50)") == 6
