"""The judges, on frames made by hand, and the probe on servers that go, lie or say nothing."""

import socket
import threading
from contextlib import closing

import pytest
from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.live.agent_connections import NoServer, agents_of
from rlgym_bridge.protocol_variant import OWN_SERVER
from rlgym_bridge.server import Impairments, MatchResult, MatchServer
from rlgym_bridge.trials import car_scenes, match_flow
from rlgym_bridge.trials.car_scenes import PadWatch
from rlgym_bridge.trials.findings import ProbeReport
from rlgym_bridge.trials.input_latency import InputChange, judge_changes
from rlgym_bridge.trials.match_flow import Cadence
from rlgym_bridge.trials.probe import Players, Probe, match_of_two
from rlgym_bridge.trials.scene_player import Frame, Reply, press, put
from tests.support.made_packets import player

AIR = flat.AirState


def car(
    name: str = "Somebody", player_id: int = 1, place: tuple[float, float, float] = (0.0, 0.0, 17.0),
    **values: object,
) -> flat.PlayerInfo:  # fmt: skip
    """Return a car; what is not named is that of one that stands at the middle."""
    body = flat.Physics(flat.Vector3(*place), flat.Rotator(), flat.Vector3(), flat.Vector3())
    return player(name=name, player_id=player_id, physics=body, **values)


def frame(
    number: int, *cars: flat.PlayerInfo, phase: int = Phase.ACTIVE, clock: float = 300.0, ball: bool = True,
    pads: tuple[flat.BoostPadState, ...] = (),
) -> Frame:  # fmt: skip
    """Return a packet of two cars, 1 and 2, as the probe sees it."""
    players = [*(cars or [car()]), car("Else", 2)][:2]
    info = flat.MatchInfo(
        seconds_elapsed=number / 120, game_time_remaining=clock, match_phase=flat.MatchPhase(phase),
        frame_num=number,
    )  # fmt: skip
    packet = flat.GamePacket(players, list(pads), [flat.BallInfo()] if ball else [], info, [], [])
    seen = Frame.of(packet, (1, 2))
    assert seen is not None
    return seen


def jump(timeouts: list[float], pushing: float = -1.0, **values: object) -> list[Frame]:
    """A jump that pushes for 24 ticks; then `timeouts`, one a tick."""
    frames = [frame(0)]
    frames += [
        frame(tick, car(air_state=AIR.Jumping, has_jumped=True, dodge_timeout=pushing))
        for tick in range(1, 25)
    ]
    return frames + [
        frame(25 + tick, car(air_state=AIR.InAir, has_jumped=True, dodge_timeout=value, **values))
        for tick, value in enumerate(timeouts)
    ]


@pytest.mark.parametrize(
    ("start", "value"), [(1.25, "after_jump"), (1.45, "plus_hold"), (1.35, None), (0.2, None), (1.65, None)]
)
def test_the_start_of_the_dodge_timeout_is_one_of_two_or_open(start: float, value: str | None) -> None:
    frames = jump([start - tick / 120 for tick in range(1, 20)])
    assert car_scenes.judge_timeout(frames).value == value
    assert car_scenes.judge_timeout([*frames[:25], *frames[37:]]).value == value  # 12 packets are lost


@pytest.mark.parametrize(("pushing", "value"), [(-1.0, "minus_one"), (1.25, "full"), (0.0, None)])
def test_the_dodge_timeout_of_a_jump_under_way(pushing: float, value: str | None) -> None:
    assert car_scenes.judge_jumping(jump([1.2], pushing)).value == value


def test_jumps_that_disagree_leave_the_point_open() -> None:
    gone = jump([-1.0] * 60, has_dodged=True)
    counting = jump([1.2 - tick / 120 for tick in range(60)], has_double_jumped=True)
    assert car_scenes.judge_used(gone, counting).value is None
    assert car_scenes.judge_used(gone, gone).value == "minus_one"
    assert car_scenes.judge_used(counting, counting).value == "counting"
    assert car_scenes.judge_used(gone, []).evidence.endswith("no double jump was seen")


@pytest.mark.parametrize(("late", "value"), [(-1.0, "minus_one"), (0.0, "zero"), (0.5, None)])
def test_the_dodge_timeout_when_the_time_is_up(late: float, value: str | None) -> None:
    frames = jump([1.2] * 170 + [late] * 30)
    assert car_scenes.judge_expired(frames[:150]).value is None
    assert car_scenes.judge_expired(jump([late] * 200)).value == value


def test_no_jump_settles_nothing() -> None:
    standing = [frame(tick) for tick in range(200)]
    for one in (
        car_scenes.judge_timeout(standing), car_scenes.judge_jumping(standing),
        car_scenes.judge_expired(standing), car_scenes.judge_used(standing, standing),
    ):  # fmt: skip
        assert one.value is None and one.evidence


