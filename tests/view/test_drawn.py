"""Drawings of a recording are shown where bots put them, for as long as they stand."""

import math
from pathlib import Path

import numpy as np
import pytest
from rlbot import flat

pytest.importorskip("rerun")
pytest.importorskip("pyarrow")

from rlgym_bridge.recording.mcap.channels import DRAWINGS, DRAWN, PACKETS
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.recording.mcap.mcap_writer import Recorder
from rlgym_bridge.view import log_drawings
from rlgym_bridge.view.camera import CAMERA_SIZE
from rlgym_bridge.view.write import write_rrd
from tests.support.made_packets import packet, player
from tests.support.view_scenes import Logged

RED = flat.Color(255, 0, 0, 255)
FRAMES = 40
UP = math.pi / 2


def anchor(*world: float, to: object = None) -> flat.RenderAnchor:
    return flat.RenderAnchor(flat.Vector3(*world), to)  # type: ignore[arg-type]


def group(number: int, *varieties: object) -> bytes:
    drawings = [flat.RenderMessage(one) for one in varieties]  # type: ignore[arg-type]
    return flat.InterfacePacket(flat.RenderGroup(drawings, number)).pack()


def body(x: float, yaw: float = 0.0, y: float = 0.0, z: float = 17.0) -> flat.Physics:
    return flat.Physics(flat.Vector3(x, y, z), flat.Rotator(0.0, yaw, 0.0), flat.Vector3(), flat.Vector3())


class Shown:
    """A made recording with drawings, written for Rerun and read back.

    The ball moves along y by 10 uu a frame. Car 0 stands at x 500 and looks along y, car 1 is
    demolished from frame 20 on. Frames are drawn at 3, 7, 11 and so on.
    """

    def __init__(self, folder: Path, drawn: list[tuple[int, bytes]], car: int = 0) -> None:
        self.file = folder / "drawn.mcap"
        recorder = Recorder(self.file)
        drawn = sorted(drawn, key=lambda one: one[0])
        for frame in range(FRAMES):
            for _, payload in [one for one in drawn if one[0] == frame]:
                recorder.put(DRAWINGS, frame, DRAWN.pack(0, car) + payload)
            ball = flat.BallInfo(body(0.0, y=10.0 * frame, z=100.0), flat.SphereShape(182.5))
            gone = 1.0 if frame > 19 else -1.0
            cars = (
                player(physics=body(500.0, UP), player_id=1),
                player(physics=body(-500.0), player_id=2, team=1, demolished_timeout=gone),
            )
            recorder.put(PACKETS, frame, flat.CorePacket(packet(frame, *cars, balls=[ball])).pack())
        recorder.close()
        self.recording = read_match(self.file, shadow=False)
        write_rrd(self.recording, folder / "drawn.rrd")
        self.column = Logged(folder / "drawn.rrd").column


def test_lines_and_strips_lie_where_they_were_drawn(tmp_path):
    path = flat.PolyLine3D([flat.Vector3(float(x), 1.0, 2.0) for x in range(5)], RED)
    shown = Shown(tmp_path, [(5, group(9, flat.Line3D(anchor(1, 2, 3), anchor(4, 5, 6), RED), path))])
    ticks, (strips,) = shown.column("/match/drawings/blue-0/9/lines", "LineStrip3D")
    assert ticks == [7] and strips[0] == [[1, 2, 3], [4, 5, 6]]
    assert [point[0] for point in strips[1]] == [0, 1, 2, 3, 4]
    assert shown.column("/match/drawings/blue-0/9/lines", "Color")[1] == [[0xFF0000FF] * 2]


@pytest.mark.protocol("drawings.anchors")
def test_anchors_go_along_with_ball_and_car(tmp_path):
    ball = flat.BallAnchor(0, flat.Vector3(z=50.0))
    nose, right = (flat.CarAnchor(0, flat.Vector3(*place)) for place in ((100, 0, 0), (0, 100, 0)))
    lines = (
        flat.Line3D(anchor(1, to=ball), anchor(to=nose), RED),
        flat.Line3D(anchor(), anchor(to=right), RED),
    )
    shown = Shown(tmp_path, [(0, group(0, *lines))])
    ticks, strips = shown.column("/match/drawings/blue-0/0/lines", "LineStrip3D")
    assert ticks == list(range(3, FRAMES, 4))
    for tick, (attached, other) in zip(ticks, strips, strict=True):
        np.testing.assert_allclose(attached, [(1, 10 * tick, 150), (500, 100, 17)], atol=1e-3)
        np.testing.assert_allclose(other[1], (400, 0, 17), atol=1e-3)  # it looks along y: +x is on its left


