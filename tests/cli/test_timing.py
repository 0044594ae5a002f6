"""`timing` measures what the match server was told to do."""

import json
import os
import random
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.cli.timing import advice
from rlgym_bridge.protocol_variant import POINTS, ProtocolVariant, VariantFile
from rlgym_bridge.trials.input_latency import Exchange, judge_session, number_of, numbered
from tests.support.processes import run_to_end
from tests.support.servers import match_server


def measured(tmp_path: Path, *words: str) -> dict:
    file = tmp_path / "timing.json"
    assert main(["timing", "--seconds", "5", "--pace", "lockstep", *words, "-q", "--json", str(file)]) == 0
    return json.loads(file.read_text())


@pytest.mark.parametrize("latency", [0, 1, 2, 3])
def test_the_latency_of_the_server_is_told_to_the_tick(latency: int, tmp_path: Path) -> None:
    found = measured(tmp_path, "--latency", str(latency), "--drop", "2")
    assert found["input_latency_ticks"] == latency
    assert set(found["latencies"]) == {str(latency)} and found["latencies"][str(latency)] > 500
    assert found["settings"] == {"input_latency": latency, "action_delay": [max(1, latency)] * 2}
    assert found["lost_ticks"] + found["packets"] == pytest.approx(600, abs=2)
    assert 4 <= found["lost_ticks"] <= 25  # 2 %


def test_a_frame_rate_of_60_is_named_and_is_no_loss(tmp_path: Path) -> None:
    found = measured(tmp_path, "--fps", "60", "--latency", "1")
    assert found["frame_rate"] == 60 and found["tick_step"] == 2
    assert found["lost_ticks"] == 0
    assert found["input_latency_ticks"] == 0 and found["also_fits"] == [1]  # both show first two frames on


def test_every_number_comes_back_from_an_input() -> None:
    assert [number_of(numbered(number)) for number in range(4095)] == list(range(4095))
    assert number_of(numbered(4095)) == 0
    assert number_of(flat.ControllerState()) is None
    assert number_of(flat.ControllerState(yaw=0.3)) is None


def session(latency: int, lost: set[int], ticks: int = 1000) -> list[list[Exchange]]:
    """A segment of play in which every packet that is not lost is answered at once."""
    applied: dict[int, int] = {}
    held: int | None = None
    part = []
    for frame in range(ticks):
        held = applied.get(frame - 1 - latency, held)
        if frame in lost:
            continue
        part.append(Exchange(frame, frame / 120, held, frame, frame / 120 + 1e-4))
        applied[frame] = frame
    return [part]


@pytest.mark.parametrize("latency", [0, 3])
def test_lost_ticks_are_counted_exactly(latency: int) -> None:
    lost = set(random.Random(1).sample(range(1, 999), 20))
    found = judge_session(session(latency, lost))
    assert found.lost_ticks == 20 and found.packets == 980
    assert found.input_latency_ticks == latency and set(found.latencies) == {str(latency)}
    assert found.reply_ms == pytest.approx({"p50": 0.1, "p99": 0.1}, abs=1e-6)


def test_odd_frame_rates_are_told_from_loss() -> None:
    kept = {int(number * 1.2) for number in range(900)}  # 100 frames a second
    (part,) = session(0, set(range(1000)) - kept)
    evenly = [Exchange(one.frame, i / 100, one.shown, one.sent, i / 100) for i, one in enumerate(part)]
    found = judge_session([evenly])
    assert found.frame_rate == pytest.approx(100) and found.lost_ticks == 0
    assert "cap it at 120 or 240" in " ".join(advice(found))


def test_a_latency_above_the_delay_is_said_to_cost_ticks() -> None:
    lines = advice(judge_session(session(3, set())))
    assert lines[0] == "policy.json: input_latency = 3; training: action_delay = [3, 3]"
    assert "acts 2 ticks later than in training" in lines[1]
    assert "acts 1 tick later" in advice(judge_session(session(2, set())))[1]


def test_too_little_play_is_refused() -> None:
    with pytest.raises(ValueError, match="1 packets in play, expected two and more in a row"):
        judge_session([[Exchange(1, 0.0, None)]])


def test_times_of_a_session_without_answers_are_null() -> None:
    found = judge_session([[Exchange(1, 0.0, None), Exchange(2, 0.01, None)]])
    told = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert told["reply_ms"] == {"p50": None, "p99": None}
    assert told["interval_ms"]["p50"] == pytest.approx(10.0)


ROOT = Path(__file__).parents[2]


def probe(*words: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": search, "COLUMNS": "200", **environment}
    command = [sys.executable, "-m", "rlgym_bridge.cli", "probe", *map(str, words)]
    return run_to_end(command, cwd=cwd, env=env, seconds=120)


def test_the_probe_writes_what_the_server_was_told_to_speak(tmp_path: Path) -> None:
    spoken = ("--dialect", "pad_timer=remaining", "--latency", "2")
    done = probe(*spoken, "--out", "found.toml", "--json", "found.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    standard = ProtocolVariant({"pad_timer": "remaining"}).complete()
    assert VariantFile.read(tmp_path / "found.toml").dialect == standard
    timing = tomllib.loads((tmp_path / "found.toml").read_text())["timing"]
    assert timing == {"input_latency": 2, "packets_per_second": 120.0}
    assert VariantFile.read(tmp_path / "found.toml").server == "rlgym-bridge"
    result = json.loads((tmp_path / "found.json").read_text())
    assert (result["dialect"], result["open"], result["timing"]) == (standard, {}, timing)
    for name in POINTS:
        assert name in done.stdout and result["evidence"][name]


@pytest.mark.slow
def test_without_out_the_probe_prints_and_leaves_no_file(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["probe", "--dialect", "clock=whole"]) == 0
    said = capsys.readouterr().out
    assert 'clock = "whole"\n' in said and "[dialect]\n" in said
    assert "--out FILE keeps it" in said
    assert list(empty_folder.iterdir()) == []


@pytest.mark.slow
def test_the_probe_asks_a_server_that_takes_rlbotservers_place(tmp_path: Path) -> None:
    spoken = ["--dialect", "clock=whole", "--dialect", "idle_frames=repeated", "--latency", "1"]
    with match_server(*spoken) as port:
        words = ["--server", "rlbot", "-q", "--out", "dialect.toml"]
        done = probe(*words, cwd=tmp_path, RLBOT_SERVER_PORT=str(port))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout == ""
    settled = ProtocolVariant({"clock": "whole", "idle_frames": "repeated"}).complete()
    assert VariantFile.read(tmp_path / "dialect.toml").dialect == settled
    text = (tmp_path / "dialect.toml").read_text()
    assert "input_latency = 1 " in text and 'server = "rlgym-bridge"\n' in text
    assert text.startswith("# Measured by `rlgym-bridge probe` on this project's match server at 127.0.0.1:")


def test_without_a_server_the_probe_says_what_is_missing(tmp_path: Path) -> None:
    done = probe("--server", "rlbot", cwd=tmp_path, RLBOT_SERVER_PORT="1", LOCALAPPDATA=str(tmp_path))
    assert done.returncode == 2
    assert "no RLBotServer runs at 127.0.0.1:1, and none is installed here" in done.stderr
    assert "Without the game, play with --server sim" in done.stderr
    assert list(tmp_path.iterdir()) == []
