"""Packets to states: what is carried, what is counted, and when the count can be trusted."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.game import BIG_PADS, CONTROL_NAMES, HITBOXES, PAD_POSITIONS
from rlgym_bridge.packets.decoder import ESTIMATES, Decoder, player_input
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3
from rlgym_bridge.state import KNOWN_FIELDS
from tests.parity.run import Loss, run
from tests.parity.world import drive, make_match
from tests.support.made_packets import packet, player
from tests.support.simulators import needs_native

COUNTED = ("supersonic_time", "boost_active_time", "handbrake", "jump_time", "air_time_since_jump")


def match_packets(ticks: int, seed: int = 0, team_size: int = 1) -> Iterator[flat.GamePacket]:
    for count, sent in enumerate(drive(make_match(team_size, seed, 1e6), seed)):
        if count == ticks:
            return
        yield sent


@pytest.mark.parametrize(
    ("ticks", "seed", "few"), [(1200, 2, 5), pytest.param(3000, 3, 10, marks=pytest.mark.slow)]
)
def test_with_a_shadow_every_field_equals_rlgyms_engine(ticks: int, seed: int, few: int) -> None:
    result = run(ticks, team_size=2, seed=seed)
    assert result.counts["touches"] > few and result.counts["pad pickups"] > few
    assert result.counts["bumps"] and result.counts["demolitions"] and result.counts["flip resets"]
    assert not result.readers["shadow"].wrong()


def test_without_a_shadow_only_named_estimates_are_off() -> None:
    result = run(1200, seed=3, readers=("counting",))
    wrong, tallies = result.readers["counting"].wrong(), result.readers["counting"].tallies
    assert set(wrong) <= {"car.wheels_with_contact", "car.on_ground", "car.can_flip"}  # from the wheels
    assert tallies["car.on_ground"].mismatches < 0.01 * tallies["car.on_ground"].samples
    assert tallies["car.bump_victim_id"].unknown == tallies["car.bump_victim_id"].samples
    assert tallies["car.jump_time"].unknown < 0.1 * tallies["car.jump_time"].samples


def test_a_decoder_names_its_lasting_estimates() -> None:
    assert Decoder(field_info(), shadow=False).estimates == ESTIMATES
    assert not Decoder(field_info()).estimates


def test_with_lost_packets_what_counts_is_known_often():
    tallies = run(900, seed=2, loss=Loss(0.02), readers=("shadow",)).readers["shadow"].tallies
    for tally in (tallies[f"car.{name}"] for name in COUNTED):
        assert tally.samples and tally.unknown < 0.7 * tally.samples and not tally.mismatches


def test_a_late_bot_knows_all_that_counts_within_seconds() -> None:
    decoder = Decoder(field_info())
    state = None
    for number, sent in enumerate(match_packets(2100, seed=4)):
        if number >= 1200:
            state = decoder.update(sent)
    assert state is not None
    names = [KNOWN_FIELDS.index(name) for name in COUNTED]
    assert state.car_known[0][:, names].all()


def test_pads_are_found_by_position_in_whatever_order_they_come() -> None:
    field = field_info()
    order = list(range(34))
    random.Random(0).shuffle(order)
    shuffled = flat.FieldInfo(boost_pads=[field.boost_pads[i] for i in order], goals=field.goals)
    decoder = Decoder(shuffled)
    decoder.update(packet(1))
    for place in range(34):
        pads = [flat.BoostPadState(i != place, 0.0) for i in range(34)]
        decoder = Decoder(shuffled, shadow=False)
        decoder.update(packet(1))
        timers = decoder.update(packet(2, boost_pads=pads)).pad_timer[0]
        (pad,) = np.flatnonzero(timers)
        where = shuffled.boost_pads[place].location
        assert PAD_POSITIONS[pad] == (where.x, where.y)
        assert timers[pad] == (10.0 if pad in BIG_PADS else 4.0)


@pytest.mark.parametrize("elapsed", [True, False], ids=["seconds since", "seconds left"])
def test_a_pad_seen_to_go_counts_down_in_either_dialect(elapsed: bool) -> None:
    decoder = Decoder(field_info())
    decoder.update(packet(1))
    for tick in range(480):
        since = tick / 120
        pads = [
            flat.BoostPadState(i > 0, (since if elapsed else 4.0 - since) if i == 0 else 0.0)
            for i in range(34)
        ]
        timers = decoder.update(packet(2 + tick, boost_pads=pads)).pad_timer[0]
        assert timers[0] == pytest.approx(4.0 - since, abs=2e-4)
        assert not timers[1:].any()
    assert decoder.update(packet(482)).pad_timer[0, 0] == 0


@pytest.mark.parametrize("number", range(6))
def test_all_six_hitboxes_are_told_apart_with_tolerance(number: int) -> None:
    box = HITBOXES[number]
    for slack in (-0.2, 0.0, 0.2):
        shape = flat.BoxShape(box.length + slack, box.width - slack, box.height + slack)
        state = Decoder(field_info(), shadow=False).update(packet(1, player(hitbox=shape)))
        assert state.car_hitbox[0, 0] == number


def test_an_unknown_hitbox_is_taken_as_the_nearest_and_said(caplog: pytest.LogCaptureFixture) -> None:
    state = Decoder(field_info(), shadow=False).update(
        packet(1, player(hitbox=flat.BoxShape(140.0, 80.0, 31.0)))
    )
    assert state.car_hitbox[0, 0] == 3
    assert "not one of the game's six; using breakout" in caplog.text


def test_a_dodge_that_has_expired_is_gone() -> None:
    decoder = Decoder(field_info())
    for tick in range(400):
        left = 1.25 - tick / 120
        air = player(air_state=flat.AirState.InAir, has_jumped=True, dodge_timeout=left if left > 0 else -1.0)
        state = decoder.update(packet(10 + tick, air))
        assert bool(state.car_has_flip[0, 0]) == (left > 0)


def test_a_jump_with_three_wheels_down_keeps_its_dodge() -> None:
    decoder = Decoder(field_info())
    decoder.update(packet(10))
    for frame in (11, 12, 13):
        decoder.update(packet(frame, player(air_state=flat.AirState.Jumping, has_jumped=True)))
    # A server that counts a car as on the ground with all four wheels only has no dodge to time here.
    state = decoder.update(packet(14, player(air_state=flat.AirState.InAir, has_jumped=True)))
    assert state.car_air_time_since_jump[0, 0] == 0 and state.car_has_flip[0, 0] == 1


def test_a_dodge_turns_about_the_axis_across_its_direction() -> None:
    direction = flat.Vector2(0.6, 0.75)  # forwards and to the right
    air = player(air_state=flat.AirState.Dodging, has_dodged=True, dodge_dir=direction, dodge_elapsed=0.1)
    state = Decoder(field_info(), shadow=False).update(packet(10, air))
    assert state.car_flip_torque[0, 0].tolist() == [-0.75, np.float32(0.6), 0.0]


@pytest.mark.parametrize(
    ("counts", "wheels"), [("three_wheels", [0, 0, 0, 0]), ("four_wheels", [1, 0, 1, 1])]
)
def test_three_wheels_touch_in_the_air_where_four_count(counts: str, wheels: list[int]) -> None:
    decoder = Decoder(field_info(), shadow=False, dialect=ProtocolVariant({"on_ground": counts}))
    tilted = flat.Physics(flat.Vector3(0, 0, 24), flat.Rotator(0.1, 0, 0.1), flat.Vector3(), flat.Vector3())
    for frame in (1, 2):  # by geometry three wheels of the pose touch, and the packet says "in the air"
        state = decoder.update(packet(frame, player(physics=tilted, air_state=flat.AirState.InAir)))
    assert state.car_wheels_with_contact[0, 0].tolist() == wheels


def test_lost_packets_count_for_the_supersonic_time() -> None:
    decoder = Decoder(field_info(), shadow=False)
    decoder.update(packet(10))
    decoder.update(packet(11, player(is_supersonic=True)))
    state = decoder.update(packet(16, player(is_supersonic=True)))
    assert state.car_supersonic_time[0, 0] == pytest.approx(6 / 120)


@pytest.mark.parametrize(
    ("simulator", "third"), [(ROCKETSIM2, True), pytest.param(ROCKETSIM3, False, marks=needs_native)]
)
def test_holding_boost_with_an_empty_tank_is_not_boosting(simulator: str, third: bool) -> None:
    decoder = Decoder(field_info(), simulator=simulator)
    pressed = flat.ControllerState(boost=True)
    amounts = [0.5, 0.2, 0.0, 0.0, 0.0]
    boosting = [
        bool(decoder.update(packet(10 + i, player(boost=a, last_input=pressed))).car_is_boosting[0, 0])
        for i, a in enumerate(amounts)
    ]
    assert boosting == [True, True, third, False, False]  # RocketSim 3 stops as the tank runs empty


def test_a_repeated_frame_counts_nothing_and_shows_its_state() -> None:
    decoder = Decoder(field_info())
    pressed = flat.ControllerState(handbrake=True, boost=True)
    for frame in range(5):
        decoder.update(packet(frame, player(last_input=pressed)))
    before = decoder.state.copy() if decoder.state else None
    moved = flat.Physics(flat.Vector3(100, 200, 17), flat.Rotator(), flat.Vector3(), flat.Vector3())
    after = decoder.update(packet(4, player(last_input=pressed, physics=moved)))
    assert before is not None
    assert after.car_position[0, 0].tolist() == [100, 200, 17]
    assert after.car_handbrake[0, 0] == before.car_handbrake[0, 0]
    assert after.car_boost_active_time[0, 0] == before.car_boost_active_time[0, 0]


def test_a_missing_ball_keeps_its_place_and_is_unknown() -> None:
    ball = flat.BallInfo(flat.Physics(location=flat.Vector3(1, 2, 300)), flat.SphereShape(182.5))
    decoder = Decoder(field_info())
    assert decoder.update(packet(1, balls=[ball])).ball_known[0] == 1
    state = decoder.update(packet(2))
    assert state.ball_known[0] == 0 and state.ball_position[0].tolist() == [1, 2, 300]


def test_players_who_come_and_go_find_their_rows_by_team() -> None:
    decoder = Decoder(field_info())
    orange, blue = player(team=1, player_id=1), player(team=0, player_id=2)
    state = decoder.update(packet(1, orange))
    assert state.agents == ("orange-0",)
    state = decoder.update(packet(2, orange, blue))
    assert state.car_player_id[0].tolist() == [2, 1] and decoder.packet_indices == [1, 0]
    assert decoder.update(packet(3, blue)).car_player_id[0].tolist() == [2]


def test_more_than_four_cars_in_a_team_are_refused() -> None:
    with pytest.raises(ValueError, match="team sizes are 5 and 0, expected 0 to 4"):
        Decoder(field_info()).update(packet(1, *[player(player_id=i) for i in range(5)]))


def test_scores_phase_and_clock_come_as_they_are() -> None:
    state = Decoder(field_info()).update(packet(77))
    assert state.frame[0] == 77 and state.phase[0] == 3 and state.score[0].tolist() == [1, 2]
    assert state.gravity[0] == 1


@pytest.mark.parametrize("control", range(8))
def test_each_number_of_a_row_is_sent_as_its_own_control(control: int) -> None:
    row = [0.0] * 8
    row[control] = 1.0
    sent = player_input(3, row)
    assert sent.player_index == 3
    assert [float(getattr(sent.controller_state, name)) for name in CONTROL_NAMES] == row
