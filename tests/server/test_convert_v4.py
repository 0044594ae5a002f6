"""Files of RLBot v4 become files that RLBot v5 reads, and every key is accounted for."""

import configparser
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from rlbot.config import load_match_config, load_player_config, load_player_loadout

from rlgym_bridge.cli import main
from rlgym_bridge.server import ConfigError, read_match_file
from rlgym_bridge.server.bot_files import Source
from rlgym_bridge.server.convert_v4 import Converted, convert

ROOT = Path(__file__).parents[2]
MATCH = """
[RLBot Configuration]
launcher_preference = epic
[Match Configuration]
num_participants = 3
game_mode = Hockey
game_map = Mannfield
enable_lockstep = False
existing_match_behavior = Continue And Spawn
[Mutator Configuration]
Match Length = Unlimited
Boost Amount = Recharge (slow)
[Participant Configuration]
participant_config_0 = ..\\bots\\Ace\\ace.cfg
participant_loadout_config_0 = looks.cfg
participant_type_1 = human
participant_team_1 = 1
participant_type_2 = psyonix
participant_bot_skill_2 = 1.0
participant_config_7 = left/over.cfg
[Scripts]
script_config_0 = drill.cfg
"""
BOT = """
[Locations]
looks_config = ./ace_looks.cfg
python_file = src\\ace.py
name = Ace "the" Bot
supports_early_start = True
[Details]
developer = Jo
description = flies
 and dribbles
github = https://example.org/ace
tags = 1v1, teamplay
[Bot Parameters]
aggression = 0.5
"""
LOOKS = """
[Bot Loadout]
car_id = 23
decal_id = 6083
primary_color_lookup = None
[Bot Loadout Orange]
car_id = 403
[Bot Paint Blue]
car_paint_id = 12
"""


def converted(folder: Path, text: str, name: str = "old.cfg") -> Converted:
    (folder / name).write_text(text, encoding="utf-8")
    return convert(Source(folder / name))


def keys_of(text: str) -> set[str]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    return {key for section in parser.sections() for key in parser[section]}


@pytest.mark.parametrize("text", [MATCH, BOT, LOOKS], ids=["match", "bot", "loadout"])
def test_every_key_is_translated_or_named(text, tmp_path):
    found = converted(tmp_path, text)
    translated, left = dict(found.translated), dict(found.left_out)
    assert set(translated) | set(left) == keys_of(text)
    assert not set(translated) & set(left)
    assert all(left.values())
    assert left.get("participant_config_7") == ("num_participants is 3" if text == MATCH else None)
    tomllib.loads(found.text)


def test_a_match_keeps_its_players_rules_and_map(tmp_path):
    match: Any = tomllib.loads(converted(tmp_path, MATCH).text)
    assert match["rlbot"] == {"launcher": "Epic"}
    assert match["match"] == {
        "game_mode": "Snowday", "game_map_upk": "EuroStadium_P",
        "existing_match_behavior": "ContinueAndSpawn",
    }  # fmt: skip
    assert match["mutators"] == {"match_length": "Unlimited", "boost_amount": "SlowRecharge"}
    assert match["cars"] == [
        {"type": "rlbot", "config_file": "../bots/Ace/ace.bot.toml", "loadout_file": "looks.toml"},
        {"type": "human", "team": 1},
        {"type": "psyonix", "skill": "AllStar"},
    ]
    assert match["scripts"] == [{"config_file": "drill.toml"}]


SKILL, DRIVER, RULE = (
    "participant_bot_skill_2 = 1.0",
    "participant_type_1 = human",
    "Match Length = Unlimited",
)


