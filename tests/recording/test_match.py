"""A match that was recorded is read back as it was played."""

import errno
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.writer import Writer
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.cli.inspect import summary
from rlgym_bridge.components.batch_form import observe
from rlgym_bridge.game import PLAYING_PHASES
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.policy.folder import load_policy, save_policy
from rlgym_bridge.recording.mcap import mcap_writer as recording_writer
from rlgym_bridge.recording.mcap.agent_track import read_inputs
from rlgym_bridge.recording.mcap.channels import (
    ABOUT,
    AGENTS,
    ENCODINGS,
    FIELD_INFO,
    INPUT,
    INPUTS,
    MATCH_CONFIGURATION,
    PACKETS,
    PROFILE,
)
from rlgym_bridge.recording.mcap.match_recording import MatchRecording, read_match
from rlgym_bridge.recording.mcap.mcap_reader import Contents, Message, read_contents
from rlgym_bridge.recording.mcap.mcap_writer import Recorder, RecordingError
from rlgym_bridge.recording.mutator import RecordedStateMutator
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.state import MatchState
from tests.support.foreign_env import ENV
from tests.support.made_packets import at, player
from tests.support.policy_folders import OBS_1V1, make_module, random_weights
from tests.support.processes import child
from tests.support.recorded_matches import CHASER_AND_POLICY, POLICY, chaser_and_policy, record
from tools.determinism import first_difference


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chaser_and_policy(tmp_path_factory)


@pytest.fixture(scope="module")
def contents(file: Path) -> Contents:
    return read_contents(file)


@pytest.fixture(scope="module")
def recording(file: Path) -> MatchRecording:
    return read_match(file)


def test_nothing_is_left_beside_the_file(file: Path) -> None:
    assert [one.name for one in file.parent.iterdir() if one.name != "logs"] == ["match.mcap"]


def test_every_tick_has_the_row_that_live_play_makes_of_it(
    contents: Contents, recording: MatchRecording
) -> None:
    assert recording.notes == [] and recording.lost_ticks == 0
    assert (np.diff(recording.tick) == 1).all()
    head = {name: flat.CorePacket.unpack(contents.topics[name][0].content).message
            for name in ("/field_info", "/match_configuration")}  # fmt: skip
    field, match = head.values()
    assert isinstance(field, flat.FieldInfo) and isinstance(match, flat.MatchConfiguration)
    decoder = Decoder(field, match)
    for row, one in enumerate(contents.topics[PACKETS]):
        packet = flat.CorePacket.unpack(one.content).message
        assert isinstance(packet, flat.GamePacket)
        state = decoder.update(packet)
        shown = np.delete(recording.state.buffer[row], _settled_later(recording.state))
        expected = np.delete(state.buffer[0], _settled_later(recording.state))
        np.testing.assert_array_equal(shown, expected)
        decoder.clear_touches()


def _settled_later(state: MatchState) -> list[int]:
    """Columns that depend on the server's dialect, which the recording says and a bot has to hear."""
    layout = state.layout
    return [
        *(layout.column("pad_timer", number) for number in range(34)),
        *(layout.column(name, car=car) for car in range(layout.cars)
          for name in ("air_time_since_jump", "is_demoed", "has_flip", "can_flip")),
    ]  # fmt: skip


def test_an_input_is_applied_on_the_tick_after_its_packet(recording: MatchRecording) -> None:
    for track in recording.agents.values():
        sent = track.inputs
        assert (len(sent.frame) == len(recording.tick) and track.policy is None) or track.policy
        row_of = {int(tick): row for row, tick in enumerate(recording.tick)}
        compared = 0
        for frame, car, controls in zip(sent.frame, sent.row, sent.controls, strict=True):
            row = row_of.get(int(frame) + 1)
            if row is None or recording.state.phase[row] != recording.state.phase[row - 1]:
                continue
            np.testing.assert_allclose(recording.state.car_controls[row, car], controls, atol=1e-6)
            compared += 1
        assert compared > 500


def test_what_the_server_took_is_what_the_agents_sent(recording: MatchRecording) -> None:
    taken = recording.inputs_taken
    assert taken is not None
    for track in recording.agents.values():
        mine = taken.row == track.inputs.row[0]
        np.testing.assert_array_equal(taken.frame[mine], track.inputs.frame)
        np.testing.assert_array_equal(taken.controls[mine], track.inputs.controls)


