"""Match files, good and bad."""

import logging
import sys

import pytest
from rlbot import flat

from rlgym_bridge.server import ConfigError, client_log, read_match_file
from rlgym_bridge.server.game.roster import seat_players, warn_of_shared_ids
from rlgym_bridge.server.game.rules import check_rules, course_of, physics_of, warn_of_rules
from rlgym_bridge.server.lineup import with_line_up
from tests.support.stepped_match import match_of, player

BOT = """
[settings]
agent_id = "test/one"
name = "One"
run_command = "python one.py"
run_command_linux = "python one.py"
loadout_file = "loadout.toml"
[settings.environment]
MODEL = "best"
"""

LOADOUT = """
[blue_loadout]
car_id = 29
[orange_loadout]
car_id = 22
"""

TOML = """
[match]
game_mode = "soccer"
game_map_upk = "Stadium_P"
skip_replays = true
[mutators]
match_length = "tenminutes"
gravity = "Low"
[[cars]]
config_file = "bots/one.bot.toml"
team = "blue"
[[cars]]
config_file = "bots/one.bot.toml"
team = 1
name = "Other"
auto_start = false
"""

CFG = """
[RLBot Configuration]
launcher_preference = steam
[Team Configuration]
Team Blue Color = 0
[Match Configuration]
num_participants = 2
game_mode = Soccer
game_map = Mannfield
skip_replays = True
start_without_countdown = False
enable_state_setting = True
[Mutator Configuration]
Match Length = 10 Minutes
Gravity = Low
[Participant Configuration]
participant_config_0 = bots/one.bot.toml
participant_team_0 = 0
participant_type_0 = rlbot
participant_bot_skill_0 = 1.0
participant_config_1 = bots\\one.bot.toml
participant_team_1 = 1
"""
if sys.platform != "win32":
    CFG = CFG.replace("\\", "/")


