"""The same policy in batch arenas and over the match server."""

import json
from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.cli import run_command
from rlgym_bridge.training.evaluate import Evaluation
from rlgym_bridge.training.sim_vs_server import rates, ratios


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
def test_the_command_plays_in_both_worlds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = tmp_path / "result.json"
    assert (
        run_command(
            "sim-vs-server", ["chaser", "chaser", "--matches", "2", "--seconds", "10", "--json", str(result)]
        )
        == 0
    )
    found = json.loads(result.read_text())["a_minute"]
    assert found["touches of A"]["training"] > 0 and found["touches of A"]["server"] > 0
    assert "over the server" in capsys.readouterr().out


def test_bad_input_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("sim-vs-server", [str(tmp_path / "none"), "chaser", "--matches", "2"]) == 2
    assert "none" in capsys.readouterr().err