def test_what_a_policy_saw_follows_from_the_recorded_states(recording: MatchRecording) -> None:
    (track,) = (one for one in recording.agents.values() if one.policy is not None)
    loaded = load_policy(POLICY)
    builder = loaded.components().obs_builder
    assert builder is not None and track.policy is not None
    assert track.policy["weights_sha256"] == loaded.manifest.weights_sha256
    rows = {int(tick): row for row, tick in enumerate(recording.tick)}
    assert len(track.decisions) > 80
    for one in track.decisions:
        row = rows[one.frame]
        state = MatchState(1, 1, 1, recording.state.buffer[row : row + 1])
        np.testing.assert_allclose(observe(builder, one.seats.tolist(), state)[0], one.obs, atol=1e-6)
        assert one.actions.shape in ((1, 1), (1, 0)) and np.isnan(one.rewards).all()


JUDGED = f"""{ENV}
from rlgym.rocket_league.done_conditions import TimeoutCondition

def build():
    env = discrete()
    env.truncation_cond = TimeoutCondition(5.0)
    return env
"""


@pytest.mark.slow
def test_the_recording_holds_rewards_conditions_and_the_goal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_module(tmp_path, monkeypatch, "judged_env", JUDGED)
    monkeypatch.chdir(tmp_path)
    weights = random_weights(OBS_1V1, 16, 90)
    save_policy("bot", weights, distribution="categorical", team_sizes=[(1, 1)], env="judged_env:build")
    words = ["match", "--blue", "bot", "--orange", "chaser", "--allow-modules", "judged_env", "-q"]
    words += ["--pace", "lockstep", "--seconds", "20", "--max-overtime", "0", "--record", "match.mcap"]
    assert main(words) == 0
    found = read_match("match.mcap", shadow=False)
    (track,) = (one for one in found.agents.values() if one.policy is not None)
    goals = [one for one in track.decisions if one.terminated[0] == 1]
    assert goals and len(goals) == found.state.score[-1].sum()
    for one in goals:
        assert one.actions.shape == (1, 0)
        assert one.rewards.tolist() in ([1.0], [-1.0])
    assert sum(one.truncated[0] == 1 for one in track.decisions) > 3
    assert main(["inspect", "match.mcap", "-q", "--json", "found.json"]) == 0
    told = json.loads(Path("found.json").read_text())["agents"]
    (mine,) = (one for one in told if one["policy"])
    assert (mine["terminated"], mine["reward"]) == (len(goals), sum(float(one.rewards[0]) for one in goals))


def test_equal_matches_give_equal_files_but_for_the_times(
    contents: Contents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "again.mcap", **CHASER_AND_POLICY)
    again = read_contents(tmp_path / "again.mcap")
    assert first_difference(contents, again) is None
    again.topics[INPUTS].pop()
    last = max(one.frame for one in contents.topics[INPUTS])
    assert first_difference(contents, again) == f"tick {last:,}, topic {INPUTS}"


def test_an_agent_keeps_packet_times_and_not_their_contents(contents: Contents) -> None:
    topics = [name for name in contents.topics if name.startswith(AGENTS)]
    assert {name.rpartition("/")[2] for name in topics} == {"arrivals", "inputs", "decisions"}
    for name in topics:
        if name.endswith("arrivals"):
            assert all(one.content == b"" for one in contents.topics[name])


def test_inspect_tells_what_is_in_it_and_exports_it(
    file: Path, recording: MatchRecording, tmp_path: Path
) -> None:
    outputs = {name: tmp_path / f"found.{name}" for name in ("json", "csv", "parquet")}
    pytest.importorskip("pyarrow")
    words = [word for name, path in outputs.items() for word in (f"--{name}", str(path))]
    assert main(["inspect", str(file), "-q", *words]) == 0
    found = json.loads(outputs["json"].read_text())
    assert found["rows"] == len(recording.tick) and found["lost_ticks"] == 0
    assert sorted(one["cars"] for one in found["agents"]) == [["blue-0"], ["orange-0"]]
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(outputs["parquet"])
    np.testing.assert_array_equal(
        table["orange-0_position_2"].to_numpy(), recording.state.car_position[:, 1, 2]
    )
    with outputs["csv"].open() as lines:
        names = lines.readline().strip().split(",")
        first = dict(zip(names, lines.readline().strip().split(","), strict=True))
    assert np.float32(first["ball_position_2"]) == recording.state.ball_position[0, 2]
    assert names == table.column_names


