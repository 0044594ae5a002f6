"""Humans and Psyonix bots, whom nobody drives here, stand idle where that is allowed."""

import pytest
from rlbot import flat

from rlgym_bridge.server import ConfigError, MatchServer, read_match_file
from rlgym_bridge.server.game.roster import seat_players
from tests.support.short_waits import COUNTDOWN_TICKS, shorten_countdown
from tests.support.stepped_match import match_of, player

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
    with MatchServer(pace="realtime", max_kickoff=0.3, log_dir=tmp_path, allow_idle=True) as server:
        result = server.play(match)
    assert result.ended_by == "kickoff not touched" and result.ticks == COUNTDOWN_TICKS + 36 + 1


@pytest.mark.protocol("packet.is-bot")
@pytest.mark.parametrize("pace", ["lockstep", "realtime"])
def test_an_idle_car_stands_and_nobody_waits_for_it(pace, tmp_path, monkeypatch):
    shorten_countdown(monkeypatch)
    packets = []
    psyonix = flat.PlayerConfiguration(flat.PsyonixBot("Sir"), 1)
    with MatchServer(
        pace=pace, max_kickoff=0.5, log_dir=tmp_path, on_packet=packets.append, allow_idle=True
    ) as server:
        result = server.play(match_of(HUMAN, player(0), psyonix))
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
