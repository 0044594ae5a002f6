"""The delay of actions, from matches whose inputs act late, at changing times, or in bursts."""

from pathlib import Path

import pytest

from rlgym_bridge.compare.findings.gaps import lost_packets
from rlgym_bridge.compare.findings.verdict import GapVerdict
from rlgym_bridge.compare.fit.action_delay import ActionDelay, action_delay
from rlgym_bridge.recording.mcap.match_recording import MatchRecording, read_match
from tests.support.planted_gaps import as_replay, as_table, play, sent, timed
from tests.support.recorded_matches import record


def recorded(folder: Path, *words: str) -> MatchRecording:
    folder.mkdir(exist_ok=True)
    return read_match(record(folder / "match.mcap", *words), shadow=False)


@pytest.mark.slow
def test_inputs_that_act_too_late_to_tell_are_not_told(tmp_path: Path) -> None:
    assert action_delay(recorded(tmp_path, "--latency", "90")) is None


@pytest.mark.parametrize(
    "latency", [4, *(pytest.param(latency, marks=pytest.mark.slow) for latency in (0, 16))]
)
def test_a_match_tells_how_late_its_inputs_act(latency: int, tmp_path: Path) -> None:
    found = action_delay(recorded(tmp_path, "--latency", str(latency)))
    assert found is not None and found.inputs > 30
    delay = max(1, latency)
    assert found == ActionDelay(delay, delay, 0.0, latency, found.inputs)


@pytest.mark.slow
def test_lost_packets_are_named_with_their_share(tmp_path: Path) -> None:
    late, lossy = (recorded(tmp_path / name, "--latency", "2", *words)
                   for name, words in (("late", ()), ("lossy", ("--drop", "5"))))  # fmt: skip
    assert lost_packets(late) == []
    (gap,) = lost_packets(lossy)
    assert gap.kind is GapVerdict.TIMING and "lacks" in gap.text
    assert 0.03 < gap.size / len(lossy.tick) < 0.07
    assert gap.size == max(map(lossy.missed, lossy.agents.values()))


@pytest.mark.slow
def test_packets_that_come_in_bursts_make_decisions_wait(tmp_path: Path) -> None:
    found = action_delay(recorded(tmp_path, "--burst", "3"))
    assert found is not None
    assert (found.low, found.high, found.input_latency) == (1, 1, 0)
    assert 0.7 < found.noise < 0.9  # 0, 1 or 2 ticks: 0.82


@pytest.mark.slow
def test_lost_packets_are_no_noise_and_hidden_frames_hide_none(tmp_path: Path) -> None:
    for words in (("--drop", "3", "--latency", "2"), ("--fps", "60", "--latency", "2")):
        folder = tmp_path / words[0].strip("-")
        found = action_delay(recorded(folder, *words))
        assert found is not None
        assert (found.low, found.high, found.input_latency) == (2, 2 + (words[0] == "--fps"), 2)
        assert found.noise < 0.3


def test_tables_tell_the_delay_by_lag_applied_inputs_do_not() -> None:
    match = as_table(play(seconds=16))
    assert action_delay(match) is None
    assert action_delay(as_replay(play(seconds=16))) is None
    found = action_delay(sent(match, 2))
    assert found is not None
    assert (found.low, found.high, found.noise, found.input_latency) == (2, 2, 0.0, 2)


def test_missing_rows_leave_room_for_a_longer_delay() -> None:
    found = action_delay(timed(sent(as_table(play(seconds=16)), 2), rate=60))
    assert found is not None
    assert found.low <= 2 <= found.high == found.low + 1