@pytest.mark.usefixtures("short_countdowns")
def test_a_bot_that_is_started_alone_records_into_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLGYM_BRIDGE_RECORD", str(tmp_path / "recordings"))
    words = ["--blue", "chaser", "--orange", "chaser", "--pace", "lockstep", "--seconds", "2"]
    assert main(["match", *words, "--max-overtime", "0", "-q"]) == 0
    files = sorted((tmp_path / "recordings").iterdir())
    assert len(files) == 2
    for one in files:
        found = read_match(one)
        assert found.lost_ticks == 0 and len(found.tick) > 500 and len(found.agents) == 1
        assert found.inputs_taken is not None and not len(found.inputs_taken.frame)


def test_a_file_that_is_there_or_has_another_name_is_refused(file: Path, tmp_path: Path, refused) -> None:
    words = ["match", "--blue", "chaser", "--orange", "chaser", "--record"]
    assert "which is there already; expected a new file" in refused(*words, file)
    assert "expected a file whose name ends with .mcap" in refused(*words, tmp_path / "match.json")
    assert "nowhere" in refused(*words, tmp_path / "nowhere" / "match.mcap")


@pytest.mark.parametrize(
    "name", ["match.0.part.mcap", "match.1.part.part3.mcap", "match.part2.mcap", "match.mcap.part"]
)
def test_what_a_killed_match_left_is_not_written_over(name: str, tmp_path: Path, refused) -> None:
    (tmp_path / "match.0.part.mcap").write_text("decisions")
    (tmp_path / "match.1.part.mcap").write_text("decisions")
    (tmp_path / name).write_text("decisions")
    (tmp_path / "match.other.0.part.mcap").write_text("another match's")
    before = sorted(tmp_path.iterdir())
    words = ["match", "--blue", "chaser", "--orange", "chaser", "--record", str(tmp_path / "match.mcap")]
    said = refused(*words)
    assert name in said and "move or remove them" in said and "match.other" not in said
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_a_link_to_a_missing_recording_is_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link.mcap").symlink_to(tmp_path / "far" / "match.mcap")
    monkeypatch.chdir(tmp_path)
    words = ["match", "--blue", "chaser", "--orange", "chaser", "--pace", "lockstep", "--seconds", "1"]
    assert main([*words, "--max-overtime", "0", "-q", "--record", "link.mcap"]) == 0
    assert (tmp_path / "link.mcap").is_symlink()
    assert [one.name for one in (tmp_path / "far").iterdir()] == ["match.mcap"]
    assert read_match("link.mcap", shadow=False).agents