@pytest.fixture(autouse=True)
def no_server_limits_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write every warning: beside an open server, of another test say, only 20 of a kind are written."""
    monkeypatch.setattr(client_log._LINES, "servers", 0)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bots").mkdir()
    (tmp_path / "bots" / "one.bot.toml").write_text(BOT)
    (tmp_path / "bots" / "loadout.toml").write_text(LOADOUT)
    return tmp_path


def read(folder, text, name="match.toml"):
    (folder / name).write_text(text)
    return read_match_file(folder / name)


@pytest.mark.parametrize(("text", "name"), [(TOML, "match.toml"), (CFG, "rlbot.cfg")])
def test_both_forms_of_match_files_describe_the_same_match(folder, text, name):
    match = read(folder, text, name)
    assert match.skip_replays
    assert match.auto_start_agents
    assert match.wait_for_agents
    assert course_of(match).regulation == 600.0
    assert physics_of(match).gravity_z == -325.0
    blue, orange = seat_players(match).cars
    assert (blue.name, blue.team, blue.agent_id, blue.run_command) == ("One", 0, "test/one", "python one.py")
    assert (blue.root_dir, blue.environment) == (str(folder / "bots"), (("MODEL", "best"),))
    assert (blue.hitbox, orange.hitbox, orange.team) == (1, 3, 1)  # Dominus, Breakout


@pytest.mark.protocol("drawings.match-file")
@pytest.mark.parametrize(
    ("section", "line", "field", "value"),
    [
        ("match", 'game_mode = "Hockey"', "game_mode", "Snowday"),  # from here on: names of earlier schemas
        ("mutators", 'max_time = "Default"', "max_time", "Unlimited"),
        ("mutators", 'max_score = "Default"', "max_score", "Unlimited"),
        ("mutators", 'rumble = "NoRumble"', "rumble", "Off"),
        ("mutators", 'ball_bounciness = "LowishBounciness"', "ball_bounciness", "Lowish"),
        ("match", "", "enable_state_setting", "True"),
        ("match", "enable_state_setting = false", "enable_state_setting", "False"),
        ("match", "", "enable_rendering", "OffByDefault"),
        ("match", "enable_rendering = true", "enable_rendering", "OnByDefault"),
        ("match", "enable_rendering = false", "enable_rendering", "AlwaysOff"),
        ("match", 'enable_rendering = "offbydefault"', "enable_rendering", "OffByDefault"),
    ],
)
def test_values_have_the_meaning_that_core_gives_them(folder, section, line, field, value):
    text = TOML.replace('game_mode = "soccer"', "").replace(f"[{section}]", f"[{section}]\n{line}")
    match = read(folder, text)
    shown = str(getattr(match if section == "match" else match.mutators, field))
    assert shown.rpartition(".")[2] == value


def test_an_empty_loadout_file_is_none(folder):
    (folder / "bots" / "one.bot.toml").write_text(BOT.replace('"loadout.toml"', '""'))
    assert [car.hitbox for car in seat_players(read(folder, TOML)).cars] == [0, 0]


def test_a_car_that_is_not_started_automatically_has_no_command(folder):
    blue, orange = seat_players(read(folder, TOML)).cars
    assert (blue.run_command, orange.run_command, orange.name) == ("python one.py", "", "Other")


def test_different_bots_with_one_agent_id_are_named(caplog):
    warn_of_shared_ids(seat_players(match_of(player(0), player(0), player(1))))
    assert not caplog.records  # one bot with several cars
    warn_of_shared_ids(seat_players(match_of(player(0), player(1, root_dir="/elsewhere"))))
    assert "'Bot' (agent_id 'test/ball', blue) and 'Bot (2)'" in caplog.text


def test_the_names_of_v4_maps_become_files(folder):
    assert read(folder, CFG, "rlbot.cfg").game_map_upk == "EuroStadium_P"


@pytest.mark.parametrize(("field", "is_named"), [("Labs_Octagon_02_P", True), ("CS_P", False), ("", False)])
def test_a_field_of_another_shape_is_named(folder, caplog, field, is_named):
    warn_of_rules(read(folder, TOML.replace("Stadium_P", field)))
    assert ("is not known to have the standard field's shape" in caplog.text) == is_named


def test_many_unknown_keys_are_counted(folder, caplog):
    keys = "".join(f"key_{number} = 1\n" for number in range(3000))
    read(folder, TOML.replace("[match]\n", f"[match]\n{keys}"))
    assert caplog.text.count("is unknown, ignored") == 20
    assert "match.toml: [match] 2980 more keys are unknown, ignored" in caplog.text


def test_an_unknown_key_is_warned_of_with_the_nearest(folder, caplog):
    with caplog.at_level(logging.WARNING):
        read(folder, TOML.replace("skip_replays", "skip_replay"))
    assert "match.toml:5: [match] skip_replay is unknown, ignored; did you mean skip_replays?" in caplog.text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("soccer", "golf", r"match.toml:3: \[match\] game_mode is 'golf', expected one of Soccar, Hoops"),
        ("soccer", "hoops", r"match.toml: game_mode is Hoops, expected one of Soccar, Heatseeker, Snowday"),
        ("skip_replays = true", "skip_replays = 1", r"match.toml:5: .*skip_replays is 1, expected true or"),
        ("tenminutes", "7 minutes", r"match.toml:7: .*match_length is '7 minutes', expected one of FiveMin"),
        ('gravity = "Low"', 'rumble = "Slow"', r"mutator rumble is Slow, which has no effect in RocketSim"),
        ('"Low"', '"Low"\nboost_amount = "SlowRecharge"', r"boost_amount is SlowRecharge, expected one of N"),
        ("team = 1", "team = 2", r"match.toml:14: \[cars\] team is 2, expected 0, 1"),
        ("bots/one.bot.toml", "bots/two.toml", r"two.toml: no such file"),
        ("team = 1", 'type = "human"', r"match.toml:14: \[cars\] type is 'human', expected a bot of"),
        ("team = 1", 'type = "psyonix"', r"\[cars\] type is 'psyonix', expected a bot of type rlbot"),
        ('config_file = "bots/one.bot.toml"\nteam = 1', "team = 1", r"makes a Psyonix bot.*--allow-idle"),
        ("team = 1", 'type = "robot"', r"\[cars\] type is 'robot', expected rlbot, human or psyonix"),
        ('name = "Other"', 'config_file = ""', r"no valid TOML"),
        ('[match]', '[match', r"match.toml: no valid TOML: .*line 2"),
        ('name = "Other"', 'loadout_file = "none.toml"', r"none.toml"),
    ],
)  # fmt: skip
def test_a_wrong_toml_file_says_what_was_expected(folder, old, new, message):
    with pytest.raises(ConfigError, match=message):
        read(folder, TOML.replace(old, new))


def test_misspelt_keys_of_participants_are_warned_of(folder, caplog):
    read(folder, CFG.replace("participant_team_1", "participant_taem_1"), "rlbot.cfg")
    assert "[Participant Configuration] participant_taem_1 is unknown, ignored" in caplog.text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Soccer", "Chess", r"rlbot.cfg:8: \[Match Configuration\] game_mode is 'Chess', expected one of"),
        ("Soccer", "Hoops", r"game_mode is Hoops, expected one of Soccar, Heatseeker, Snowday"),
        ("10 Minutes", "7 Minutes", r"rlbot.cfg:14: \[Mutator Configuration\] match length is '7 Minutes'"),
        ("skip_replays = True", "skip_replays = maybe", r"rlbot.cfg:10: .*'maybe', expected True or False"),
        ("num_participants = 2", "num_participants = x", r"rlbot.cfg:7: .*is 'x', expected a whole number"),
        ("num_participants = 2", "", r"num_participants is missing"),
        ("num_participants = 2", "num_participants = 3", r"participant_config_2 is missing"),
        ("participant_type_0 = rlbot", "participant_type_0 = human", r"rlbot.cfg:19: .*is 'human'"),
        (
            "participant_type_0 = rlbot",
            "participant_type_0 = foo",
            r"is 'foo', expected one of rlbot, party_m",
        ),
        ("participant_team_1 = 1", "participant_team_1 = 5", r"rlbot.cfg:22: .*is '5', expected a whole"),
        ("bots/one.bot.toml", "bots/one.cfg", r"one.cfg: an RLBot v4 bot, expected a v5 bot.toml"),
        ("bots/one.bot.toml", "bots/none.cfg", r"none.cfg: no such file"),
        ("[Match Configuration]", "[Match]", r"no \[Match Configuration\], expected an RLBot v4 match file"),
        ("[Match Configuration]", "[Match Configuration", r"rlbot.cfg: no valid cfg file"),
        ("game_map", "num_participants = 2\ngame_map", r"rlbot.cfg: no valid cfg file: .*num_participants"),
    ],
)
def test_a_wrong_cfg_file_says_what_was_expected(folder, old, new, message):
    (folder / "bots" / "one.cfg").touch()
    with pytest.raises(ConfigError, match=message):
        read(folder, CFG.replace(old, new), "rlbot.cfg")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('agent_id = "test/one"', "", r"one.bot.toml: \[settings\] agent_id is missing"),
        ('agent_id = "test/one"', "agent_id = 3", r"one.bot.toml: 'agent_id' has value 3"),
        ("[settings]", "[setting]", r"one.bot.toml: no \[settings\]|agent_id is missing"),
        ('MODEL = "best"', "MODEL", r"one.bot.toml: no valid TOML"),
    ],
)
def test_a_bot_file_that_is_wrong_is_named(folder, old, new, message):
    (folder / "bots" / "one.bot.toml").write_text(BOT.replace(old, new))
    with pytest.raises(ConfigError, match=message):
        read(folder, TOML)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'car_id = "Fennec"',
            r"loadout.toml:2: \[blue_loadout\] car_id is 'Fennec', expected a whole number",
        ),
        (
            "car_id = -5",
            r"loadout.toml:2: \[blue_loadout\] car_id is -5, expected a whole number from 0 to 42949",
        ),
        ("hat_id = 4294967296", r"loadout.toml:2: \[blue_loadout\] hat_id is 4294967296, expected a whole"),
        ("wheels_id = 1.5", r"loadout.toml:2: \[blue_loadout\] wheels_id is 1.5, expected a whole number"),
        ("boost_id = true", r"loadout.toml:2: \[blue_loadout\] boost_id is True, expected a whole number"),
        ("paint = 3", r"loadout.toml:2: \[blue_loadout\] paint is 3, expected a table"),
        (
            "[blue_loadout.paint]\ncar_paint_id = []",
            r"loadout.toml:3: \[blue_loadout.paint\] car_paint_id is \[\]",
        ),
        ("car_id =", r"loadout.toml: no valid TOML: .*line 2"),
    ],
)
@pytest.mark.parametrize("where", ["the bot's file", "the match", "a Psyonix bot's"])
def test_a_wrong_loadout_is_told_with_file_line_key_and_value(folder, text, message, where):
    place = folder if where != "the bot's file" else folder / "bots"
    (place / "loadout.toml").write_text(f"[blue_loadout]\n{text}\n")
    car = {
        "the bot's file": "",
        "the match": 'loadout_file = "loadout.toml"',
        "a Psyonix bot's": 'loadout_file = "loadout.toml"\ntype = "psyonix"',
    }[where]
    (folder / "match.toml").write_text(f'[[cars]]\nconfig_file = "bots/one.bot.toml"\n{car}\n')
    with pytest.raises(ConfigError, match=message):
        read_match_file(folder / "match.toml", allow_idle=True)


def test_a_loadout_is_refused_for_the_team_that_uses_it_alone(folder):
    (folder / "bots" / "loadout.toml").write_text('[orange_loadout]\ncar_id = "Fennec"\n')
    blue = '[[cars]]\nconfig_file = "bots/one.bot.toml"\n'
    assert seat_players(read(folder, blue)).cars[0].hitbox == 0
    with pytest.raises(ConfigError, match=r"loadout.toml:2: \[orange_loadout\] car_id is 'Fennec'"):
        read(folder, blue + "team = 1")


def test_an_idle_psyonix_bot_has_the_hitbox_of_its_loadout(folder):
    text = (
        '[[cars]]\nconfig_file = "bots/one.bot.toml"\n[[cars]]\ntype = "psyonix"\nteam = 1\nloadout_file = '
    )
    (folder / "match.toml").write_text(text + '"bots/loadout.toml"')
    match = read_match_file(folder / "match.toml", allow_idle=True)
    assert [car.hitbox for car in seat_players(match, allow_idle=True).cars] == [1, 3]


@pytest.mark.protocol("match.run-command")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows takes run_command")
@pytest.mark.parametrize(
    ("commands", "wine", "expected"),
    [
        ('run_command = "one.exe"\nrun_command_linux = "./one"', True, "./one"),
        ('run_command = "one.exe"\nrun_command_linux = "./one"', False, "./one"),
        ('run_command = "one.exe"', True, "wine one.exe"),
        ('run_command = "one.exe"\nrun_command_linux = ""', True, "wine one.exe"),
        ('run_command = "one.exe"', False, "one.exe"),
        ('run_command_linux = "./one"', True, "./one"),
        ("", True, ""),
    ],
)
def test_a_command_for_windows_alone_is_run_by_wine(folder, commands, wine, expected, monkeypatch, caplog):
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}" if wine else None)
    settings = f'[settings]\nagent_id = "test/one"\n{commands}\n'
    (folder / "bots" / "one.bot.toml").write_text(settings)
    (folder / "script.toml").write_text(settings)
    cars, scripts = (
        '[[cars]]\nconfig_file = "bots/one.bot.toml"\n',
        '[[scripts]]\nconfig_file = "script.toml"\n',
    )
    match = read(folder, cars)
    assert match.player_configurations[0].variety.run_command == expected
    (folder / "script.toml").write_text(settings.replace("test/one", "test/script"))
    assert read(folder, cars + scripts).script_configurations[0].run_command == expected
    unclear = expected == "one.exe"
    assert ("one.bot.toml: run_command one.exe stands alone, and there is no wine" in caplog.text) is unclear
    caplog.clear()
    read(folder, cars + "auto_start = false\n")
    assert "wine" not in caplog.text


def test_a_file_that_is_not_there_or_no_match_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"none.toml: no such file"):
        read_match_file(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"expected a match file, .toml"):
        read_match_file(tmp_path / "match.json")
    (tmp_path / "latin.toml").write_bytes(b"name = '\xff\xfe'")
    with pytest.raises(ConfigError, match=r"latin.toml cannot be read: it is no UTF-8 text"):
        read_match_file(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("players", "message"),
    [
        ([], "the match has no cars"),
        ([flat.PlayerConfiguration(flat.Human(), 0)], "player 0 is a human"),
        ([flat.PlayerConfiguration(flat.PsyonixBot("x"), 0)], "player 0 is a Psyonix bot"),
        ([player(2)], "player 0 has team 2, expected 0"),
        ([player(0, agent_id=" ")], "no agent_id"),
        ([player(1) for _ in range(5)], "orange has 5 cars, expected at most 4"),
    ],
)
@pytest.mark.protocol("match.checks")
def test_players_without_a_seat_here_are_refused(players, message):
    with pytest.raises(ConfigError, match=message):
        seat_players(match_of(*players))


@pytest.mark.protocol("match.checks")
def test_two_scripts_with_the_same_id_are_refused():
    script = flat.ScriptConfiguration("Script", agent_id="test/script")
    match = match_of(player(0), script_configurations=[script, script])
    with pytest.raises(ConfigError, match="script 1 has agent_id 'test/script'"):
        seat_players(match)


@pytest.mark.protocol("handshake.ids-assigned", "handshake.names-unique")
def test_names_and_ids_are_unique_and_ids_lasting():
    cars = seat_players(match_of(player(0), player(0), player(1))).cars
    assert [car.name for car in cars] == ["Bot", "Bot (2)", "Bot (3)"]
    ids = [car.identifier for car in cars]
    assert len({0, *ids}) == 4
    assert ids == [car.identifier for car in seat_players(match_of(player(0), player(0), player(1))).cars]


ORANGE, BLUE = (f'[[cars]]\nteam = {team}\nconfig_file = "bots/one.bot.toml"\n' for team in (1, 0))
HUMAN = '[[cars]]\nteam = {}\ntype = "human"\n'
PSYONIX = '[[cars]]\nteam = "orange"\ntype = "psyonix"\nname = "One"\n'


@pytest.mark.parametrize(
    ("cars", "expected"),
    [
        ((ORANGE, BLUE, ORANGE), [("One", 1), ("One (2)", 0), ("One (3)", 1)]),
        ((ORANGE, HUMAN.format(0)), [("One", 1), ("Human", 0)]),
        ((HUMAN.format(0), ORANGE), [("One", 1), ("Human", 0)]),
        ((HUMAN.format(1), BLUE, ORANGE), [("One", 1), ("One (2)", 0), ("Human", 1)]),  # 0 and 2 change
        ((BLUE, HUMAN.format(0), ORANGE, BLUE), [("One", 0), ("One (2)", 0), ("One (3)", 1), ("Human", 0)]),
        (
            (BLUE, ORANGE, PSYONIX, HUMAN.format(0)),
            [("One", 0), ("One (2)", 1), ("One (3)", 1), ("Human", 0)],
        ),
    ],
)
@pytest.mark.protocol("match.order", "handshake.names-unique")
def test_players_have_the_order_and_names_of_rlbots_core(folder, cars, expected):
    (folder / "match.toml").write_text("".join(cars))
    read_from_file = read_match_file(folder / "match.toml", allow_idle=True)
    roster = seat_players(with_line_up(read_from_file, None, None, humans=True), allow_idle=True)
    assert [(car.name, car.team) for car in roster.cars] == expected
    assert [car.identifier == 0 for car in roster.cars] == [car.player == "human" for car in roster.cars]
    sent = flat.MatchConfiguration.unpack(roster.configuration.pack()).player_configurations
    assert [(getattr(one.variety, "name", "Human"), one.team) for one in sent] == expected
    assert [one.player_id for one in sent] == [car.identifier for car in roster.cars]


@pytest.mark.protocol("match.order")
def test_a_second_human_is_refused_and_both_are_named():
    human = flat.PlayerConfiguration(flat.Human(), 1)
    for refuse in (lambda match: seat_players(match, True), lambda match: with_line_up(match, None, None)):
        with pytest.raises(ConfigError, match="players 0 and 2 are humans, expected one at most"):
            refuse(match_of(human, player(0), flat.PlayerConfiguration(flat.Human(), 0)))
    with pytest.raises(ConfigError, match="player 2 has team 3"):  # its place in the file
        seat_players(match_of(human, player(0), player(3)), allow_idle=True)


@pytest.mark.protocol("handshake.names-unique")
def test_a_bot_finds_itself_by_name_whatever_the_names_are():
    given = ["Twin", "Twin (2)", "Twin", ""]
    roster = seat_players(match_of(*(player(index % 2, name=name) for index, name in enumerate(given))))
    names = [car.name for car in roster.cars]
    assert names == ["Twin", "Twin (2)", "Twin (3)", "test/ball"]
    assert [one.variety.name for one in roster.configuration.player_configurations] == names
    assert [car.name for car in seat_players(roster.configuration).cars] == names  # seated once more


@pytest.mark.protocol("handshake.names-unique")
def test_one_bot_object_in_two_cars_has_two_names():
    bot = player(0).variety
    match = match_of(flat.PlayerConfiguration(bot, 0), flat.PlayerConfiguration(bot, 1))
    sent = seat_players(match).configuration.player_configurations
    assert [one.variety.name for one in sent] == ["Bot", "Bot (2)"] and bot.name == "Bot"
    assert sent[1].variety.run_command == bot.run_command


@pytest.mark.protocol("handshake.names-unique")
def test_a_script_is_told_the_name_that_the_match_gives_it():
    scripts = [flat.ScriptConfiguration("Watch", agent_id=f"test/{number}") for number in range(2)]
    roster = seat_players(match_of(player(0), script_configurations=scripts))
    assert [script.name for script in roster.scripts] == ["Watch", "Watch (2)"]
    assert [one.name for one in roster.configuration.script_configurations] == ["Watch", "Watch (2)"]


@pytest.mark.parametrize("name", [name for name in flat.MutatorSettings().__match_args__ if name != "audio"])
def test_every_mutator_is_either_played_or_refused_by_its_name(name):
    settings = flat.MutatorSettings()
    setattr(settings, name, type(getattr(settings, name))(1))
    match = match_of(player(0), mutators=settings)
    try:
        check_rules(match)
    except ConfigError as error:
        assert f"mutator {name} is" in str(error)
    else:
        standard = match_of(player(0))
        assert (course_of(match), physics_of(match)) != (course_of(standard), physics_of(standard))