def kick_off(active_at: int | None, ticks: int = 300) -> list[Frame]:
    return [
        frame(
            1000 + tick,
            phase=Phase.ACTIVE if active_at is not None and tick >= active_at else Phase.KICKOFF,
        )
        for tick in range(ticks)
    ]


@pytest.mark.parametrize(
    ("active_at", "ticks", "value"),
    [(None, 300, "at_touch"), (240, 300, "after_two_seconds"), (100, 300, None), (None, 200, None)],
)
def test_the_end_of_an_untouched_kickoff(active_at: int | None, ticks: int, value: str | None) -> None:
    assert match_flow.judge_kickoff_end(kick_off(active_at, ticks)).value == value


def test_a_kickoff_that_somebody_touched_settles_nothing() -> None:
    touched = car(latest_touch=flat.Touch(game_seconds=(1000 + 50) / 120))
    frames = [*kick_off(None, 50), frame(1050, touched, phase=Phase.ACTIVE)]
    assert match_flow.judge_kickoff_end(frames).evidence.startswith("somebody touched the ball")
    before = car(latest_touch=flat.Touch(game_seconds=5.0))
    frames = [frame(1000 + tick, before, phase=Phase.KICKOFF) for tick in range(300)]
    assert match_flow.judge_kickoff_end(frames).value == "at_touch"