@pytest.mark.parametrize(
    ("line", "value", "place", "expected"),
    [
        (SKILL, "0.0", ("cars", 2, "skill"), "Rookie"),
        (SKILL, "0.5", ("cars", 2, "skill"), "Pro"),
        (SKILL, "0.9", ("cars", 2, "skill"), "AllStar"),
        (DRIVER, "controller_passthrough", ("cars", 1, "type"), "human"),
        (DRIVER, "party_member_bot", ("cars", 1, "type"), "rlbot"),
        (RULE, "Demolish = On Contact (FF)", ("mutators", "demolish"), "OnContactFf"),
        (RULE, "Max Score = 0", ("mutators", "max_score"), "Unlimited"),
        (RULE, "Boost Strength = 1.0", ("mutators", "boost_strength"), "One"),
        (RULE, "Respawn Time = 3", ("mutators", "respawn_time"), "ThreeSeconds"),
    ],
)
def test_values_of_all_versions_are_translated(line, value, place, expected, tmp_path):
    new = value if " = " in value else f"{line.partition(' = ')[0]} = {value}"
    found: Any = tomllib.loads(converted(tmp_path, MATCH.replace(line, new)).text)
    for key in place:
        found = found[key]
    assert found == expected


def test_rlbots_own_reader_skips_the_countdown_too(tmp_path):
    text = "[Match Configuration]\nstart_without_countdown = True\nskip_replays = True\n"
    found = converted(tmp_path, f"{text}num_participants = 0\n[Participant Configuration]\n")
    (tmp_path / "new.toml").write_text(found.text, encoding="utf-8")
    theirs = load_match_config(tmp_path / "new.toml")
    assert theirs.instant_start and theirs.skip_replays
    assert tomllib.loads(found.text)["match"]["start_without_countdown"]  # as RLBot's core reads it
    (tmp_path / "cores.toml").write_text("[match]\nstart_without_countdown = true\n")
    for name in ("new.toml", "cores.toml"):
        assert read_match_file(tmp_path / name, cars_follow=True).instant_start


def test_the_shipped_match_reads_alike_before_and_after(tmp_path):
    shutil.copytree(ROOT / "bot", tmp_path / "bot")
    shutil.copy(ROOT / "rlbot.cfg", tmp_path)
    assert main(["convert", str(tmp_path / "rlbot.cfg"), "-q"]) == 0
    before, after = (read_match_file(tmp_path / f"rlbot.{kind}") for kind in ("cfg", "toml"))
    theirs = load_match_config(tmp_path / "rlbot.toml")  # RLBot's own reader
    for ours in (after, theirs):
        assert (ours.game_map_upk, ours.game_mode) == (before.game_map_upk, before.game_mode)
        assert ours.mutators.pack() == before.mutators.pack()
        assert [(one.team, one.variety.agent_id) for one in ours.player_configurations] == [
            (one.team, one.variety.agent_id) for one in before.player_configurations
        ]


