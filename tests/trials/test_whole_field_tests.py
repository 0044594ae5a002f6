"""Whole field tests on our own server: what it was told to do comes out, in every dialect and simulator."""

import html
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.protocol_variant import POINTS, ProtocolVariant
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3
from tests.support.field_tests import ROOT, all_contents, make_pack, read_report
from tests.support.processes import child
from tests.support.servers import match_server

OTHERS = [(name, value) for name, point in POINTS.items() for value in point.values[1:]]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_whole_dialect_of_other_values_is_named(tmp_path: Path) -> None:
    words = [word for name, value in OTHERS for word in ("--dialect", f"{name}={value}")]
    found = read_report(make_pack(tmp_path, *words, "--simulator", ROCKETSIM3))
    assert found["dialect"] == ProtocolVariant(dict(OTHERS)).complete()
    assert found["difference"]["agrees"] and found["notes"] == []
    assert found["parts"]["match"]["playing_ticks"] >= 30 * 120 - 1
    own = [row for row in found["kinds"] if row["simulator"] == ROCKETSIM3]
    assert len({row["kind"] for row in own}) > 18
    assert all(row["worst"] < 0.05 and not row["beyond"] for row in own)


def test_it_runs_on_a_server_in_rlbotservers_place(tmp_path: Path) -> None:
    with match_server("--dialect", "clock=whole", "--latency", "1", "--simulator", ROCKETSIM3) as port:
        pack = make_pack(tmp_path, "--server", "rlbot", "--seconds", "5", RLBOT_SERVER_PORT=str(port))
    found = read_report(pack)
    assert (
        found["about"]["server"] == "sim"
    )  # nothing about the real game, whoever asks for it by --server rlbot
    assert found["dialect"] == ProtocolVariant({"clock": "whole"}).complete()
    assert found["parts"]["timing"]["input_latency_ticks"] == 1
    assert found["difference"]["agrees"]
    assert 5 * 120 <= found["parts"]["match"]["playing_ticks"] < 20 * 120
    content, texts = all_contents(pack, tmp_path)
    for personal in (str(tmp_path), str(Path.home()), str(Path.cwd()), sys.prefix):
        assert personal.encode() not in content
    assert "policy.json" in texts and "Chaser" not in texts


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a process are POSIX's")
def test_ctrl_c_keeps_what_there_is(tmp_path: Path) -> None:
    pack = tmp_path / "pack.zip"
    words = ["field-test", "--parts", "probe", "scenes", "match", "--out", str(pack)]
    with child(
        [sys.executable, "-u", "-m", "rlgym_bridge.cli", *words], cwd=tmp_path, env=ENVIRONMENT,
        stdout=subprocess.PIPE, text=True,
    ) as test:  # fmt: skip
        assert test.stdout is not None
        assert "Ctrl-C ends it and keeps what there is" in test.stdout.readline()
        assert test.stdout.readline().startswith("probe: done")
        test.send_signal(signal.SIGINT)
        out, _ = test.communicate(timeout=60)
        assert test.returncode == 1, out
    assert "written to" in out
    found = read_report(pack, status=1)
    probe, scenes, match = (part["state"] for part in found["about"]["parts"])
    assert (probe, match) == ("done", "not begun") and scenes in ("stopped", "not begun")
    assert found["dialect"] == ProtocolVariant().complete()


def test_the_page_of_a_pack_is_that_of_compare(tmp_path: Path) -> None:
    words = ["--parts", "scenes", "--scenes", "drive", "jump", "ball in the air"]
    pack = make_pack(tmp_path, *words, "--simulator", ROCKETSIM2)
    page = tmp_path / "page.html"
    assert main(["field-test", "--read", str(pack), "-q", "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "Errors after 1 to 240 ticks" in text
    assert "it says nothing about the real game" in html.unescape(text)
