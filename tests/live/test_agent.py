"""Whatever a match or a policy does, the agent answers."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.game import Phase
from rlgym_bridge.live import play as live_play
from rlgym_bridge.live.play import Agent, play
from rlgym_bridge.live.player import LivePlayer
from rlgym_bridge.protocol_variant import ProtocolVariant, VariantFile
from rlgym_bridge.server.game.packer import field_info, framed
from rlgym_bridge.state import MatchState
from tests.support.made_packets import at, player
from tests.support.players_by_hand import CONFIG, Always, FakeServer, brain, live_player, neutral, sent
from tests.support.shared_messages import match_bomb


def test_a_policy_plays_from_the_second_packet_on():
    one = live_player(Always())
    assert neutral(sent(one, at(1)))
    (answer,) = sent(one, at(2))
    assert answer == (0, LookupTableAction.make_lookup_table()[16].tolist())


@pytest.mark.parametrize(
    "action", [RuntimeError("no idea"), SystemExit(3), 90, -91, np.nan],
    ids=["raises", "exits", "too large", "too small", "NaN"],
)  # fmt: skip
def test_a_failing_policy_costs_neutral_controls_alone(action):
    policy = Always(action)
    one = live_player(policy)
    for frame in range(1, 30):
        assert neutral(sent(one, at(frame)))
    assert sum(one.faults.counts.values()) >= 2
    policy.action = 16
    answers = [sent(one, at(frame)) for frame in range(30, 50)]
    assert not neutral(answers[-1])


@pytest.mark.parametrize(
    "rows",
    [np.full((8, 8), np.nan), np.full((8, 8), 2.0), np.zeros((8, 7)), np.zeros((0, 8)), None, "drive"],
    ids=["NaN", "out of range", "seven controls", "no ticks", "None", "text"],
)
def test_a_parser_without_control_rows_costs_neutral_controls(rows):
    class Parser(LookupTableAction):
        def parse_actions(self, actions: Any, state: Any, shared_info: Any) -> Any:
            return dict.fromkeys(actions, rows)

    one = live_player(Always(0), parser=Parser())
    for frame in range(1, 20):
        assert neutral(sent(one, at(frame)))
    assert sum(one.faults.counts.values()) >= 2


def test_each_kind_of_fault_is_logged_once_a_second_at_most(caplog):
    one = live_player(Always(RuntimeError("no idea")))
    for frame in range(1, 400):
        sent(one, at(frame))
    assert one.faults.counts["decision failed"] > 40
    assert len([record for record in caplog.records if "decision failed" in record.message]) <= 2


def test_a_missing_car_plays_once_it_is_there():
    one = live_player(Always())
    other = player(player_id=8)
    for frame in range(1, 20):
        assert sent(one, at(frame, Phase.ACTIVE, other)) == []
    for frame in range(20, 24):
        answer = sent(one, at(frame, Phase.ACTIVE, other, player()))
    assert answer[0][0] == 1 and answer[0][1][0] != 0


def test_our_car_is_found_by_identifier_when_seats_change():
    one = live_player(Always())
    other = player(player_id=8)
    for frame in range(1, 12):
        assert sent(one, at(frame, Phase.ACTIVE, player(), other))[0][0] == 0
    for frame in range(12, 30):
        answer = sent(one, at(frame, Phase.ACTIVE, other, player()))
        assert answer[0][0] == 1
    assert not neutral(answer)


def test_two_cars_of_one_agent_each_get_their_answer():
    one = live_player(Always(), ids=[9, 7])
    one.see(at(1, Phase.ACTIVE, player(), player(player_id=8), player(player_id=9)))
    assert [index for index, _ in one.inputs()] == [2, 0]


def test_entering_kickoff_resets_the_policy_once():
    policy = Always()
    one = live_player(policy)
    phases = [Phase.COUNTDOWN] * 5 + [Phase.KICKOFF] * 20 + [Phase.ACTIVE] * 50 + [Phase.GOAL_SCORED] * 5
    for frame, phase in enumerate(phases * 3):
        answer = sent(one, at(frame, phase))
        if phase in (Phase.COUNTDOWN, Phase.GOAL_SCORED):
            assert neutral(answer)
    assert policy.resets == 3


@pytest.fixture
def policy():
    """The policy that the agent of `connected` plays."""
    return Always()


@pytest.fixture
def connected(monkeypatch, policy):
    """A fake server, and an agent that runs against it in a thread."""
    server = FakeServer()
    monkeypatch.setenv("RLBOT_SERVER_PORT", str(server.port))
    monkeypatch.delenv("RLBOT_AGENT_ID", raising=False)
    agent = Agent(brain(policy), agent_id="tests/agent")
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(agent.run()), daemon=True)
    thread.start()
    yield server, agent, codes
    server.send(flat.DisconnectSignal())
    thread.join(10)
    assert codes == [0]
    server.peer.close()
    server.listener.close()


def test_a_burst_is_read_whole_and_answered_once(connected):
    server, agent, _ = connected
    server.handshake()
    server.send(at(100))
    assert isinstance(server.read(), flat.PlayerInput)
    server.send(*[at(frame) for frame in range(101, 151)])
    answers = [server.read()]
    server.peer.settimeout(0.5)
    with pytest.raises(TimeoutError):
        while True:
            answers.append(server.read())
    assert len(answers) < 50
    assert agent.report.packets == 51 and agent.report.missed == 50 - len(answers)
    server.peer.settimeout(10)


class Slow(Always):
    """A policy that thinks until it is let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = threading.Event()

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        assert self.may_end.wait(10)
        return super().act(obs, state)


