"""The same policy in batch arenas and over the match server."""

import json
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.training.evaluate import evaluate


@pytest.mark.slow
def test_a_car_touches_the_ball_as_often_in_both_worlds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # bots log there
    training = evaluate("chaser", "chaser", 8, seconds=30.0, team_size=1)
    touches, minutes = 0, 0.0
    words = [
        "match",
        "--blue",
        "chaser",
        "--orange",
        "chaser",
        "--pace",
        "lockstep",
        "--max-overtime",
        "0",
        "-q",
    ]
    for seed in range(8):
        assert main([*words, "--seconds", "30", "--seed", str(seed), "--json", "found.json"]) == 0
        found = json.loads(Path("found.json").read_text())
        touches += sum(bot["touches"] for bot in found["bots"])
        minutes += found["playing_ticks"] / TICKS_PER_SECOND / 60
    assert training.touches.sum() > 40
    assert 0.6 < touches / minutes / (training.touches.sum() / training.minutes.sum()) < 1.7
