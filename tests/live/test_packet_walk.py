"""A packet's way from its bytes to the controls that are sent leads through few files."""

import logging
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from rlbot import flat

import rlgym_bridge
from rlgym_bridge.live.player import Faults
from rlgym_bridge.live.session import AgentReport, BotSession
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.server.game.packer import field_info
from tests.parity.world import make_match
from tests.support.documentation import ROOT
from tests.support.players_by_hand import CONFIG

MOST_FILES: Final = 18
PACKAGE: Final = str(Path(rlgym_bridge.__file__).parent)


LOOKING_AHEAD = {
    "/components/ball_ahead.py", "/policy/rollout_search.py", "/sim/simulator.py", "/state.py",
    "/user_input/arguments.py",
}  # fmt: skip
"""Files of a policy that sees the ball to come, and plays likely actions out."""


class Wire:
    """Keep the bytes that a session sends, in place of a connection."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send_bytes(self, data: bytes) -> None:
        self.sent.append(data)

    def send_msg(self, message: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("policy", "own"),
    [("lab/former-bot", set()), ("bot/policy", LOOKING_AHEAD)],
    ids=["a network", "a search"],
)
def test_a_packet_passes_few_files_to_its_controls(policy: str, own: set[str]) -> None:
    match, wire, files = make_match(1, 0), Wire(), set()
    report = AgentReport("a/b", Faults(logging.getLogger("tests")))
    session = BotSession(("127.0.0.1", 1), load_player(str(ROOT / policy)), report)
    session._relay = wire  # type: ignore[assignment]

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            files.add(frame.f_code.co_filename.removeprefix(PACKAGE))

    car = match.packet().players[0].player_id
    team = flat.ControllableTeamInfo(0, [flat.ControllableInfo(0, car)])
    for message in (field_info(), CONFIG, team):
        session._handle(flat.CorePacket(message).pack())
    for tick in range(800):
        packet = flat.CorePacket(match.packet()).pack()
        sys.setprofile(note if tick >= 700 else None)
        try:
            session._newest_comes = True
            session._handle(packet)
            session._newest_comes = False
            session._answer()
        finally:
            sys.setprofile(None)
        match.advance()
    assert len(wire.sent) == 800 and len(files - own) <= MOST_FILES, "; ".join(sorted(files - own))
