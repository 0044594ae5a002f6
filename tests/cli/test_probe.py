"""The probe command, as a user runs it: over TCP, against servers of this machine."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.protocol_variant import POINTS, ProtocolVariant, VariantFile
from tests.support.processes import run_to_end
from tests.support.servers import match_server

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
    assert ProtocolVariant.read(tmp_path / "found.toml") == standard
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
    assert ProtocolVariant.read(tmp_path / "dialect.toml") == settled
    text = (tmp_path / "dialect.toml").read_text()
    assert "input_latency = 1 " in text and 'server = "rlgym-bridge"\n' in text
    assert text.startswith("# Measured by `rlgym-bridge probe` on this project's match server at 127.0.0.1:")


def test_without_a_server_the_probe_says_what_is_missing(tmp_path: Path) -> None:
    done = probe("--server", "rlbot", cwd=tmp_path, RLBOT_SERVER_PORT="1", LOCALAPPDATA=str(tmp_path))
    assert done.returncode == 2
    assert "no RLBotServer runs at 127.0.0.1:1, and none is installed here" in done.stderr
    assert list(tmp_path.iterdir()) == []