def test_rlbots_own_readers_take_a_bot_and_its_loadout(tmp_path):
    for name, text in (("ace.cfg", BOT), ("ace_looks.cfg", LOOKS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert main(["convert", str(tmp_path / name), "-q"]) == 0
    player = load_player_config(tmp_path / "ace.bot.toml", 1)
    assert isinstance(player.variety.name, str) and player.variety.name == 'Ace "the" Bot'
    assert player.variety.agent_id == "jo/ace-the-bot"
    assert player.variety.loadout.car_id == 403
    blue = load_player_loadout(tmp_path / "ace_looks.toml", 0)
    assert (blue.car_id, blue.decal_id, blue.loadout_paint.car_paint_id) == (23, 6083, 12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[Wheels]\na = 1\n", "has none of the sections"),
        ("no section", "no valid cfg file"),
        ("[Bot Loadout]\ncar_id = fennec\n", "which RLBot v4 does not know"),
        (MATCH.replace("Hockey", "Chess"), "'Chess', which RLBot v4 does not know; expected one of soccer, "),
        (MATCH.replace("num_participants = 3", "num_participants = 1000000"), "from 0 to 64"),
        (MATCH.replace("human", "alien"), "expected one of rlbot, party_member_bot, human"),
        (MATCH.replace("num_participants = 3", "num_participants = " + "9" * 900), "from 0 to 64"),
        (MATCH.replace("skill_2 = 1.0", "skill_2 = nan"), "which RLBot v4 does not know"),
        (LOOKS.replace("6083", "4294967296"), "which RLBot v4 does not know"),
    ],
    ids=["other", "broken", "number", "mode", "crowd", "kind", "digits", "nan", "vast"],
)
def test_what_cannot_be_translated_is_named(text, said, tmp_path):
    with pytest.raises(ConfigError) as error:
        converted(tmp_path, text)
    assert said in str(error.value) and "old.cfg" in str(error.value)


@pytest.mark.parametrize("is_link", [False, True])
def test_no_file_that_is_there_is_replaced(is_link, tmp_path, capsys):
    (tmp_path / "looks.cfg").write_text(LOOKS)
    new = tmp_path / "looks.toml"
    new.symlink_to(tmp_path / "elsewhere") if is_link else new.write_text("mine")
    assert main(["convert", str(tmp_path / "looks.cfg")]) == 2
    assert "is there already, expected a new file" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists() and (is_link or new.read_text() == "mine")


def test_a_bot_names_the_file_that_is_still_to_be_converted(tmp_path, capsys):
    (tmp_path / "ace.cfg").write_text(BOT)
    assert main(["convert", str(tmp_path / "ace.cfg")]) == 0
    assert "not there yet: ace_looks.toml; convert the .cfg" in capsys.readouterr().out
    (tmp_path / "ace.bot.toml").unlink()
    (tmp_path / "ace_looks.toml").write_text("")
    assert main(["convert", str(tmp_path / "ace.cfg")]) == 0
    assert "not there yet" not in capsys.readouterr().out


FIRST = "[Participant Configuration]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FIRST + "a = 1\n" * 20_000, r"has 120,028 characters, expected .* of 65,536 at most"),
        (FIRST + "a" + " " * 60_000 + "b\n", r"old.cfg:2: the line has 60,002 characters, expected 1,000"),
    ],
    ids=["file", "line"],
)
@pytest.mark.parametrize("read", [read_match_file, lambda path: convert(Source(path))])
def test_what_would_take_minutes_to_read_is_refused(read, text, said, tmp_path):
    (tmp_path / "old.cfg").write_text(text)
    with pytest.raises(ConfigError, match=said):
        read(tmp_path / "old.cfg")


def test_no_section_repeats_the_keys_of_another(tmp_path):
    keys = "".join(f"{key:x} = \n" for key in range(500))
    sections = "".join(f"[{name:x}]\n" for name in range(450))
    assert len(converted(tmp_path, f"{FIRST}[DEFAULT]\n{keys}{sections}").left_out) == 500


@pytest.mark.parametrize("text", [MATCH, BOT])
def test_a_file_with_paths_is_written_where_they_hold(text, tmp_path, capsys, monkeypatch):
    (tmp_path / "v4").mkdir()
    (tmp_path / "v4" / "old.cfg").write_text(text)
    assert main(["convert", str(tmp_path / "v4" / "old.cfg"), "--out", str(tmp_path / "new.toml")]) == 2
    assert "new.toml, expected a file in the folder of" in capsys.readouterr().err
    assert not (tmp_path / "new.toml").exists()
    monkeypatch.chdir(tmp_path / "v4")  # the same folder by another name
    assert main(["convert", str(tmp_path / "v4" / "old.cfg"), "--out", "new.toml", "-q"]) == 0


def test_a_loadout_has_no_paths_and_may_be_written_anywhere(tmp_path):
    (tmp_path / "v4").mkdir()
    (tmp_path / "v4" / "looks.cfg").write_text(LOOKS)
    words = [str(tmp_path / "v4" / "looks.cfg"), "--out", str(tmp_path / "looks.toml"), "-q"]
    assert main(["convert", *words]) == 0 and (tmp_path / "looks.toml").is_file()