@pytest.mark.usefixtures("short_countdowns")
def test_a_match_with_a_failed_recording_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = recording_writer._Stream.write

    def full(self: Any, data: bytes) -> int:
        if self.written + len(data) > 10_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(recording_writer._Stream, "write", full)
    monkeypatch.chdir(tmp_path)
    words = ["match", "--blue", "chaser", "--orange", "chaser", "--pace", "lockstep", "--seconds", "1"]
    assert main([*words, "--max-overtime", "0", "--record", "match.mcap"]) == 1
    said = capsys.readouterr()
    assert "touches" in said.out and "recorded to" not in said.out
    assert "error: match.mcap is not a whole recording: [Errno 28] No space left on device" in said.err


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_a_killed_match_leaves_its_recording_to_the_last_chunk(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rlgym_bridge.cli", "match", "--blue", "chaser", "--orange", "chaser",
               "--pace", "lockstep", "-q", "--record", "match.mcap"]  # fmt: skip
    with child(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60.0
        file = tmp_path / "match.mcap"
        while time.monotonic() < deadline and not (file.is_file() and file.stat().st_size > 400_000):
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        found = read_match(file, shadow=False)
        assert len(found.tick) > 1000 and (np.diff(found.tick) == 1).all()
        cut, beside = found.notes
        assert "was its recorder killed" in cut
        assert "lies in match.0.part.mcap, match.1.part.mcap, each a recording by itself" in beside
        for part in tmp_path.glob("*.part.mcap"):
            assert len(read_match(part, shadow=False).tick) > 500


def damaged(file: Path, tmp_path: Path, name: str) -> Path:
    data = bytearray(file.read_bytes())
    if name == "in its first chunk":  # which names the topics, as the end does
        data[data.index(b"zstd") + 100] ^= 1
    elif name == "cut":
        data = data[: len(data) // 2]
    elif name == "holed":
        chunks = [found.start() for found in re.finditer(b"zstd", data)]
        hole = chunks[len(chunks) // 4] + 100  # their indexes at the end name it, too
        data[hole : hole + 64] = bytes(64)
    elif name == "without an end":
        data = data[:-8]
    target = tmp_path / "damaged.mcap"
    target.write_bytes(data)
    return target


@pytest.mark.parametrize("name", ["cut", "without an end"])
def test_a_damaged_file_is_read_up_to_the_damage(
    name: str, file: Path, recording: MatchRecording, tmp_path: Path
) -> None:
    found = read_match(damaged(file, tmp_path, name), shadow=False)
    assert len(found.notes) == 1 and "can be read up to byte" in found.notes[0]
    rows = len(found.tick)
    assert 100 < rows <= len(recording.tick)
    np.testing.assert_array_equal(found.state.ball_position, recording.state.ball_position[:rows])


@pytest.mark.parametrize("name", ["holed", "in its first chunk"])
def test_of_a_file_with_a_hole_the_rest_is_read(
    name: str, file: Path, recording: MatchRecording, tmp_path: Path
) -> None:
    found = read_match(damaged(file, tmp_path, name), shadow=False)
    (note,) = found.notes
    assert note.startswith("parts of damaged.mcap that are damaged and left out: 1 (the first before byte ")
    assert 0 < len(recording.tick) - len(found.tick) < 1000
    assert found.tick[-1] == recording.tick[-1]
    rows = np.searchsorted(recording.tick, found.tick)
    np.testing.assert_array_equal(found.state.ball_position, recording.state.ball_position[rows])


def test_a_wrong_byte_gives_a_result_or_a_clear_error(file: Path, tmp_path: Path) -> None:
    data, random, target = file.read_bytes(), np.random.default_rng(0), tmp_path / "wrong.mcap"
    for place in random.integers(len(data), size=5).tolist() + list(range(8, 60, 12)):
        wrong = bytearray(data)
        wrong[place] ^= int(random.integers(1, 256))
        target.write_bytes(wrong)
        try:
            found = read_contents(target)
        except ValueError as error:
            assert str(target) in str(error)
        else:
            assert found.topics


def test_a_map_for_tables_is_not_for_matches(file: Path, tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text("rate = 60\n")
    assert len(open_recording(file, tmp_path / "map.toml").tick) == len(open_recording(file).tick)


def rewritten(
    contents: Contents,
    file: Path,
    change: Callable[[int, flat.GamePacket], flat.GamePacket | None] | None = None,
    about: Mapping[str, str] | None = None,
) -> Path:
    """Write the server's part of a recording again, with other packets or other metadata."""
    with file.open("wb") as stream:
        writer = Writer(stream)
        writer.start(PROFILE)
        writer.add_metadata(ABOUT, dict(about or {}))
        for topic in (FIELD_INFO, MATCH_CONFIGURATION, PACKETS):
            channel = writer.register_channel(topic, ENCODINGS[topic[1:]], 0)
            for number, one in enumerate(contents.topics[topic]):
                content = one.content
                if topic == PACKETS and change is not None:
                    packet = flat.CorePacket.unpack(content).message
                    assert isinstance(packet, flat.GamePacket)
                    changed = change(number, packet)
                    if changed is None:
                        continue
                    content = flat.CorePacket(changed).pack()
                writer.add_message(channel, 0, content, one.time, one.frame)
        writer.finish()  # type: ignore[no-untyped-call]
    return file


@pytest.mark.parametrize("about", ["{{{", '["foo=bar"]', "5", '"clock=whole"', "[3]"])
def test_an_unreadable_note_is_told_and_the_match_is_read(
    about: str, contents: Contents, recording: MatchRecording, tmp_path: Path
) -> None:
    found = read_match(rewritten(contents, tmp_path / "odd.mcap", about={"dialect": about}), shadow=False)
    (note,) = found.notes
    assert note.startswith("what the recorder said of the match cannot be read: ") and "dialect" in note
    assert len(found.tick) == len(recording.tick)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_impossible_packets_are_left_out_and_counted(
    value: float, contents: Contents, recording: MatchRecording, tmp_path: Path
) -> None:
    def spoilt(number: int, packet: flat.GamePacket) -> flat.GamePacket:
        if number % 50 == 10:
            packet.balls[0].physics.location.x = value
        if number % 50 == 20:
            packet.players[1].physics.velocity.z = value
        if number % 50 == 30 and not np.isfinite(value):
            packet.players[0].physics.rotation.yaw = value
        return packet

    file = rewritten(contents, tmp_path / "odd.mcap", spoilt)
    found = read_match(file, shadow=False)
    (note,) = found.notes
    missing = len(recording.tick) - len(found.tick)
    assert note == f"{missing:,} packets with numbers that no game has are left out"
    assert missing >= len(recording.tick) // 25 - 1
    assert np.abs(found.state.car_position).max() < 6000
    for state in (found.state, RecordedStateMutator([file], every=1).states):
        for values in (state.ball_position, state.car_rotation, state.car_linear_velocity):
            assert np.isfinite(values).all()


def test_an_input_of_another_size_is_left_out_with_its_frame() -> None:
    whole = INPUT.pack(1, *range(8))
    found = read_inputs([Message(7, 0, whole[:10]), Message(8, 0, whole)], {1: 0})
    assert (found.frame.tolist(), found.row.tolist(), len(found.controls)) == ([8], [0], 1)


def test_a_recording_of_impossible_packets_alone_is_refused(contents: Contents, tmp_path: Path) -> None:
    def spoilt(_: int, packet: flat.GamePacket) -> flat.GamePacket:
        packet.balls[0].physics.location.x = np.nan
        return packet

    file = rewritten(contents, tmp_path / "odd.mcap", spoilt)
    with pytest.raises(RecordingError, match=r"odd.mcap holds no packet whose ball and cars are where"):
        read_match(file, shadow=False)


@pytest.mark.slow
@pytest.mark.parametrize("step", [pytest.param(4, marks=pytest.mark.slow), 17])
def test_lost_packets_do_not_change_the_time_of_play(
    step: int, contents: Contents, recording: MatchRecording, tmp_path: Path
) -> None:
    file = rewritten(contents, tmp_path / "slow.mcap", lambda k, packet: None if k % step else packet)
    found = summary(read_match(file, shadow=False))
    whole = summary(recording)
    assert whole["playing_seconds"] == recording.played_ticks / 120 > 6
    assert found["rows"] < whole["rows"] / (step - 1)
    runs = 1 + np.count_nonzero(np.diff(np.isin(recording.state.phase, [int(one) for one in PLAYING_PHASES])))
    assert whole["playing_seconds"] - found["playing_seconds"] == pytest.approx(0, abs=runs * step / 120)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty, expected a recording"),
        (b"PK\x03\x04 something else", "it is no MCAP file"),
        (b"\x89MCAP0\r\n", "holds no message of a match"),
        (b"\x89MCAP0\r\n" + b"\xff" * 400, "holds no message of a match"),
    ],
)
def test_what_is_no_recording_is_refused(content: bytes, message: str, tmp_path: Path, refused) -> None:
    (tmp_path / "odd.mcap").write_bytes(content)
    assert message in refused("inspect", tmp_path / "odd.mcap")


def test_a_packet_with_six_cars_in_a_team_is_left_out_and_noted(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "crowded.mcap")
    for frame in range(1, 11):
        crowd = [player(player_id=7 + car) for car in range(6 if frame == 5 else 1)]
        packet = at(frame, 3, *crowd)
        recorder.put(PACKETS, frame, flat.CorePacket(packet).pack())
    recorder.close()
    recording = read_match(tmp_path / "crowded.mcap", shadow=False)
    assert recording.tick.tolist() == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert "1 packets with more than four cars in a team are left out" in recording.notes
