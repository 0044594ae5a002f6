"""A loadout decides a car's hitbox: from the match file, from the bot as it begins, or while it plays."""

import logging

import pytest
from rlbot import flat

from rlgym_bridge.game import HITBOX_OF_BODY, HITBOXES
from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.game.roster import Roster, seat_players
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.orders import Loadouts, hitbox_of
from tests.support.raw_client import agent, connect, settle
from tests.support.stepped_match import kicked_off, match_of, player

DOMINUS, MERC = 403, 30

PSYONIX_BODIES = {  # of the loadouts in core's `PsyonixLoadouts.cs`, the bodies that core itself names
    21: "octane", 22: "breakout", 23: "octane", 24: "plank", 25: "octane", 26: "octane", 28: "hybrid",
    29: "dominus", 30: "merc", 31: "hybrid",
}  # fmt: skip
NEWER_BODIES = {  # of public bots' loadouts
    597: "dominus", 2070: "dominus", 2269: "hybrid", 3031: "breakout", 3451: "hybrid", 4268: "plank",
    4284: "octane", 4906: "octane", 5361: "octane", 5713: "octane", 6247: "dominus", 7336: "merc",
    9140: "dominus",
}  # fmt: skip


def shown(packet: flat.GamePacket) -> list[str]:
    lengths = {round(box.length, 3): box.name for box in HITBOXES}
    return [lengths[round(car.hitbox.length, 3)] for car in packet.players]


def taken_loadouts(lobby: Lobby, roster: Roster) -> list[tuple[int, int]]:
    """Have a lobby take loadouts; return where car and hitbox of each are put down."""
    calls: list[tuple[int, int]] = []
    loadouts = Loadouts(roster, lambda *call: calls.append(call), lobby.admission, int)
    lobby.clients.handlers.update(loadouts.handlers)
    return calls


@pytest.mark.parametrize(
    ("ready", "in_play", "index", "taken"),
    [
        (False, False, 0, True),
        (False, False, 1, False),  # not its own
        (False, True, 1, False),
        (True, False, 0, False),
        (True, True, 0, True),
        (True, True, 1, True),
        (True, True, 7, False),
    ],
)
@pytest.mark.protocol("loadout.before-ready", "loadout.state-setting")
def test_whose_loadout_may_be_set_when(lobby, ready, in_play, index, taken):
    roster = seat_players(match_of(player(0), player(1, "ram"), enable_state_setting=in_play))
    lobby.open_match(roster)
    calls = taken_loadouts(lobby, roster)
    client = connect(lobby, agent(), *([flat.InitComplete()] if ready else []))
    client.send(flat.SetLoadout(index, flat.PlayerLoadout(car_id=DOMINUS)))
    settle(lobby)
    assert calls == ([(index, 1)] if taken else [])


def hitboxes_of(bodies: list[int]) -> list[str]:
    """Return the hitboxes that the packets of matches with these bodies show, four cars at a time."""
    names: list[str] = []
    for first in range(0, len(bodies), 4):
        four = bodies[first : first + 4]
        cars = [player(0, loadout=flat.PlayerLoadout(car_id=body)) for body in four]
        names += shown(Match(seat_players(match_of(*cars)).cars).packet())
    return names


@pytest.mark.parametrize("expected", [PSYONIX_BODIES, NEWER_BODIES])
def test_bodies_have_the_hitboxes_that_the_game_gives_them(expected):
    assert dict(zip(expected, hitboxes_of(list(expected)), strict=True)) == expected


def test_every_known_body_shows_its_hitbox_without_a_warning(caplog):
    bodies = list(HITBOX_OF_BODY)
    assert hitboxes_of(bodies) == [HITBOXES[number].name for number in HITBOX_OF_BODY.values()]
    for body in bodies:
        assert hitbox_of(body, "a car") == HITBOX_OF_BODY[body]
    assert "is not known here" not in caplog.text


def test_an_unknown_body_is_named_and_plays_as_an_octane(lobby, caplog):
    odd = player(0, agent_id="test/me", name="Odd", loadout=flat.PlayerLoadout(car_id=99_999))
    with caplog.at_level(logging.WARNING):
        taken_loadouts(lobby, seat_players(match_of(odd)))
    assert "'Odd' (agent_id 'test/me', blue) has car_id 99999, whose hitbox is not known" in caplog.text
    assert {HITBOXES[number].name for number in HITBOX_OF_BODY.values()} == {box.name for box in HITBOXES}


@pytest.mark.protocol("loadout.state-setting")
@pytest.mark.odd_packets("a hitbox changes in play")
def test_a_hitbox_set_in_play_shows_in_the_next_packet_alone():
    match, other = kicked_off(2), kicked_off(2)
    before = match.packet()
    other.packet()
    match.set_hitbox(1, 5)
    after, same = match.packet(), other.packet()
    assert shown(before) == ["octane"] * 4 and shown(after) == ["octane", "merc", "octane", "octane"]
    assert str([car.physics for car in after.players]) == str([car.physics for car in same.players])
    assert str((after.balls, after.boost_pads)) == str((same.balls, same.boost_pads))
    for _ in range(240):
        match.advance()
        packet = match.packet()
    heights = [car.physics.location.z for car in packet.players]
    assert heights[1] > heights[0] == pytest.approx(17.01, abs=0.05)  # a Merc's middle is higher


@pytest.mark.protocol("loadout.before-ready")
def test_a_loadout_set_in_initialize_is_there_at_once(tmp_path):
    packets = []
    with MatchServer(
        pace="lockstep", seconds=0.2, max_overtime=0.1, log_dir=tmp_path, on_packet=packets.append
    ) as server:
        server.play(match_of(player(0, "dominus"), player(1, loadout=flat.PlayerLoadout(car_id=MERC))))
    for data in (packets[0], packets[-1]):
        assert shown(flat.CorePacket.unpack(data).message) == ["dominus", "merc"]


def test_a_flood_of_loadouts_is_taken_slowly(lobby, caplog):
    roster = seat_players(match_of(player(0), enable_state_setting=True))
    lobby.open_match(roster)
    calls = taken_loadouts(lobby, roster)
    client = connect(lobby, agent(), flat.InitComplete())
    client.send(*(flat.SetLoadout(0, flat.PlayerLoadout(car_id=body)) for body in [DOMINUS, MERC] * 50))
    settle(lobby)
    assert len(calls) == 16
    assert caplog.text.count("more than a loadout in 4 ticks: some are ignored") == 1