@pytest.mark.parametrize("policy", [Slow()])
def test_a_settled_answer_does_not_wait_for_the_next_decision(connected, policy):
    server, agent, _ = connected
    server.handshake()
    policy.may_end.set()
    for frame in range(100, 108):
        server.send(at(frame))
        server.read()
    policy.may_end.clear()
    server.send(at(108))  # a decision is due on this one: it takes as long as the test wants
    answer = server.read()
    assert answer.controller_state.throttle == LookupTableAction.make_lookup_table()[16][0]
    policy.may_end.set()
    server.send(at(109))
    server.read()
    assert not agent.report.faults.counts


def test_unknown_messages_are_counted_and_play_goes_on(connected):
    server, agent, _ = connected
    server.handshake()
    server.send_raw(b"\x01\x02\x03garbage")
    server.send_raw(b"")
    server.send_raw(match_bomb(4, 4000))
    server.send(flat.PingRequest(5), flat.BallPrediction(), at(1), at(2))
    assert isinstance(server.read(), flat.PlayerInput)
    assert agent.report.faults.counts["undecodable message"] == 3


def test_an_empty_team_info_is_survived(connected):
    server, agent, _ = connected
    server.accept()
    server.send(flat.ControllableTeamInfo(0, []), field_info(), CONFIG, at(1))
    server.send(flat.ControllableTeamInfo(0, [flat.ControllableInfo(0, 7)]), at(2))
    assert isinstance(server.read(), flat.InitComplete)
    assert isinstance(server.read(), flat.PlayerInput)
    assert agent.report.faults.counts["no car"] == 1


def shake_hands(server: FakeServer, agent: Agent, match: bytes, code: int = 0) -> None:
    """Send a match and a goodbye to an agent, which ends with this exit code."""
    with ThreadPoolExecutor(1) as pool, server.listener:
        running = pool.submit(agent.run)
        server.accept()
        server.send_raw(match)
        server.send(flat.ControllableTeamInfo(0, [flat.ControllableInfo(0, 7)]), field_info())
        with server.peer:
            if code == 0:
                assert isinstance(server.read(), flat.InitComplete)
                server.send(flat.DisconnectSignal())
            assert running.result(10) == code


def cars(*teams: int) -> flat.MatchConfiguration:
    """Return a match of bots in these teams, after a human in blue."""
    bots = [flat.PlayerConfiguration(flat.CustomBot("B", "", "", None, "a/b"), team) for team in teams]
    human = flat.PlayerConfiguration(flat.Human(), 0)
    return flat.MatchConfiguration(player_configurations=[human, *bots], mutators=flat.MutatorSettings())


@pytest.mark.parametrize(
    ("teams", "fits"), [((1,), True), ((1, 1), True), ((0, 1), True), ((0, 1, 1), False), ((), False)]
)
def test_other_team_sizes_are_refused_at_the_handshake(teams, fits, monkeypatch, caplog):
    server = FakeServer()
    monkeypatch.setenv("RLBOT_SERVER_PORT", str(server.port))
    agent = Agent(replace(brain(Always()), team_sizes=((1, 1), (2, 1))), agent_id="tests/agent")
    shake_hands(server, agent, flat.CorePacket(cars(*teams)).pack(), code=0 if fits else 2)
    assert (agent.report.refused is None) is fits
    if not fits:
        message = f"was trained for 1v1, 2v1, this match is {1 + teams.count(0)}v{teams.count(1)}; change"
        assert message in str(agent.report.refused)
        assert len([record for record in caplog.records if message in record.message]) == 1


def test_a_server_that_goes_away_without_a_word_is_waited_for(connected):
    server, agent, codes = connected
    server.handshake()
    server.send(at(1))
    assert isinstance(server.read(), flat.PlayerInput)
    server.peer.close()
    time.sleep(0.3)
    server.handshake()
    server.send(at(5000))
    assert isinstance(server.read(), flat.PlayerInput)
    assert agent.report.disconnects == 1 and not codes


def test_a_connection_that_breaks_in_play_is_made_again_at_once(connected, monkeypatch):
    monkeypatch.setattr(live_play, "_RECONNECT_PAUSES", (0.0, 3600.0))
    server, agent, _ = connected
    for frame in (1, 2):
        server.handshake()
        server.send(at(frame))
        assert isinstance(server.read(), flat.PlayerInput)
        server.peer.close()
    server.handshake()
    assert agent.report.disconnects == 2