@pytest.mark.protocol("drawings.anchors")
def test_what_hangs_on_a_demolished_car_is_gone(tmp_path):
    label = flat.String3D("target", anchor(to=flat.CarAnchor(1)), 1.0, RED, RED)
    shown = Shown(tmp_path, [(0, group(0, label))])
    ticks, texts = shown.column("/match/drawings/blue-0/0/labels", "Text")
    assert texts == [["target"] if tick < 20 else [] for tick in ticks]


def test_labels_and_boxes_stand_in_field_and_screen(tmp_path):
    drawings = (
        flat.String3D("here", anchor(0, 0, 500), 1.0, RED, RED), flat.Rect3D(anchor(1, 2, 3), 0.1, 0.1, RED),
        flat.String2D("hud", 0.5, 0.25, 1.0, RED, RED),
        flat.Rect2D(0.5, 0.5, 0.25, 0.25, RED, flat.TextHAlign.Center, flat.TextVAlign.Bottom),
    )  # fmt: skip
    shown = Shown(tmp_path, [(0, group(0, *drawings))], car=-1)
    assert shown.column("/match/drawings/client-0/0/labels", "Position3D")[1] == [[[0, 0, 500]]]
    (((radius,),)) = shown.column("/match/drawings/client-0/0/dots", "Radius")[1]
    assert -radius == pytest.approx(72)  # pixels: half the side of a square of the same size
    _, (texts,) = shown.column("/camera/drawings/client-0/0/labels", "Text")
    _, (places,) = shown.column("/camera/drawings/client-0/0/labels", "Position2D")
    assert texts == ["here", "hud"] and places[1] == [CAMERA_SIZE[0] / 2, CAMERA_SIZE[1] / 4]
    assert places[0][0] == CAMERA_SIZE[0] / 2  # above the middle of the field
    _, (middles,) = shown.column("/camera/drawings/client-0/0/boxes", "Position2D")
    assert middles == [[CAMERA_SIZE[0] * 0.5, CAMERA_SIZE[1] * 0.375]]


def test_groups_stand_until_replaced_removed_or_left(tmp_path):
    def line(x: float, number: int) -> bytes:
        return group(number, flat.Line3D(anchor(x), anchor(), RED))

    removed = flat.InterfacePacket(flat.RemoveRenderGroup(1)).pack()
    shown = Shown(
        tmp_path,
        [(0, line(1, 1)), (0, line(2, 2)), (8, line(3, 1)), (16, removed), (24, line(4, 1)), (32, b"")],
    )
    for number, expected in ((1, {3: 1, 11: 3, 19: None, 27: 4, 35: None}), (2, {3: 2, 35: None})):
        ticks, strips = shown.column(f"/match/drawings/blue-0/{number}/lines", "LineStrip3D")
        found = [one[0][0][0] if one else None for one in strips]
        assert dict(zip(ticks, found, strict=True)) == expected


def test_what_cannot_be_drawn_is_left_out(tmp_path):
    nowhere = flat.Line3D(anchor(math.nan), anchor(), RED), flat.Line3D(anchor(1e30), anchor(), RED)
    missing = flat.Line3D(anchor(to=flat.CarAnchor(9)), anchor(to=flat.BallAnchor(3)), RED)
    odd = flat.Rect2D(math.inf, 0, 1, 1, RED), flat.String2D("x", math.nan, 0, 1, RED, RED)
    here = flat.Line3D(anchor(1), anchor(2), RED)
    spoiled = group(2, here)[:40] + b"\xff" * 60
    shown = Shown(tmp_path, [(0, group(1, *nowhere, missing, *odd, here)), (1, spoiled), (2, b"\x01" * 9)])
    assert len(shown.column("/match/drawings/blue-0/1/lines", "LineStrip3D")[1][0]) == 1


def test_drawings_without_end_are_shown_for_a_while(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(log_drawings, "MOST_BYTES", 900)
    line = flat.Line3D(anchor(), anchor(to=flat.CarAnchor(0)), RED)
    shown = Shown(tmp_path, [(0, group(0, line, line)), (20, group(1, line))])
    ticks, strips = shown.column("/match/drawings/blue-0/0/lines", "LineStrip3D")
    assert ticks == [3, 7, 11, 15, 19] and all(len(one) == 2 for one in strips)
    assert "drawings of more than 900 bytes: those from frame 19 on are left out" in caplog.text
