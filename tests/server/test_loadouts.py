"""Cars that nobody drives stand idle; a loadout decides the hitbox, in the match file or while it plays."""

import logging

import pytest
from rlbot import flat

from rlgym_bridge.game import HITBOX_OF_BODY, HITBOXES
from rlgym_bridge.server import ConfigError, read_match_file
from rlgym_bridge.server.game.roster import Roster, seat_players
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.orders import Loadouts, hitbox_of
from tests.support.raw_client import agent, connect, settle
from tests.support.short_waits import COUNTDOWN_TICKS, shorten_countdown
from tests.support.stepped_match import kicked_off, match_of, player, result_of

HUMAN = flat.PlayerConfiguration(flat.Human(), 0)


BOT = '[settings]\nagent_id = "test/one"\nname = "One"\nrun_command = "one"\nrun_command_linux = "one"\n'
SCRIPT = 'python -c "from rlbot.managers import Script; Script().run()"'
V5 = """[[cars]]
config_file = "one.bot.toml"
[[cars]]
team = 1
type = "{}"
"""
V4 = """[Match Configuration]
num_participants = 2
[Participant Configuration]
participant_config_0 = one.bot.toml
participant_team_1 = 1
participant_type_1 = {}
"""


@pytest.mark.parametrize(("text", "name"), [(V5, "match.toml"), (V4, "rlbot.cfg")])
@pytest.mark.parametrize("kind", ["human", "psyonix"])
def test_a_match_file_may_have_idle_cars_where_allowed(tmp_path, text, name, kind):
    (tmp_path / "one.bot.toml").write_text(BOT)
    (tmp_path / name).write_text(text.format(kind))
    with pytest.raises(ConfigError, match=f"is '{kind}', expected a bot of type rlbot.*--allow-idle"):
        read_match_file(tmp_path / name)
    roster = seat_players(read_match_file(tmp_path / name, allow_idle=True), allow_idle=True)
    (idle,) = (car for car in roster.cars if car.is_idle)
    assert idle.player == kind and (idle.identifier == 0) == (kind == "human")
    assert [agent.is_idle for agent in roster.agents] == [False]  # nobody gets its seat


def test_a_car_without_a_bot_file_is_a_psyonix_bot(tmp_path):
    (tmp_path / "one.bot.toml").write_text(BOT)
    (tmp_path / "match.toml").write_text(V5.replace('type = "{}"', 'name = "Sir"'))
    match = read_match_file(tmp_path / "match.toml", allow_idle=True)
    assert [car.player for car in seat_players(match, allow_idle=True).cars] == ["bot", "psyonix"]


def test_a_match_without_bot_and_script_is_refused():
    with pytest.raises(ConfigError, match="the match has no bots, expected at least one"):
        seat_players(match_of(HUMAN), allow_idle=True)


def test_a_match_of_idle_cars_is_played_for_a_script(tmp_path, monkeypatch):
    shorten_countdown(monkeypatch)
    script = flat.ScriptConfiguration("Watcher", str(tmp_path), SCRIPT, agent_id="test/watcher")
    match = match_of(HUMAN, script_configurations=[script])
    result = result_of(match, pace="realtime", max_kickoff=0.3, log_dir=tmp_path, allow_idle=True)
    assert result.ended_by == "kickoff not touched" and result.ticks == COUNTDOWN_TICKS + 36 + 1


@pytest.mark.protocol("packet.is-bot")
@pytest.mark.parametrize("pace", ["lockstep", "realtime"])
def test_an_idle_car_stands_and_nobody_waits_for_it(pace, tmp_path, monkeypatch):
    shorten_countdown(monkeypatch)
    packets = []
    psyonix = flat.PlayerConfiguration(flat.PsyonixBot("Sir"), 1)
    settings = {"max_kickoff": 0.5, "log_dir": tmp_path, "on_packet": packets.append, "allow_idle": True}
    result = result_of(match_of(HUMAN, player(0), psyonix), pace=pace, **settings)
    shown = [flat.CorePacket.unpack(data).message for data in packets]
    first, *_, last = (one for one in shown if one.match_info.match_phase == flat.MatchPhase.Kickoff)
    assert [(car.name, car.is_bot) for car in shown[-1].players] == [
        ("Sir", False), ("Bot", True), ("Human", False)
    ]  # fmt: skip
    places = [[car.physics.location for car in packet.players] for packet in (first, last)]
    moved = [abs(a.x - b.x) + abs(a.y - b.y) for a, b in zip(*places, strict=True)]
    assert moved[0] < 5.0 and moved[2] < 5.0 and moved[1] > 5.0
    _, bot, human = result.bots
    assert bot.replies > 0 and not human.crashed and human.late == human.replies == 0
    assert result.unrepeatable == () or pace == "realtime"


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
    match = match_of(player(0, "dominus"), player(1, loadout=flat.PlayerLoadout(car_id=MERC)))
    result_of(match, seconds=0.2, max_overtime=0.1, log_dir=tmp_path, on_packet=packets.append)
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