@pytest.mark.parametrize(
    ("agent_id", "port", "said"),
    [
        (None, "23234", r"set it to the agent_id in bot\.toml"),
        ("tests/agent", "soon", "RLBOT_SERVER_PORT is 'soon', expected a whole number"),
    ],
)
def test_what_the_environment_lacks_is_named(agent_id, port, said, monkeypatch):
    monkeypatch.delenv("RLBOT_AGENT_ID", raising=False)
    monkeypatch.setenv("RLBOT_SERVER_PORT", port)
    with pytest.raises(ValueError, match=said):
        Agent(brain(Always()), agent_id=agent_id)


def test_a_parser_may_use_the_same_buffer_again_and_again():
    class Parser(LookupTableAction):
        rows = np.zeros((8, 8), np.float32)
        calls = 0

        def parse_actions(self, actions: Any, state: Any, shared_info: Any) -> Any:
            self.calls += 1
            self.rows[:, 0] = self.calls / 10
            return dict.fromkeys(actions, self.rows)

    one = live_player(Always(0), parser=Parser())
    throttles = [round(sent(one, at(frame))[0][1][0] * 10) for frame in range(1, 18)]
    assert throttles == [0] + [1] * 8 + [2] * 8


def test_a_reset_that_fails_is_tried_again():
    class Fragile(Always):
        def reset(self, seats: Sequence[int], seed: int | None = None) -> None:
            super().reset(seats, seed)
            if self.resets == 2:
                raise RuntimeError("not now")

    policy = Fragile()
    one = live_player(policy)
    for frame in [*range(1, 20), *range(500, 530)]:
        answer = sent(one, at(frame))
    assert policy.resets == 3 and not neutral(answer)


def test_each_episode_has_a_seed_of_its_own():
    class Seeded(Always):
        seeds: ClassVar[list[int | None]] = []

        def reset(self, seats: Sequence[int], seed: int | None = None) -> None:
            super().reset(seats, seed)
            self.seeds.append(seed)

    one = live_player(Seeded(), seed=5)
    for frame in [*range(1, 20), *range(500, 520)]:
        sent(one, at(frame))
    assert Seeded.seeds == [5, 6]


def test_with_more_cars_than_a_state_holds_ours_is_let_go():
    one = live_player(Always())
    crowd = [player(player_id=i) for i in (1, 2, 3, 4, 7)]
    for frame in range(1, 5):
        assert sent(one, at(frame, Phase.ACTIVE, *crowd)) == [(4, [0.0] * 8)]


def test_of_two_cars_of_ours_the_one_that_is_left_is_let_go():
    one = live_player(Always(), ids=[7, 9])
    assert neutral(sent(one, at(1, Phase.ACTIVE, player(player_id=8), player())))
    assert [index for index, _ in one.inputs()] == [1]


def test_a_dialect_file_beside_the_bot_is_read_or_refused(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    Path("dialect.toml").write_text("[dialect]\npad_timer = 'sideways'\n")
    assert play("chaser", agent_id="tests/agent") == 2
    assert (
        "dialect.toml: dialect point pad_timer is 'sideways', expected one of elapsed, remaining"
        in caplog.text
    )
    monkeypatch.setenv("RLGYM_BRIDGE_DIALECT", "elsewhere.toml")
    assert play("chaser", agent_id="tests/agent") == 2
    assert "elsewhere.toml" in caplog.text


@pytest.mark.parametrize("own_server", [True, False])
@pytest.mark.parametrize("measured_on", ["rlgym-bridge", "other", None])
def test_a_dialect_file_counts_on_the_kind_of_server_it_is_of(measured_on, own_server, monkeypatch, caplog):
    caplog.set_level("INFO")
    server = FakeServer()
    monkeypatch.setenv("RLBOT_SERVER_PORT", str(server.port))
    made: list[LivePlayer] = []
    monkeypatch.setattr(
        "rlgym_bridge.live.session.LivePlayer", lambda *given: made.append(LivePlayer(*given)) or made[-1]
    )
    file = VariantFile(Path("dialect.toml"), ProtocolVariant({"pad_timer": "remaining"}), 3, measured_on)
    agent = Agent(brain(Always()), agent_id="tests/agent", measured=file)
    shake_hands(server, agent, framed(CONFIG, named=own_server)[2:])
    used = measured_on is None or (measured_on == "rlgym-bridge") is own_server
    (player,) = made
    assert player.clock.timing.input_latency == (3 if used else brain(Always()).timing.input_latency)
    assert player.decoder.detector.dialect.get("pad_timer") == ("remaining" if used else None)
    assert agent.report.dialect_file == ("dialect.toml" if used else None)
    assert ("dialect.toml is not used: it was measured on" in caplog.text) is not used
    assert ("dialect.toml sets pad_timer=remaining, input_latency=3" in caplog.text) is used
