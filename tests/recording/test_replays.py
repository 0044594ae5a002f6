import pickle
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import Inputs, TimeBase
from rlgym_bridge.recording.replays.replay_recording import checksum, read_replay
from tests.support.real_data import real

MATCH = "replays/c8cf.replay"
SHORT = "replays/1_AERIAL.replay"


def test_without_the_parser_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "subtr_actor", None)
    with pytest.raises(ImportError, match=r"needs subtr-actor-py: pip install .*\[replay\]"):
        read_replay(tmp_path / "any.replay")


@pytest.mark.parametrize("content", [b"", b"no replay", bytes(5000)])
def test_a_file_that_is_no_replay_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("subtr_actor")
    (tmp_path / "odd.replay").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"odd.replay cannot be read as a replay: .*; is the file whole"
    ) as e:
        read_replay(tmp_path / "odd.replay")
    assert "\n" not in str(e.value)


def test_a_replay_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("subtr_actor")
    (tmp_path / "half.replay").write_bytes(real(SHORT).read_bytes()[:30_000])
    with pytest.raises(ValueError, match=r"half.replay cannot be read as a replay: .*Insufficient data"):
        read_replay(tmp_path / "half.replay")


@pytest.mark.parametrize("name", [MATCH, SHORT, "replays/3_DRIBBLE_2_FLICKS.replay"])
def test_real_replays_have_the_checksums_that_they_say(name: str) -> None:
    content = real(name).read_bytes()
    size, header = struct.unpack_from("<II", content)
    assert checksum(content[8 : 8 + size]) == header
    size, body = struct.unpack_from("<II", content, 8 + size)
    assert checksum(content[-size:]) == body


@pytest.mark.parametrize("name", [SHORT, "replays/3_DRIBBLE_2_FLICKS.replay"])
def test_real_replays_are_soccar_without_mutators(name: str) -> None:
    pytest.importorskip("subtr_actor")
    found = read_replay(real(name))
    assert (found.mode, found.mutators) == ("Soccar", [])
    assert found.car_present[found.car_shown].all()


def test_a_damaged_replay_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("subtr_actor")
    content = real(SHORT).read_bytes()
    refused = 0
    for place in range(12_000, 22_000, 400):
        wrong = bytearray(content)
        wrong[place] ^= 1
        (tmp_path / "wrong.replay").write_bytes(wrong)
        with pytest.raises(ValueError, match=r"wrong.replay (cannot be read|is damaged)") as caught:
            read_replay(tmp_path / "wrong.replay")
        refused += "is damaged: its body has the checksum" in str(caught.value)
    assert refused > 0


def test_a_real_match_has_its_teams_its_frames_and_no_names() -> None:
    parser = pytest.importorskip("subtr_actor")
    found = read_replay(real(MATCH))
    assert found.state.agents == ("blue-0", "orange-0") and found.state.matches == 13382
    assert (found.clock, found.inputs) == (TimeBase.FRAMES, Inputs.APPLIED)
    assert (found.mode, found.mutators) == ("Soccar", []) and found.car_present[found.car_shown].all()
    unknown = [CONTROL_NAMES.index(name) for name in ("pitch", "yaw", "roll")]
    assert not found.inputs_recorded[:, unknown].any() and found.inputs_recorded.sum() == 2 * 5
    assert not found.state.car_controls[..., unknown].any()
    raw = parser.parse_replay(real(MATCH).read_bytes())
    held = pickle.dumps((found.source, found.notes, vars(found.state)))
    names = {
        update["attribute"]["String"]
        for one in raw["network_frames"]["frames"]
        for update in one["updated_actors"]
        if raw["objects"][update["object_id"]].endswith(":PlayerName")
    }
    assert names and not any(name.encode() in held for name in names)


def test_a_real_ball_in_the_air_falls_as_gravity_says() -> None:
    pytest.importorskip("subtr_actor")
    found = read_replay(real(MATCH))
    ball = found.state
    steady = found.ball_shown[1:] & found.ball_shown[:-1] & (np.diff(found.segment) == 0)
    high = (ball.ball_position[1:, 2] > 300) & (ball.ball_position[1:, 2] < 1700)
    rows = np.flatnonzero(steady & high & (np.diff(found.tick) == 4))
    fall = np.diff(ball.ball_linear_velocity[:, 2])[rows]
    assert np.median(fall) == pytest.approx(-650 * 4 / 120, abs=1.0)


def test_real_cars_stand_upright_and_steer_right_by_plus() -> None:
    pytest.importorskip("subtr_actor")
    found = read_replay(real(MATCH))
    state = found.state
    for car in range(2):
        low = found.car_shown[:, car] & (state.car_position[:, car, 2] < 18)
        assert np.median(state.car_rotation[low, car, 2, 2]) > 0.999
        forward = (state.car_rotation[:, car, :, 0] * state.car_linear_velocity[:, car]).sum(-1)
        fast = low & (forward > 500)
        steer = state.car_controls[fast, car, CONTROL_NAMES.index("steer")]
        assert np.corrcoef(steer, state.car_angular_velocity[fast, car, 2])[0, 1] > 0.7
