import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rerun")
pytest.importorskip("pyarrow")

from rlgym_bridge.cli import main
from rlgym_bridge.view import viewer
from tests.support.processes import child
from tests.support.recorded_matches import once_a_run, record

SIGNALS = """import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from rlgym_bridge.cli import main
sys.exit(main(sys.argv[1:]))"""
"""The command in a process that does not ignore Ctrl-C, as one in the background does."""


@pytest.fixture(scope="module")
def match(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return once_a_run(
        tmp_path_factory, "viewed", lambda folder: record(folder / "my match.mcap", blue="chaser", seconds=1)
    )


def test_save_writes_reruns_file_and_shows_nothing(
    match: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x.rrd"
    assert main(["view", str(match), "--save", str(out), "--json", str(tmp_path / "x.json")]) == 0
    assert out.read_bytes()[:3] == b"RRF"
    assert f"written to {out}" in capsys.readouterr().out
    told = json.loads((tmp_path / "x.json").read_text())
    assert told["cars"] == ["blue-0", "orange-0"] and told["rows"] > 120 and told["saved"] == str(out)


def test_compare_adds_ghosts(match: Path, tmp_path: Path) -> None:
    plain, both = tmp_path / "plain.rrd", tmp_path / "both.rrd"
    assert main(["view", "-q", str(match), "--save", str(plain)]) == 0
    assert main(["view", "-q", str(match), "--save", str(both), "--compare"]) == 0
    assert both.stat().st_size > 1.1 * plain.stat().st_size


def test_a_table_is_shown_too(tmp_path: Path) -> None:
    times = np.arange(60) / 120
    rows = [f"{time},{100 * time},0,500,100,0,0" for time in times]
    (tmp_path / "x.csv").write_text("t,x,y,z,vx,vy,vz\n" + "\n".join(rows) + "\n")
    (tmp_path / "map.toml").write_text(
        '[time]\nseconds = "t"\n[ball]\nposition = ["x", "y", "z"]\nvelocity = ["vx", "vy", "vz"]\n'
    )
    words = ["view", "-q", str(tmp_path / "x.csv"), "--columns", str(tmp_path / "map.toml")]
    assert main([*words, "--save", str(tmp_path / "x.rrd")]) == 0


def test_the_browser_is_served_locally_until_ctrl_c(match: Path) -> None:
    with child(
        [sys.executable, "-c", SIGNALS, "view", match, "--rerun-page"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=without_display(),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.fullmatch(r"look at (http://127\.0\.0\.1:\d+/)\?url=(http://127\.0\.0\.1:\d+/.*)\n", said)
        assert found, said
        with urllib.request.urlopen(found[1], timeout=10) as page:
            assert b"<html" in page.read()
        with urllib.request.urlopen(found[2], timeout=10) as file:
            assert file.headers["Access-Control-Allow-Origin"] == found[1].rstrip("/")
            assert file.read(3) == b"RRF"
        rebound = urllib.request.Request(found[2], headers={"Host": "x.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(rebound, timeout=10)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(found[1], timeout=10)


def without_display() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if "DISPLAY" not in name}


def test_a_viewer_that_does_not_start_is_named(match: Path, monkeypatch: pytest.MonkeyPatch, refused) -> None:
    monkeypatch.setattr(viewer, "program", lambda: Path(sys.executable))  # it knows no --bind
    assert "Rerun's viewer ended with exit code 2" in refused("view", match, "--rerun-page")


def test_without_rerun_it_says_what_to_install(match: Path, monkeypatch: pytest.MonkeyPatch, refused) -> None:
    monkeypatch.setitem(sys.modules, "rerun", None)
    install = 'needs Rerun: pip install -c constraints.txt -e ".[view]" (in the folder '
    assert install in refused("view", match)


def test_a_file_that_is_read_is_not_replaced(tmp_path: Path, refused) -> None:
    file = tmp_path / "match.rrd"
    file.write_bytes(b"kept")
    assert "expected another file" in refused("view", file, "--save", file) and file.read_bytes() == b"kept"
