"""A match that is watched goes on whatever the viewer does, and is shown as it is played."""

import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from rlbot import flat

rr = pytest.importorskip("rerun")
pytest.importorskip("pyarrow")

from rlgym_bridge.cli import main  # noqa: E402
from rlgym_bridge.recording.mcap.channels import DRAWN, FIELD_INFO, MATCH_CONFIGURATION, PACKETS  # noqa: E402
from rlgym_bridge.server import MatchServer  # noqa: E402
from rlgym_bridge.server.game.packer import field_info  # noqa: E402
from rlgym_bridge.view import watch  # noqa: E402
from rlgym_bridge.view.live_scene import LiveScene  # noqa: E402
from rlgym_bridge.view.watch import Watch, WatchError  # noqa: E402
from tests.support.made_packets import packet, player  # noqa: E402
from tests.support.processes import child  # noqa: E402
from tests.support.short_waits import shorten_countdown  # noqa: E402
from tests.support.stepped_match import match_of  # noqa: E402
from tests.support.stepped_match import player as bot  # noqa: E402
from tests.support.view_scenes import Logged  # noqa: E402

READS_NOTHING = "import time; print('ready here', flush=True); time.sleep(600)"
IS_CLOSED = "import sys; print('ready ', flush=True); sys.stdin.buffer.read(20000)"
PROGRAM = [sys.executable, "-P", "-c", "import sys; from rlgym_bridge.cli import main; sys.exit(main())"]


@pytest.fixture
def viewer(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Puts a program of ours in the viewer's place: `viewer(code)`."""
    monkeypatch.setattr(watch, "_END_SECONDS", 0.5)
    return lambda code: monkeypatch.setattr(watch, "_PROGRAM", ("-c", code))  # type: ignore[return-value]


def test_a_viewer_that_reads_nothing_holds_up_nothing(viewer, monkeypatch):
    viewer(READS_NOTHING)
    monkeypatch.setattr(watch, "_FRAME_SECONDS", 0.0)
    one = Watch("web")
    assert one.address == "here"
    for frame in range(5000):
        one.put(PACKETS, frame, bytes(1000))
    assert one.dropped > 5000 - 2 * watch._QUEUED - 1000  # a pipe holds 64 kB or so
    assert len(one._queue) <= watch._QUEUED
    time.sleep(0.1)  # until the pipe is full
    one.close()
    assert one._process.poll() is not None


def test_a_match_goes_on_when_the_window_is_closed(viewer, monkeypatch, caplog):
    caplog.set_level("INFO")
    viewer(IS_CLOSED)
    monkeypatch.setattr(watch, "_FRAME_SECONDS", 0.0)  # a fast match shows too few for the viewer to close
    shorten_countdown(monkeypatch)
    one = Watch()
    with MatchServer(pace="lockstep", seconds=2.0, max_overtime=0.0, watch=one) as server:
        result = server.play(match_of(bot(0), bot(1)))
    one._thread.join(10)
    one.close()
    assert result.ticks > 240 and one.ended
    assert caplog.text.count("the viewer was closed; the match goes on") == 1


def test_a_viewer_that_does_not_start_says_why(viewer):
    viewer("print('no graphics card')")
    with pytest.raises(WatchError, match="no graphics card"):
        Watch("window")


@pytest.mark.parametrize("command", [["match", "--watch"], ["server", "0", "--watch", "--web"]])
def test_without_rerun_a_line_says_what_to_install(command, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "rerun", None)
    assert main(command) == 2
    errors = capsys.readouterr().err
    assert "watching a match needs Rerun: pip install" in errors and errors.count("\n") == 1


class Sink:
    """Keeps what a match is told of, by topic."""

    def __init__(self):
        self.messages = {}

    def put(self, topic, frame, content, head=False):
        self.messages.setdefault(topic, []).append(content)

    def tell(self, name, values):
        pass


@pytest.mark.parametrize("rule", ["OffByDefault", "AlwaysOff"])
def test_bots_of_a_watched_match_may_draw(rule, monkeypatch):
    shorten_countdown(monkeypatch)
    sink, match = Sink(), match_of(bot(0, "artist"), bot(1))
    match.enable_rendering = getattr(flat.DebugRendering, rule)
    with MatchServer(pace="lockstep", seconds=0.1, max_overtime=0.0, watch=sink) as server:
        server.play(match)
    assert {FIELD_INFO, MATCH_CONFIGURATION, PACKETS} <= set(sink.messages)
    assert ("/drawings" in sink.messages) == (rule == "OffByDefault")


def test_packets_and_drawings_are_logged_as_they_come(tmp_path, monkeypatch):
    file = tmp_path / "live.rrd"
    monkeypatch.setattr(rr.RecordingStream, "connect_grpc", lambda stream, proxy: stream.save(file))
    scene = LiveScene("", field_info(), match_of(bot(0), bot(1)))
    color, line = flat.Color(255, 0, 0, 255), flat.RenderAnchor(flat.Vector3(z=5.0))
    attached = flat.RenderAnchor(relative=flat.CarAnchor(1, flat.Vector3(x=10.0)))
    group = flat.RenderGroup([flat.RenderMessage(flat.Line3D(line, attached, color))], 4)
    scene.draw(DRAWN.pack(0, 1) + flat.InterfacePacket(group).pack())
    for frame in range(0, 20, 2):
        at = flat.Vector3(0, 100.0 * frame, 93)
        place = flat.Physics(at, flat.Rotator(), flat.Vector3(), flat.Vector3())
        cars = player(player_id=1), player(player_id=2, team=1, demolished_timeout=1.0 if frame > 9 else -1.0)
        scene.show(packet(frame, *cars, balls=[flat.BallInfo(place, flat.SphereShape(182.5))]))
    scene.close()
    column = Logged(file).column
    ticks, balls = column("/match/ball", "Position3D")
    assert ticks == list(range(0, 20, 2))
    np.testing.assert_allclose([one[0][1] for one in balls], [100.0 * tick for tick in ticks])
    ticks, bodies = column("/match/cars/orange-0/body", "HalfSize3D")
    assert (ticks, [len(one) for one in bodies]) == ([0, 10], [2, 0])
    ticks, lines = column("/match/drawings/orange-0/4/lines", "LineStrip3D")
    ends = [[line[1] for line in one] for one in lines]
    assert (ticks, ends) == ([0, 4, 8, 12, 16], [[[10, 0, 17]]] * 3 + [[]] * 2)
    assert "blue 1 : 2 orange" in column("/scoreboard", "Text")[1][0][0]


def test_a_page_shows_a_match_as_long_as_it_is_played(tmp_path: Path) -> None:
    words = ["match", "--watch", "--web", "--pace", "lockstep", "--seconds", "1", "--max-overtime", "0"]
    with child(
        [*PROGRAM, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("no match.toml here")
        said = process.stdout.readline()
        assert said.startswith("look at http://127.0.0.1:"), said
        with urllib.request.urlopen(said.split()[2].partition("?")[0], timeout=10) as page:
            assert b"<html" in page.read()
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0 and "ERROR" not in errors and "Warning" not in errors, errors
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(said.split()[2], timeout=10)
