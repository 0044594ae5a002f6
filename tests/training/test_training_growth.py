"""The table of training's speed by collectors: ratios to one collector, and gaps where nothing was run."""

from tests.benchmarks.training_growth import Cell, make_table


def cell(team_size: int, collectors: int, speed: float) -> Cell:
    return Cell("cpu", "2x256", team_size, collectors, speed, 0.25, 1.0)


def test_speeds_are_compared_with_as_many_times_one() -> None:
    _, _, line = make_table([cell(1, 1, 1000.0), cell(1, 14, 9100.0)], 16)
    assert line == (
        "| cpu, 2x256, 1v1 | 1,000, learner waits 25% | 9,100 (0.65 x 14 times one), learner waits 25% |"
    )


def test_a_number_of_collectors_that_was_not_run_is_left_empty() -> None:
    first, _, one, three = make_table([cell(1, 1, 1000.0), cell(1, 2, 1500.0), cell(3, 2, 800.0)], 2)
    assert first == "| learner, network, match (2 cores) | 1 collector | 2 collectors |"
    assert "(0.75 x 2 times one)" in one
    assert three == "| cpu, 2x256, 3v3 |  | 800, learner waits 25% |"
