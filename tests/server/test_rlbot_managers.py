"""Every public method of rlbot's Python classes works on the match server, or the page says why not."""

import inspect
import json
import re
import stat
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from rlbot import flat
from rlbot.managers import Bot, Hivemind, MatchManager, Renderer, Script

from rlgym_bridge.game import HITBOXES
from rlgym_bridge.recording.mcap.channels import COMMS, DRAWINGS
from rlgym_bridge.recording.mcap.mcap_reader import read_contents
from rlgym_bridge.recording.mcap.mcap_writer import Recorder
from rlgym_bridge.server import MatchServer
from tests.support.documentation import ROOT
from tests.support.serving import wait_for
from tests.support.stepped_match import match_of, player

PAGE = ROOT / "docs/reference/rlbot-python.md"
WHOLE = ROOT / "tests/support/whole_bots.py"
CLASSES: tuple[type, ...] = (Bot, Hivemind, Script, MatchManager, Renderer)


def methods(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, inspect.isroutine) if not name.startswith("_")}


def table() -> dict[str, dict[str, str]]:
    """Return what the page says of each method, by class and method."""
    told: dict[str, dict[str, str]] = {}
    for names, listed, verdict in re.findall(
        r"^([^|\n]+) \| ([^|\n]+) \| ([^|\n]+)$", PAGE.read_text(), re.MULTILINE
    ):
        for kind in re.findall(r"`(\w+)`", names):
            told.setdefault(kind, {}).update(dict.fromkeys(re.findall(r"`(\w+)`", listed), verdict))
    return told


def test_every_public_method_of_rlbots_classes_is_in_the_table() -> None:
    assert {kind: set(rows) for kind, rows in table().items()} == {
        kind.__name__: methods(kind) for kind in CLASSES
    }
    verdicts = {verdict for rows in table().values() for verdict in rows.values()}
    assert all(re.match(r"yes\b|not: .", verdict) for verdict in verdicts)


class Played:
    """A match of a bot and a hivemind against another bot, with a script, that call all they can."""

    def __init__(self, folder: Path) -> None:
        results = {kind: folder / f"{kind}.json" for kind in ("bot", "hive", "script")}
        variables = [flat.EnvironmentVariable(f"RESULT_{kind}", str(path)) for kind, path in results.items()]

        def command(kind: str) -> dict[str, Any]:
            return {
                "run_command": f"'{sys.executable}' '{WHOLE}' {kind}", "agent_id": f"test/whole-{kind}",
                "name": kind.capitalize(), "environment": variables,
            }  # fmt: skip

        hive = [player(1, **command("hive"), hivemind=True) for _ in range(2)]
        script = flat.ScriptConfiguration(root_dir=str(folder), **command("script"))
        match = match_of(
            player(0, **command("bot")), *hive, enable_state_setting=True, script_configurations=[script],
            enable_rendering=flat.DebugRendering.OnByDefault,
        )  # fmt: skip
        recorder = Recorder(folder / "match.mcap", {})
        # In lockstep nobody waits for scripts, which may miss what they act on.
        with MatchServer(max_kickoff=1.0, log_dir=folder, recorder=recorder) as server:
            self.result = server.play(match)
        recorder.close()
        self.told = {kind: json.loads(path.read_text()) for kind, path in results.items()}
        self.recorded = read_contents(folder / "match.mcap")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return Played(tmp_path_factory.mktemp("whole"))


def test_clients_call_every_method_of_theirs_but_one(played: Played) -> None:
    for kind, told in played.told.items():
        calls = told["calls"]
        assert calls.pop("set_game_state") == "TypeError"  # rlbot 2.0.0b56's own
        assert calls.pop("is_rendering") == "True" and calls.pop("ball_prediction") == "720"
        assert calls.pop("initialize") == {
            "bot": "Bot 0 0 34", "hive": "['Hive', 'Hive (2)'] 1 [1, 2] 34", "script": "Script 0 34"
        }[kind]  # fmt: skip
        assert set(calls.values()) == {"done"} and len(calls) > 15
    drawn = {name for name in methods(Renderer) if not name.startswith("create") and name != "context"}
    assert drawn - set(played.told["bot"]["calls"]) == {"is_rendering"}


def test_what_they_said_drew_and_drove_arrived(played: Played) -> None:
    said = {kind: {display for *_, display in told["heard"]} for kind, told in played.told.items()}
    everybody = {f"{kind} says" for kind in said}
    assert said == {kind: everybody - {f"{kind} says"} for kind in said}
    assert len(played.recorded.topics[COMMS]) == 3
    assert len(played.recorded.topics[DRAWINGS]) >= 2 * 3
    assert not any(bot.crashed for bot in played.result.bots)
    last = flat.CorePacket.unpack(played.recorded.topics["/packets"][-1].content).message
    assert isinstance(last, flat.GamePacket)
    lengths = {round(box.length, 3): box.name for box in HITBOXES}
    hitboxes = [lengths[round(car.hitbox.length, 3)] for car in last.players]
    assert hitboxes == ["dominus", "breakout", "merc"]


@pytest.mark.skipif(sys.platform == "win32", reason="starts a file with a shebang")
def test_a_manager_starts_finds_and_stops_the_server(tmp_path: Path) -> None:
    server = tmp_path / "rlgym-server"
    server.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from rlgym_bridge.cli import serve\nsys.exit(serve())\n"
    )
    server.chmod(server.stat().st_mode | stat.S_IXUSR)
    first, second = MatchManager(server), MatchManager(server)
    first.ensure_server_started()
    started = first.rlbot_server_process
    assert isinstance(started, psutil.Process)
    try:
        port = first.rlbot_server_port
        wait_for(lambda: port in {one.laddr.port for one in psutil.net_connections("tcp") if one.laddr})
        second.ensure_server_started()  # finds the one that runs
        assert second.rlbot_server_port == port
        second.start_match(match_of(player(0), player(1)), wait_for_start=False)
        wait_for(lambda: second.packet is not None and second.packet.match_info.frame_num > 10)
        second.shut_down()
        wait_for(lambda: not started.is_running() or started.status() == psutil.STATUS_ZOMBIE)
    finally:
        for one in [started, *started.children(recursive=True)] if started.is_running() else ():
            one.kill()


@pytest.mark.usefixtures("short_countdowns")
def test_two_servers_play_at_once(tmp_path: Path) -> None:
    with (
        MatchServer(pace="lockstep", seconds=0.5, max_overtime=0.1, log_dir=tmp_path / "a") as one,
        MatchServer(pace="lockstep", seconds=0.5, max_overtime=0.1, log_dir=tmp_path / "b") as other,
    ):
        assert one.port != other.port
        for server in (one, other):
            assert server.play(match_of(player(0), player(1))).ended_by.startswith(("time", "max"))