@pytest.mark.parametrize(
    ("clocks", "value"),
    [
        ([300.0 - tick / 120 for tick in range(200)], "fraction"),
        ([300.0 - tick // 120 for tick in range(200)], "whole"),
        ([300.0] * 200, None),
        ([300.0] * 195 + [299.0] * 5, None),
    ],
)
def test_the_clock_is_whole_fraction_or_stands(clocks: list[float], value: str | None) -> None:
    frames = [frame(tick, clock=clock) for tick, clock in enumerate(clocks)]
    assert match_flow.judge_clock(frames).value == value


def demolished(*places: tuple[float, float, float]) -> list[Frame]:
    alive = frame(0, car(), car("Else", 2, place=(800.0, -1700.0, 17.0)))
    gone = [
        frame(1 + tick, car(), car("Else", 2, place=place, demolished_timeout=3.0 - tick / 120))
        for tick, place in enumerate(places)
    ]
    return [alive, *gone]


def test_a_demolished_cars_place_is_kept_origin_or_neither() -> None:
    there, origin = (805.0, -1700.0, 20.0), (0.0, 0.0, 0.0)
    assert car_scenes.judge_place(demolished(*[there] * 50)).value == "kept"
    assert car_scenes.judge_place(demolished(*[origin] * 50)).value == "origin"
    assert car_scenes.judge_place(demolished(*[there] * 25, *[origin] * 25)).value is None
    assert car_scenes.judge_place([]).evidence == "no car was demolished"


def test_the_ball_after_a_goal_is_there_gone_or_now_and_then() -> None:
    goals = [frame(tick, phase=Phase.GOAL_SCORED, ball=False) for tick in range(200)]
    balls = [frame(tick, phase=Phase.GOAL_SCORED) for tick in range(200)]
    assert match_flow.judge_ball_after_goal(goals).value == "hidden"
    assert match_flow.judge_ball_after_goal(balls).value == "shown"
    assert match_flow.judge_ball_after_goal([*balls, *goals]).value is None
    assert match_flow.judge_ball_after_goal([]).value is None


@pytest.mark.parametrize(("step", "value"), [(1, "counted"), (2, "counted"), (0, "repeated"), (-2, None)])
def test_frames_of_a_replay_go_on_or_stand_still(step: int, value: str | None) -> None:
    frames = [frame(9000 + step * place, phase=Phase.REPLAY) for place in range(200)]
    assert match_flow.judge_idle_frames(frames).value == value
    assert match_flow.judge_idle_frames(frames[:20]).value is None


@pytest.mark.parametrize("jump", [2**31, -5000, 40_000_000])
def test_jumps_of_the_frame_number_do_not_count_as_a_rate(jump: int) -> None:
    cadence = Cadence()
    for tick in range(400):
        cadence.see(frame(10_000 + 2 * tick + (jump if tick >= 150 else 0)))
    found = cadence.judge()
    assert found.value == "60.0" and "1 jumps left out" in found.evidence


def test_frame_numbers_that_do_nothing_but_jump_settle_no_rate() -> None:
    cadence = Cadence()
    for tick in range(400):
        cadence.see(frame(50_000 * tick))
    assert cadence.judge().value is None


@pytest.mark.parametrize(("sign", "value"), [(1.0, "elapsed"), (-1.0, "remaining"), (0.0, None)])
def test_a_pad_timer_goes_up_down_or_nowhere(sign: float, value: str | None) -> None:
    watch = PadWatch()
    watch.see(frame(0, pads=(flat.BoostPadState(True, 0.0),)))
    for tick in range(100):
        watch.see(frame(1 + tick, pads=(flat.BoostPadState(False, 2.0 + sign * tick / 120),)))
    assert watch.judge().value == value


def test_pads_that_a_kickoff_brings_back_are_not_timed() -> None:
    watch = PadWatch()
    watch.see(frame(0, pads=(flat.BoostPadState(True, 0.0),)))
    for tick in range(1, 100):
        phase = Phase.COUNTDOWN if tick == 2 else Phase.ACTIVE
        watch.see(frame(tick, pads=(flat.BoostPadState(False, tick / 120),), phase=phase))
    assert watch.judge().value is None


def test_equal_latencies_are_told_apart_by_the_cars_motion() -> None:
    gaps = [InputChange(100, 100, 102), InputChange(200, 200, 202)] * 5
    assert judge_changes(gaps).value is None
    assert judge_changes(gaps).evidence == "0 or 1 ticks fit 10 of 10 changes"
    assert judge_changes([*gaps, InputChange(300, 300, 302, moved=300.9)]).value == "1"
    assert judge_changes([InputChange(1, 3, 4)] * 9 + [InputChange(1, 9, 10)]).value == "2"
    assert judge_changes([InputChange(1, 1 + tick, 2 + tick) for tick in range(12)]).value is None
    assert judge_changes([]).evidence.startswith("no input was seen in last_input within 40 packets")
    assert judge_changes([InputChange(1, 3, 4)] * 4).evidence.startswith("4 inputs were seen in last_input")


@pytest.mark.parametrize(
    ("moved", "said"), [(303.0, "+2.0 ticks, late"), (299.0, "-2.0 ticks, early"), (301.0, "on time")]
)
def test_a_car_that_moves_early_is_not_called_late(moved: float, said: str) -> None:
    changes = [InputChange(100, 101, 102)] * 5 + [InputChange(301, 302, 303, moved=moved)]
    assert judge_changes(changes).evidence.endswith(f"a car at rest starts to move {said}")


def test_landings_without_three_wheels_settle_nothing() -> None:
    box = flat.BoxShape(118.0, 84.2, 36.16)
    frames = [frame(tick, car(hitbox=box)) for tick in range(100)]
    assert car_scenes.judge_wheels(frames).value is None
    assert "in 100 of 100 with four" in car_scenes.judge_wheels(frames).evidence


def test_cars_are_found_by_their_ids_wherever_they_stand() -> None:
    packet = flat.GamePacket(
        [car("A human", 0), car("Probe", 2), car("Probe", 1)], match_info=flat.MatchInfo()
    )
    seen = Frame.of(packet, (1, 2))
    assert seen is not None and seen.indices == (2, 1)
    desired = Reply(cars={0: flat.DesiredCarState(put((1.0, 2.0, 3.0)))}).desired(seen.indices)
    assert desired is not None
    assert [one.physics is None for one in desired.car_states] == [True, True, False]
    assert Reply((press(jump=True), press())).desired(seen.indices) is None
    assert Frame.of(flat.GamePacket([car()], match_info=flat.MatchInfo()), (1, 2)) is None


AGENTS = agents_of(match_of_two())


def fed(packet_of, most: int = 6000) -> ProbeReport:
    """Show the probe packets made by hand until it is done."""
    probe = Probe((1, 2), flat.FieldInfo(), most)
    number = 0
    while not probe.done:
        probe.answer(packet_of(number))
        number += 1
        assert number <= most + 1
    assert probe.answer(packet_of(number))[0].desired((0, 1)) is None
    return probe.report()


@pytest.mark.parametrize("phase", [Phase.INACTIVE, Phase.COUNTDOWN, Phase.PAUSED, Phase.ENDED])
def test_a_match_that_never_begins_is_given_up(phase: int) -> None:
    report = fed(lambda number: frame(number, phase=phase).packet)
    assert report.notes == ["no kickoff came"]
    assert report.dialect == {} and not report.settled


def test_a_match_that_is_over_at_once_is_given_up() -> None:
    report = fed(lambda number: frame(number, phase=Phase.KICKOFF if number < 400 else Phase.ENDED).packet)
    assert "the match was over before all scenes were played" in report.notes
    assert report.packets < 500


def test_packets_without_the_probes_cars_are_counted() -> None:
    report = fed(lambda number: frame(number).packet if number == 9 else flat.GamePacket(), most=300)
    assert "300 packets lacked one of the probe's cars" in report.notes
    assert "ended after 300 packets, before all scenes were played" in report.notes


@pytest.mark.parametrize("numbers", [lambda _: 7, lambda number: 5000 - number, lambda number: number // 2])
def test_frames_that_stand_still_or_go_back_end_some_time(numbers) -> None:
    report = fed(lambda number: frame(numbers(number), phase=Phase.ACTIVE).packet)
    assert not report.settled
    assert "the server ignores state setting (enable_state_setting)" in report.notes


def test_a_frame_number_that_jumps_far_leaves_a_report() -> None:
    def jumping(number: int) -> flat.GamePacket:
        phase = Phase.ACTIVE if number < 1500 else Phase.REPLAY
        return frame(min(number, 1600) + (2**31 if number >= 300 else 0), phase=phase).packet

    report = fed(jumping)
    assert report.timing.packets_per_second == 120.0


def test_cars_full_of_nonsense_settle_nothing() -> None:
    nan = float("nan")

    def nonsense(number: int) -> flat.GamePacket:
        wrong = car(place=(nan, nan, nan), dodge_timeout=nan, boost=nan, demolished_timeout=nan)
        return frame(number, wrong, car("Else", 2), clock=nan).packet

    report = fed(nonsense)
    assert "dodge_timeout" in report.open
    assert report.toml("a server of nonsense", OWN_SERVER).count("not settled") >= 10


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield one


def test_a_server_that_says_nothing_is_given_up(listener: socket.socket) -> None:
    with pytest.raises(NoServer, match="the server gave it no car"):
        Players(listener.getsockname(), AGENTS, patience=0.5)


def test_no_server_at_all_is_said(listener: socket.socket) -> None:
    address = listener.getsockname()
    listener.close()
    with pytest.raises(NoServer, match=r"no car for rlgym_bridge/engine/blue-0 at 127\.0\.0\.1"):
        Players(address, AGENTS, patience=0.5)


def framed(message: object) -> bytes:
    payload = flat.CorePacket(message).pack()
    return len(payload).to_bytes(2, "big") + payload


def test_a_server_that_goes_or_sends_junk_leaves_a_report(listener: socket.socket) -> None:
    hello = [
        framed(flat.MatchConfiguration()),
        framed(flat.FieldInfo()),
    ]

    def serve() -> None:
        connections = []
        for identifier in (1, 2):
            connection, _ = listener.accept()
            connections.append(connection)
            team = flat.ControllableTeamInfo(0, [flat.ControllableInfo(identifier - 1, identifier)])
            connection.sendall(b"".join([*hello, framed(team)]))
        connections[0].sendall(b"\x00\x03abc" + framed(frame(5, phase=Phase.COUNTDOWN).packet))
        for one in connections:
            one.recv(4096)
            one.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with closing(Players(listener.getsockname(), AGENTS, patience=5.0)) as players:
        assert players.ids == [1, 2]
        probe = Probe(players.ids, players.field)
        players.follow(probe, seconds=10.0)
        players.stop_match()
    thread.join(5.0)
    report = probe.report()
    assert report.packets == 1
    assert report.notes[0].startswith("the server went away")


def test_a_time_that_is_up_ends_the_play(listener: socket.socket) -> None:
    def serve() -> None:
        for identifier in (1, 2):
            connection, _ = listener.accept()
            kept.append(connection)
            team = flat.ControllableTeamInfo(0, [flat.ControllableInfo(identifier - 1, identifier)])
            connection.sendall(framed(flat.FieldInfo()) + framed(team))

    kept: list[socket.socket] = []
    threading.Thread(target=serve, daemon=True).start()
    with closing(Players(listener.getsockname(), AGENTS, patience=5.0)) as players:
        probe = Probe(players.ids, players.field)
        players.follow(probe, seconds=0.3)
    assert probe.report().notes == ["ended after 0.3 s", "no packet came"]
    for one in kept:
        one.close()


@pytest.mark.parametrize(
    "impairments", [Impairments(drop=5.0), Impairments(drop=30.0), Impairments(burst=3, drop=10.0)]
)
def test_lockstep_does_not_wait_for_a_lone_cars_packet(impairments: Impairments) -> None:
    results: list[MatchResult] = []
    with MatchServer(pace="lockstep", impairments=impairments) as server:
        thread = threading.Thread(target=lambda: results.append(server.play(match_of_two())), daemon=True)
        thread.start()
        with closing(Players((server.host, server.port), AGENTS, patience=10.0)) as players:
            players.follow(Probe(players.ids, players.field, most_packets=700), seconds=60.0)
            players.stop_match()
        thread.join(10.0)
    (result,) = results
    assert result.ticks > 700
    assert [bot.late for bot in result.bots] == [0, 0]
