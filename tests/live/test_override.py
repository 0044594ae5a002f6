"""A user's own rows in place of the policy's."""

import threading
from typing import Any

import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.game import Phase
from rlgym_bridge.live.play import play
from rlgym_bridge.state import KNOWN_FIELDS, MatchState
from tests.support.made_packets import at, player
from tests.support.players_by_hand import FULL_THROTTLE, Always, FakeServer, live_player, neutral, sent


def test_an_override_drives_and_play_resumes_with_a_reset() -> None:
    policy = Always()
    calls = []

    def override(state: MatchState) -> Any:
        calls.append(int(state.frame[0]))
        return np.tile(FULL_THROTTLE, (5, 1)) if state.frame[0] < 110 else None

    one = live_player(policy, override=override)
    rows = [sent(one, at(100 + tick))[0][1] for tick in range(30)]
    assert all(row == FULL_THROTTLE for row in rows[:10])
    assert calls[:3] == [100, 105, 110]
    assert rows[10] == [0.0] * 8, "the first tick after it is neutral, as after a kickoff"
    assert rows[11] == LookupTableAction.make_lookup_table()[16].tolist()
    assert policy.resets == 1


@pytest.mark.parametrize("given", [SystemExit(), "rubbish", np.full(8, np.nan), np.zeros(7)])
def test_an_override_that_fails_lets_the_policy_play(given):
    def override(state: MatchState) -> Any:
        if isinstance(given, SystemExit):
            raise given
        return given

    one = live_player(Always(), override=override)
    answers = [sent(one, at(frame)) for frame in range(1, 20)]
    assert not neutral(answers[-1])
    assert one.faults.counts["override failed"] >= 10


def test_an_override_of_two_arguments_is_told_its_car() -> None:
    asked = []

    def override(state: MatchState, row: int) -> Any:
        asked.append((row, int(state.car_player_id[0, row])))
        return FULL_THROTTLE

    blue, orange = player(player_id=7), player(player_id=8, team=1)
    for ours, row in ((7, 0), (8, 1)):
        one = live_player(Always(), ids=[ours], override=override)
        assert sent(one, at(1, Phase.ACTIVE, orange, blue))[0][1] == FULL_THROTTLE
        assert asked.pop() == (row, ours) and not asked


def test_a_second_argument_with_a_default_is_left_alone() -> None:
    one = live_player(Always(), override=lambda state, throttle=1.0: [throttle, *[0.0] * 7])
    assert sent(one, at(1))[0][1] == FULL_THROTTLE


def test_an_override_may_drive_one_of_an_agents_two_cars() -> None:
    def override(state: MatchState, row: int) -> Any:
        return FULL_THROTTLE if row == 1 and state.frame[0] < 20 else None

    policy = Always()
    one = live_player(policy, ids=[7, 8], override=override)
    theirs = LookupTableAction.make_lookup_table()[16].tolist()
    for frame in range(1, 40):
        answer = sent(one, at(frame, Phase.ACTIVE, player(), player(player_id=8)))
        if frame > 1:
            assert answer == [(0, theirs), (1, FULL_THROTTLE if frame < 20 else theirs)]
    assert policy.resets == 1


def test_an_override_on_chaser_sees_what_the_shadow_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = []

    def override(state: MatchState) -> None:
        known.append(state.car_known[0, 0, KNOWN_FIELDS.index("wheels_with_contact")])

    server = FakeServer()
    monkeypatch.setenv("RLBOT_SERVER_PORT", str(server.port))
    thread = threading.Thread(
        target=play, args=("chaser",), kwargs={"agent_id": "tests/agent", "override": override}, daemon=True
    )
    thread.start()
    server.handshake()
    for frame in range(1, 4):
        server.send(at(frame))
        server.read()
    server.send(flat.DisconnectSignal())
    thread.join(10)
    server.peer.close()
    server.listener.close()
    assert known == [0, 1, 1]


def test_override_rows_of_lost_packets_are_past() -> None:
    rows = np.zeros((20, 8), np.float32)
    rows[:, 0] = np.arange(20) / 20
    one = live_player(Always(), override=lambda state: rows if state.frame[0] == 1 else None)
    sent_rows = [round(sent(one, at(frame))[0][1][0] * 20) for frame in (1, 2, 3, 8, 9, 10)]
    assert sent_rows == [0, 1, 2, 7, 8, 9]


def test_override_rows_end_where_a_new_kickoff_begins() -> None:
    one = live_player(
        Always(), override=lambda state: np.tile(FULL_THROTTLE, (50, 1)) if state.frame[0] == 100 else None
    )
    assert sent(one, at(100))[0][1] == FULL_THROTTLE
    assert neutral(sent(one, at(5, Phase.KICKOFF)))
