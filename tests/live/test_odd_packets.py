"""Faults of a connection, packets that cannot be right, and line-ups that change: our cars get controls."""

import logging
import math
from dataclasses import replace

import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.clock import Timing
from rlgym_bridge.live.player import Faults, LivePlayer
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.state import KNOWN_FIELDS
from tests.parity.world import make_match, with_fields
from tests.support.made_packets import at, packet, player
from tests.support.packet_streams import playing
from tests.support.players_by_hand import CONFIG, Always, brain, live_player, neutral, sent
from tools.fault_matrix import SUBJECTS, run_cell, why_empty
from tools.stream_faults import FAULTS

QUICK = [
    ("agent", "cut in a message"), ("hivemind", "swapped"), ("LiveEngine", "frames go back"),
    ("server", "single bytes"), ("recorder", "players grow"),
]  # fmt: skip
CELLS = [(subject, name) for name in FAULTS for subject in SUBJECTS if not why_empty(FAULTS[name], subject)]


@pytest.mark.parametrize(
    ("subject", "name"),
    [pytest.param(*cell, marks=() if cell in QUICK else pytest.mark.slow) for cell in CELLS],
)
def test_a_fault_leaves_no_car_without_control(subject: str, name: str) -> None:
    cell = run_cell(FAULTS[name], subject)
    assert cell.passed, cell.seen


@pytest.mark.slow
def test_a_car_gets_controls_while_frame_numbers_go_back() -> None:
    assert run_cell(FAULTS["frames go back"], "agent").without == 1


WHEELS = KNOWN_FIELDS.index("wheels_with_contact")
AWAY = flat.BoostPadState(False, 1.0)


def turned(angle: float) -> flat.Physics:
    return flat.Physics(
        flat.Vector3(0, 0, 17), flat.Rotator(angle, angle, angle), flat.Vector3(), flat.Vector3()
    )


def test_pads_that_come_and_go_are_read_anew() -> None:
    decoder = Decoder(field_info(), shadow=False)
    for frame, count in enumerate((34, 20, 34, 40, 0, 34)):
        state = decoder.update(packet(frame, boost_pads=[AWAY] * count))
        away = int((state.pad_timer > 0).sum())
        assert away == min(count, 34)
    assert state.pad_timer.max() == pytest.approx(9.0)


@pytest.mark.parametrize("timer", [math.nan, math.inf, -math.inf, 3e38])
def test_a_pad_timer_of_nan_leaves_a_possible_time(timer: float) -> None:
    decoder = Decoder(field_info(), shadow=False)
    decoder.update(packet(1))
    state = decoder.update(packet(2, boost_pads=[flat.BoostPadState(False, timer)] * 34))
    assert (state.pad_timer > 0).all() and (state.pad_timer <= 10.0).all()


@pytest.mark.parametrize("angle", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("whose", ["car", "ball"])
def test_an_angle_that_is_no_number_is_passed_on_as_none(angle: float, whose: str) -> None:
    decoder = Decoder(field_info(), shadow=False)
    other = player(player_id=8, team=1, physics=turned(angle if whose == "car" else 0.0))
    ball = flat.BallInfo(turned(angle if whose == "ball" else 0.0))
    state = decoder.update(packet(1, player(), other, balls=[ball]))
    assert np.isfinite(state.car_rotation[0, 0]).all()
    assert np.isnan(state.ball_rotation).all() == (whose == "ball")
    assert np.isnan(state.car_rotation[0, 1]).all() == (whose == "car")


@pytest.mark.parametrize("timeout", [math.inf, math.nan, 3e38])
@pytest.mark.parametrize("frames", [(1, 2, 3), (1, 9, 17)], ids=["every packet", "lost packets"])
def test_a_dodge_timeout_of_nan_counts_as_a_jump_just_ended(timeout: float, frames: tuple[int, ...]) -> None:
    decoder = Decoder(field_info(), shadow=False)
    decoder.update(packet(0, player(air_state=flat.AirState.Jumping, has_jumped=True)))
    air = player(air_state=flat.AirState.InAir, has_jumped=True, dodge_timeout=timeout)
    for frame in frames:
        state = decoder.update(packet(frame, air))
    assert 0.0 <= state.car_air_time_since_jump[0, 0] < 0.2 and state.car_has_flip[0, 0] == 1


def test_frame_numbers_beyond_31_bits_go_on() -> None:
    decoder = Decoder(field_info(), shadow=False)
    frames = [2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 0]
    seen = [int(decoder.update(packet(frame)).frame[0]) for frame in frames]
    assert seen == [2**31 - 1, -(2**31), -(2**31) + 1, -1, 0]


def test_a_player_of_no_team_ends_the_estimates_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    decoder = Decoder(field_info())
    known = []
    for number, one in enumerate(playing(make_match(1, 0), ticks=30, skip=300)):
        if number in (10, 20):
            one = with_fields(one, players=[with_fields(one.players[0], team=7), one.players[1]])
        known.append(bool(decoder.update(one).car_known[0, :, WHEELS].all()))
    assert known[9] and not known[10] and not known[11] and all(known[12:20])
    assert not known[20] and all(known[22:])
    assert sum("no simulation follows these cars" in record.message for record in caplog.records) == 1
    assert not decoder.estimates


def test_players_who_come_or_go_are_followed_on() -> None:
    following = Decoder(field_info())
    for number, one in enumerate(playing(make_match(2, 0), ticks=90, skip=300)):
        if 30 <= number < 60:
            one = with_fields(one, players=one.players[:3])
        if number in (30, 60):
            late = Decoder(field_info())
        state = following.update(one)
        if number < 30:
            continue
        fresh = late.update(one)
        assert state.car_known[0, :, WHEELS].all() == (number not in (30, 60))
        if number not in (30, 60):
            for name in ("wheels_with_contact", "is_autoflipping", "bump_victim"):
                ours, theirs = getattr(state, "car_" + name), getattr(fresh, "car_" + name)
                np.testing.assert_array_equal(ours, theirs, err_msg=f"{name}, packet {number}")


def test_the_answer_to_other_players_comes_before_their_cars() -> None:
    one = live_player(Always())
    other = player(player_id=8, team=1)
    for frame in range(1, 12):
        sent(one, at(frame, 3, player(), other))
    changed = at(12, 3, other, player())
    assert one.foresee(changed)
    foreseen = [(index, row.tolist()) for index, row in one.inputs()]
    assert neutral(foreseen) and foreseen == sent(one, changed)
    assert [index for index, _ in foreseen] == [1]
    assert not one.foresee(at(13, 3, other)), "our car is not there"


def test_without_delay_other_players_wait_for_the_decision() -> None:
    at_once = replace(brain(Always()), timing=Timing(action_delay=0))
    one = LivePlayer(at_once, field_info(), CONFIG, [7], Faults(logging.getLogger("tests")))
    sent(one, at(1))
    changed = at(2, 3, player(player_id=8), player())
    assert not one.foresee(changed)
    assert not neutral(sent(one, changed))
