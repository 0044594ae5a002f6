"""RocketSim 3 follows captures of the real game; RocketSim 2.2.1 does not."""

import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3, SIMULATORS
from tests.support.captures import Capture, measure_capture, summarise
from tests.support.real_data import real
from tests.support.simulators import needs_native
from tools.flight_years import date_of, measure_flights
from tools.physics_plots import draw_errors, draw_exactness, draw_years


def median(name: str, tmp_path: Path, simulator: str, situation: str, horizon: int, every: int = 12) -> float:
    capture = Capture(real(f"game-2026/{name}.csv"), tmp_path)
    found = summarise([measure_capture(capture, simulator, every)])
    return float(found["errors"][situation][horizon]["p50"])


@needs_native
def test_a_powerslide_is_followed_for_a_second(tmp_path: Path) -> None:
    assert median("probe_powerslide", tmp_path, ROCKETSIM3, "car in a powerslide", 120, 24) < 0.1
    assert median("probe_powerslide", tmp_path, ROCKETSIM2, "car in a powerslide", 120, 24) > 3


@needs_native
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "situation", "most"),
    [
        ("airborne-hit", "car on the ground", 0.05),
        ("throttle-jump", "car on the ground", 0.05),
        ("throttle-jump", "car through a jump", 0.05),
        ("airborne-hit", "car through a hit", 0.05),
        ("goal-shot-net-entry", "car through a hit", 0.05),
        ("clean-dodge", "car through a dodge", 0.1),
        ("goal-shot-net-entry", "ball in flight", 0.02),
        ("probe_ball_wall", "ball through a bounce", 0.05),
    ],
)
def test_captures_are_followed_to_the_printed_digits(
    tmp_path: Path, name: str, situation: str, most: float
) -> None:
    assert median(name, tmp_path, ROCKETSIM3, situation, 120) < most


@needs_native
@pytest.mark.slow
def test_a_bump_is_followed_for_half_a_second(tmp_path: Path) -> None:
    assert median("bumpr_900", tmp_path, ROCKETSIM3, "car through a bump", 60, 4) < 0.05
    assert median("bumpr_900", tmp_path, ROCKETSIM2, "car through a bump", 60, 4) > 3


def test_plots_hold_all_that_was_measured() -> None:
    errors = {"car on the ground": {"30": {"p50": 0.0}, "120": {"p50": 2.0}}}
    summaries = {name: {"exact": {"ball spin": [3, 4]}, "errors": errors} for name in SIMULATORS}
    assert draw_exactness(summaries).count("75.0 % of 4") == 2
    assert draw_errors(summaries).count("<circle") == 4
    at = {"p50": 0.4, "p90": 0.5, "windows": 7}
    years = [{"when": when, "errors": dict.fromkeys(SIMULATORS, at)} for when in ("2018", "2019-04")]
    assert draw_years(years).count("7 windows") == 2 and draw_years(years).count("<circle") == 4
    for text in (draw_exactness(summaries), draw_errors(summaries), draw_years(years)):
        assert xml.fromstring(text).tag.endswith("svg")


@needs_native
def test_a_replay_of_autumn_2018_has_the_cut() -> None:
    replay = real("replays/1_AERIAL.replay")
    pytest.importorskip("subtr_actor")
    assert date_of(replay) == "2018-09"
    found = measure_flights([open_recording(replay)], 40)
    assert found[ROCKETSIM2]["p50"] > 0.3 and found[ROCKETSIM3]["p50"] < 0.05


def test_a_replay_without_a_date_is_named(tmp_path: Path) -> None:
    (tmp_path / "odd.replay").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"odd\.replay does not say when"):
        date_of(tmp_path / "odd.replay")
