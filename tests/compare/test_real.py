"""Recordings of the real game come out as others have measured them; what is time is not called physics."""

import json
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.cli import main
from tests.support.real_data import COLUMNS, real


def compared(tmp_path: Path, *words: str) -> dict[str, Any]:
    main(["compare", *words, "-q", "--json", str(tmp_path / "found.json")])
    found: dict[str, Any] = json.loads((tmp_path / "found.json").read_text())
    return found


def at(found: dict[str, Any], name: str, horizon: int = 120) -> dict[str, Any]:
    (row,) = (one for one in found["situations"] if one["name"] == name and one["horizon_ticks"] == horizon)
    return dict(row)


@pytest.mark.slow
def test_free_balls_differ_by_their_clock_and_by_nothing_else(tmp_path: Path) -> None:
    files = sorted(str(one) for one in real("ball/episode_000000.csv").parent.glob("*.csv"))
    found = compared(tmp_path, *files, "--columns", str(COLUMNS / "lobot-ball.toml"))
    assert found["clock_scale"] == pytest.approx(1.0022, abs=1e-4)
    assert at(found, "ball")["p50"] <= 0.5
    assert [gap["kind"] for gap in found["gaps"]] == ["timing gap"] and found["agrees"]
    assert "this is not a physics gap" in found["gaps"][0]["text"]


@pytest.mark.slow
def test_inputs_of_a_flight_act_two_ticks_late(tmp_path: Path) -> None:
    file = str(real("car/aerial_120hz.txt"))
    found = compared(tmp_path, file, "--columns", str(COLUMNS / "lobot-car.toml"))
    assert found["input_latency_ticks"] == 2
    assert at(found, "car in the air")["p50"] <= 1.3


@pytest.mark.slow
def test_turns_end_where_the_real_car_did(tmp_path: Path) -> None:
    file = str(real("turns/turn.accel.txt"))
    found = compared(tmp_path, file, "--columns", str(COLUMNS / "measurebot-turns.toml"))
    for horizon in (12, 60, 120):
        assert at(found, "car on the ground", horizon)["angle"] <= 0.01


@pytest.mark.slow
def test_balls_of_replays_are_aligned_to_ticks(tmp_path: Path) -> None:
    found = compared(tmp_path, str(real("replays/KICKOFF_TEST_1.replay")))
    assert at(found, "ball in the air")["p50"] <= 0.05
    assert any(gap["name"] == "tick offset" and gap["kind"] == "timing gap" for gap in found["gaps"])
