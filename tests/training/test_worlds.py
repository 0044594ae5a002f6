"""The same policy in batch arenas and over the match server."""

from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.training.evaluate import Evaluation, evaluate
from tools.two_worlds import over_the_server, rates, ratios


def matches(counts: list[tuple[int, int, int, int]], minutes: float = 1.0) -> Evaluation:
    table = np.array(counts)
    return Evaluation(table[:, :2], table[:, 2:], np.full(len(counts), minutes))


def test_rates_are_for_a_minute_of_play() -> None:
    found = matches([(2, 0, 6, 3), (0, 2, 2, 1)], minutes=0.5)
    np.testing.assert_allclose(rates(found), [2, 2, 8, 4])


def test_equal_worlds_have_ratios_of_one() -> None:
    random = np.random.default_rng(0)
    one, other = (matches(random.poisson((2, 1, 10, 8), (200, 4)).tolist()) for _ in range(2))
    found, (low, high) = ratios(one, other)
    np.testing.assert_allclose(found, 1, atol=0.25)
    assert (low < found).all() and (found < high).all() and (low < 1.05).all() and (high > 0.95).all()
    less = matches(random.poisson((1, 1, 5, 8), (200, 4)).tolist())
    found, (low, high) = ratios(less, other)
    assert high[0] < 0.8 and high[2] < 0.7 and low[3] < 1.1 and high[3] > 0.9


@pytest.mark.slow
def test_a_car_touches_the_ball_as_often_in_both_worlds() -> None:
    training = evaluate("chaser", "chaser", 8, seconds=30.0, team_size=1)
    server = over_the_server("chaser", "chaser", 8, seconds=30.0)
    found, _ = ratios(server, training)
    assert (training.touches.sum() > 40) and np.all((found[2:] > 0.6) & (found[2:] < 1.7)), found


def test_a_match_that_fails_names_its_seed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"the match with seed 0 ended with 2: error: .*none"):
        over_the_server(str(tmp_path / "none"), "chaser", 2, processes=1)
