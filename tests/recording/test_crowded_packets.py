"""Packets with more cars than a state holds cost a recording no more than themselves."""

from pathlib import Path

from rlbot import flat

from rlgym_bridge.recording.mcap.channels import PACKETS
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.recording.mcap.mcap_writer import Recorder
from tests.support.made_packets import at, player


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
