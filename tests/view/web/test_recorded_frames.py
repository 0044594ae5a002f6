import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("aiohttp")


from rlgym_bridge.cli import main
from rlgym_bridge.packets.decoder import player_input
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.rotations import from_quaternions, to_quaternions
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.state import MatchState
from rlgym_bridge.view.web.frames import car_flags, frame_type, pack_frames
from rlgym_bridge.view.web.recorded_frames import RecordedFrames
from rlgym_bridge.view.web.shown_recording import moment_of
from tests.support.recorded_matches import chaser_and_policy
from tests.support.stepped_match import seats
from tests.support.web_pages import read_frame


@pytest.fixture(scope="module")
def match(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chaser_and_policy(tmp_path_factory)


@pytest.fixture(scope="module")
def recorded(match: Path) -> RecordedFrames:
    return RecordedFrames(open_recording(match))


def unpacked(data: bytes) -> tuple[dict[str, Any], np.ndarray]:
    """Return the setup and the frames as the page reads them."""
    size = int.from_bytes(data[:4], "little")
    setup = json.loads(data[4 : 4 + size])
    steps = np.frombuffer(data, np.uint8, offset=4 + size).reshape(setup["bytes"], setup["frames"])
    whole = np.cumsum(steps, axis=1, dtype=np.uint8).T.tobytes()
    return setup, np.frombuffer(whole, frame_type(len(setup["cars"])))


def test_a_frame_says_what_the_state_says() -> None:
    random = np.random.default_rng(3)
    state = MatchState(1, 2, 4)
    for name in (
        "ball_position",
        "ball_linear_velocity",
        "ball_angular_velocity",
        "car_position",
        "car_linear_velocity",
    ):
        view = getattr(state, name)
        view[:] = random.normal(size=view.shape)
    turns = random.normal(size=(4, 4, 4))
    turns /= np.linalg.norm(turns, axis=-1, keepdims=True)
    rotations = from_quaternions(turns.reshape(-1, 4)).reshape(4, 4, 3, 3)
    state.ball_rotation[:], state.car_rotation[:] = rotations[:, 0], rotations[:, 1:]
    state.car_boost_amount[2, 1], state.car_controls[2, 1, :2], state.pad_timer[2, [0, 9]] = 55, (0.5, -1), 3
    times = {"tick": np.arange(4) + 7, "speed": 1.0, "clock": 280.5, "countdown": 0.0}
    times["time"] = np.arange(4) / 120
    packed = pack_frames(state, phase=3, flags=2, score=(1, 2), input=9, **times)
    frame = read_frame(packed[2].tobytes())
    assert (frame.phase, frame.flags, frame.tick, frame.clock, frame.score, frame.input) == (
        3,
        2,
        9,
        280.5,
        (1, 2),
        9,
    )
    assert frame.ball[:9] == pytest.approx([
        *state.ball_position[2], *state.ball_linear_velocity[2], *state.ball_angular_velocity[2],
    ])  # fmt: skip
    assert abs(np.dot(frame.ball[9:13], turns[2, 0])) == pytest.approx(1, abs=1e-6)
    assert np.isnan(frame.ball[13:]).all()
    car = frame.cars[1]
    assert car[:3] == pytest.approx(state.car_position[2, 1].tolist())
    assert abs(np.dot(car[3:7], turns[2, 2])) == pytest.approx(1, abs=1e-6)
    assert car[7:10] == pytest.approx(state.car_linear_velocity[2, 1].tolist())
    assert car[10:13] == [55, -1, 0.5]
    assert frame.pads == bytes([0b11111110, 0b11111101, 255, 255, 3])


def test_flags_of_cars() -> None:
    state = MatchState(1, 1)
    state.car_on_ground[0, 0] = state.car_is_supersonic[0, 0] = state.car_controls[0, 0, 7] = 1
    state.car_is_boosting[0, 1] = state.car_is_demoed[0, 1] = state.car_has_flipped[0, 1] = 1
    assert car_flags(state).tolist() == [[1 + 4 + 64, 2 + 8 + 32]]


@pytest.mark.parametrize(
    "axis", [(0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (0, 0.6, 0.8, 0), (1e-9, 0.6, 0, -0.8)]
)
def test_half_turns_keep_the_signs_of_their_axis(axis: tuple[float, ...]) -> None:
    found = to_quaternions(from_quaternions(np.array([axis])))[0]
    assert abs(np.dot(found, axis)) == pytest.approx(1)


def test_the_packed_file_is_the_match_within_its_steps(recorded: RecordedFrames) -> None:
    setup, frames = unpacked(recorded.pack())
    count = len(frames)
    assert setup["length_s"] == recorded.seconds and count == pytest.approx(recorded.seconds * 30, abs=2)
    rows = [recorded.row_at(frame / 30) for frame in range(count)]
    state, ball, cars = recorded.state, frames["ball"], frames["car"]
    assert np.abs(ball["position"] - state.ball_position[rows]).max() <= 0.126
    assert np.abs(cars["position"] - state.car_position[rows]).max() <= 0.126
    turned = from_quaternions(cars["quaternion"].reshape(-1, 4)).reshape(count, 2, 3, 3)
    assert np.abs(turned - state.car_rotation[rows]).max() < 1e-3
    assert np.abs(cars["boost"] - state.car_boost_amount[rows]).max() <= 0.5
    assert np.abs(cars["throttle"] - state.car_controls[rows][..., 0]).max() < 0.01
    assert (cars["flags"] == car_flags(state)[rows]).all()
    assert (frames["tick"] == recorded.tick[rows]).all() and (frames["phase"] == recorded.phase[rows]).all()
    assert np.abs(frames["clock"] - state.clock[rows]).max() <= 0.063


def test_a_file_marks_where_the_recorded_ball_lands(recorded: RecordedFrames) -> None:
    _, frames = unpacked(recorded.pack())
    x, y, _, left = frames["ball"]["landing"].T
    touched = recorded.state.car_ball_touches.any(1)
    flying = [
        frame for frame in np.flatnonzero(left > 0)
        if (end := frame / 30 + left[frame]) < recorded.seconds
        and not touched[recorded.row_at(frame / 30) : recorded.row_at(end) + 1].any()
    ]  # fmt: skip
    assert len(flying) > 20
    there = recorded.state.ball_position[[recorded.row_at(frame / 30 + left[frame]) for frame in flying]]
    off = np.hypot(there[:, 0] - x[flying], there[:, 1] - y[flying])
    assert np.median(off) < 100 and np.median(there[:, 2]) < 200


@pytest.mark.odd_packets("the match begins in a recorded moment")
def test_recorded_inputs_take_a_match_where_the_recording_goes(recorded: RecordedFrames) -> None:
    row = recorded.row_at(6.0)
    controls = recorded.controls_from(row)
    assert controls is not None and len(controls) == len(recorded.tick) - row - 1
    match = Match(seats())
    match.restore(moment_of(recorded.state_of(row), int(recorded.phase[row])))
    for tick in range(60):
        for car in range(2):
            match.hold(car, player_input(car, controls[tick, car].tolist()).controller_state)
        match.advance()
    state = match.simulation.state
    there = recorded.state_of(row + 60)
    moved = np.linalg.norm(there.car_position - recorded.state_of(row).car_position, axis=-1)
    assert moved.max() > 300
    assert np.linalg.norm(state.car_position - there.car_position, axis=-1).max() < 5.0
    assert np.linalg.norm(state.ball_position - there.ball_position) < 5.0


def test_one_file_holds_page_and_match(
    match: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "for friends.html"
    assert main(["view", "--html", str(match), "-o", str(out)]) == 0
    assert f"written to {out}" in capsys.readouterr().out
    html = out.read_text(encoding="utf-8")
    packed = re.search(r'window\.RECORDING = "([A-Za-z0-9+/=]+)"', html)
    assert packed is not None
    setup, _ = unpacked(zlib.decompress(base64.b64decode(packed[1]), -15))
    assert setup["mode"] == "view"
    outside = re.findall(r'(?:src|href)="(?!data:)[^"]*"|https?://(?!www\.w3\.org)[^\s"\']+', html)
    assert not outside, "it needs neither a server nor the internet"


def test_a_five_minute_match_takes_less_than_three_megabytes(recorded: RecordedFrames) -> None:
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    size = len(packed.compress(recorded.pack()) + packed.flush()) * 4 / 3
    assert size / recorded.seconds * 330 < 2.5e6


def test_a_table_of_a_ball_is_shown_too(tmp_path: Path) -> None:
    times = np.arange(60) / 120
    rows = [f"{time},{100 * time},0,500,100,0,0" for time in times]
    (tmp_path / "x.csv").write_text("t,x,y,z,vx,vy,vz\n" + "\n".join(rows) + "\n")
    (tmp_path / "map.toml").write_text(
        '[time]\nseconds = "t"\n[ball]\nposition = ["x", "y", "z"]\nvelocity = ["vx", "vy", "vz"]\n'
    )
    words = ["view", "-q", "--html", str(tmp_path / "x.csv"), "--columns", str(tmp_path / "map.toml")]
    assert main([*words, "-o", str(tmp_path / "x.html")]) == 0
    setup, frames = unpacked(RecordedFrames(open_recording(tmp_path / "x.csv", tmp_path / "map.toml")).pack())
    assert setup["cars"] == [] and frames["ball"]["position"][-1, 0] == pytest.approx(46.7, abs=0.2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--html", "--save", "x.rrd"], "--save is for Rerun, expected it without --html"),
        (["--web", "--compare"], "--compare is for Rerun, expected it without --web"),
        (["--html", "--web"], "--html writes a file and shows nothing"),
        (["-o", "x.html"], "--out is the file of --html"),
        (["--policy", "chaser"], "--policy plays on from a recording on the page"),
        (["--html", "--port", "8000"], "--port 8000 is of the page, expected --web, too"),
    ],
)
def test_options_that_exclude_each_other(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", "x.mcap", *words]) == 2
    assert said in capsys.readouterr().err
