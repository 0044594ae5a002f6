"""The match command, as a user runs it."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from rlgym_bridge.cli import field_test, main
from rlgym_bridge.cli.commands import make_parser
from rlgym_bridge.cli.match_summary import progress_line
from rlgym_bridge.game import HITBOX_OF_BODY, HITBOXES, Phase
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.server import ConfigError, MatchStatus
from rlgym_bridge.server.lineup import empty_match, with_line_up
from rlgym_bridge.sim.rocketsim2 import RocketSim2
from rlgym_bridge.sim.simulator import simulator_for
from rlgym_bridge.state import MatchState
from rlgym_bridge.training.evaluate import play_matches
from rlgym_bridge.user_input.stop_signals import stopped_by_signals
from tests.support.policy_folders import network_folder, save
from tests.support.processes import child, run_to_end
from tests.support.servers import match_server
from tests.support.short_waits import shorten_answer_wait
from tests.support.simulators import needs_native

ROOT = Path(__file__).parents[2]
CHECKED = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
"""Lets `tests.support.checked_cli`, the command with a checker of its packets, run in any folder."""


SHORT = ("--pace", "lockstep", "--seconds", "1", "--max-overtime", "0")


def bridge(*words: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.checked_cli", *map(str, words)]
    return run_to_end(command, cwd=cwd, env={**CHECKED, **environment}, seconds=200)


Here = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Return what runs the command in this process, whose matches are checked as well."""

    def run(*words: str | Path, cwd: Path = ROOT, **environment: str) -> "subprocess.CompletedProcess[str]":
        monkeypatch.chdir(cwd)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        try:
            code = main([*map(str, words)])
        except SystemExit as ended:  # of argparse
            code = int(ended.code or 0)
        said = capsys.readouterr()
        return subprocess.CompletedProcess([*words], code, said.out, said.err)

    return run


def test_the_shipped_bots_play_to_a_score_with_all_keys(tmp_path: Path) -> None:
    done = bridge("match", ROOT / "rlbot.cfg", *SHORT, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "out.json").read_text())
    assert set(result) >= {"score", "winner", "overtime", "ticks", "seed", "recording", "bots"}
    assert result["winner"] in ("blue", "orange", "draw")
    assert result["ticks"] > 480 + 120
    assert [bot["team"] for bot in result["bots"]] == [0, 1]
    for bot in result["bots"]:
        assert set(bot) >= {"name", "team", "touches", "replies", "late", "missed", "reply_ms"}
        assert bot["replies"] == result["ticks"] and bot["late"] == 0 and bot["missed"] == 0
        assert 0 < bot["reply_ms"]["p50"] <= bot["reply_ms"]["p99"]
    assert f"blue {result['score'][0]} : {result['score'][1]} orange" in done.stdout
    _, why = simulator_for("Soccar")  # a sentence where the module of RocketSim 3 is not installed
    lines = done.stderr.splitlines()
    if why:
        assert lines.pop(0) == f"WARNING rlgym_bridge.server.net.hosted_match: {why}"
    assert [line.partition(":")[0] for line in lines] == ["started Bridge (blue)", "started Chaser (orange)"]
    for heading in ("touches", "boost used", "reply p50", "late", "missed"):
        assert heading in done.stdout


@pytest.mark.protocol("match.order")
def test_beside_a_human_every_bot_keeps_its_own_report(tmp_path: Path, here: Here) -> None:
    bots = ("--blue", "human", "chaser", "--orange", "charger", "chaser", "--allow-idle")
    done = here("match", *bots, *SHORT, "--json", "out.json", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    bots = json.loads((tmp_path / "out.json").read_text())["bots"]
    assert [(bot["name"], bot["team"]) for bot in bots] == [
        ("Chaser", 1), ("Chaser (2)", 0), ("Charger", 1), ("Human", 0)
    ]  # fmt: skip
    assert [bot["missed"] for bot in bots] == [0, 0, 0, None]


def test_the_line_of_a_match_says_whose_reply_times_it_shows() -> None:
    times = (0.21, 0.23, float("nan"), 0.18)
    status = MatchStatus(Phase.ACTIVE, (2, 1), 61.2, False, 900, 1234.5, (0, 0, 1, 1), times)
    expected = "2 : 1   1:02   play        1,234 ticks/s   reply ms: blue 0.23, orange 0.18"
    assert progress_line(status) == expected


def test_a_bot_that_cannot_start_is_named_with_what_it_said(tmp_path: Path, here: Here) -> None:
    (tmp_path / "bad.bot.toml").write_text(
        '[settings]\nagent_id = "t/bad"\nname = "Bad"\n'
        'run_command = "python -c \\"raise SystemExit(\'no brain\')\\""\n'
        'run_command_linux = "python -c \\"raise SystemExit(\'no brain\')\\""\n'
    )
    bots = ("--blue", "bad.bot.toml", "--orange", "chaser")
    done = here("match", *bots, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 1 and not (tmp_path / "out.json").exists()
    assert "'Bad' (agent_id 't/bad', blue) did not connect" in done.stderr
    assert "no brain" in done.stderr


def test_a_bot_of_others_that_fails_at_most_packets_is_named(
    tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_answer_wait(monkeypatch)
    script = ROOT / "tests" / "support" / "simple_bots.py"
    (tmp_path / "skip.bot.toml").write_text(
        f'[settings]\nagent_id = "test/skip"\nname = "Skipper"\nrun_command = "python \'{script}\' skip"\n'
        f"run_command_linux = \"python '{script}' skip\"\n"
    )
    bots = ("--blue", "skip.bot.toml", "--orange", "chaser")
    done = here("match", *bots, *SHORT, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "Skipper left " in done.stdout and "% of its packets unanswered, wrote" in done.stdout
    assert json.loads((tmp_path / "out.json").read_text())["bots"][0]["exceptions"] > 100


def test_a_match_can_be_played_on_a_server_of_its_own(tmp_path: Path, here: Here) -> None:
    served = tmp_path / "served.json"
    with match_server("--seconds", "1", "--max-overtime", "0", "--json", str(served)) as port:
        words = (ROOT / "rlbot.cfg", "--server", "rlbot", "--json", "out.json")
        done = here("match", *words, cwd=tmp_path, RLBOT_SERVER_PORT=str(port))
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["ticks"] > 480 + 120 and len(result["bots"]) == 2
    server = json.loads(served.read_text())
    assert server["port"] == port and server["matches"][0]["score"] == result["score"]
    assert 120 <= result["playing_ticks"] < result["ticks"] - 480


def test_a_bot_is_told_by_the_dialect_file_beside_its_bot_toml(tmp_path: Path, here: Here) -> None:
    (tmp_path / "mine").mkdir()
    for name in ("bot.py", "bot.toml", "loadout.toml"):
        (tmp_path / "mine" / name).write_text((ROOT / "bot" / name).read_text())
    (tmp_path / "mine" / "dialect.toml").write_text("[dialect]\npad_timer = 'remaining'\n")
    bots = ("--blue", "mine/bot.toml", "--orange", "chaser")
    done = here("match", *bots, *SHORT, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [bot["dialect_file"] for bot in json.loads((tmp_path / "out.json").read_text())["bots"]]
    assert told == [str(tmp_path / "mine" / "dialect.toml"), None]


@pytest.mark.slow
def test_a_dialect_file_counts_for_its_policy_folder_alone(tmp_path: Path, here: Here) -> None:
    folder = network_folder(tmp_path / "policy", team_size=1)
    (folder / "dialect.toml").write_text("[dialect]\npad_timer = 'remaining'\n[timing]\ninput_latency = 1\n")
    (tmp_path / "dialect.toml").write_text("[dialect]\npad_timer = 'sideways'\n")
    bots = ("--blue", "policy", "--orange", "chaser", "--dialect", "pad_timer=remaining")
    done = here("match", *bots, *SHORT, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"policy read the server's dialect from {folder / 'dialect.toml'}" in done.stdout
    result = json.loads((tmp_path / "out.json").read_text())
    assert [bot["dialect_file"] for bot in result["bots"]] == [str(folder / "dialect.toml"), None]
    (log,) = tmp_path.glob("logs/*/0-0-policy.log")
    assert "dialect.toml sets pad_timer=remaining, input_latency=1" in log.read_text()


@needs_native
def test_a_match_tells_how_often_a_forecast_was_wrong(tmp_path: Path, here: Here) -> None:
    (tmp_path / "mine").mkdir()
    for name in ("bot.py", "loadout.toml"):
        (tmp_path / "mine" / name).write_text((ROOT / "bot" / name).read_text())
    shutil.copytree(ROOT / "bot" / "policy", tmp_path / "mine" / "policy")
    settings = (ROOT / "bot" / "bot.toml").read_text().replace("[settings]", "[settings]\nforecast = 'auto'")
    (tmp_path / "mine" / "bot.toml").write_text(settings)
    words = ("--blue", "mine/bot.toml", "--orange", "chaser", *SHORT, "--latency", "6")
    done = here("match", *words, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Bridge looks 4 ticks ahead (input latency 6, measured): " in done.stdout
    ours, theirs = (bot["forecast"] for bot in json.loads((tmp_path / "out.json").read_text())["bots"])
    assert theirs is None and ours["forecasts"] > 20 and ours["ball"]["checked"] > 20
    assert ours["ball"]["share_off"] <= 0.1 and ours["car"]["mean_error_uu"] < 5
    bots = ("--blue", "chaser", "--orange", "chaser")
    done = here("match", *bots, *SHORT, cwd=tmp_path, RLGYM_BRIDGE_FORECAST="8")
    assert "Chaser does not look ahead: no state estimator follows the match, expected " in done.stdout


def test_a_port_in_use_is_said_to_be_in_use(here: Here) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = here("server", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "in use" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a process are POSIX's")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", pytest.param("SIGHUP", marks=pytest.mark.slow)])
def test_a_stopped_match_tells_its_score_and_ends_its_bots(
    name: str, tmp_path: Path, hangups_end_processes: None
) -> None:
    number = getattr(signal, name)
    recording = tmp_path / "match.mcap"
    words = ["match", str(ROOT / "rlbot.cfg"), "--json", "out.json", "--record", str(recording)]
    with child(
        [sys.executable, "-m", "tests.support.checked_cli", *words], cwd=tmp_path, env=CHECKED,
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as match:  # fmt: skip
        assert match.stdout is not None
        assert "0 : 0" in match.stdout.readline()
        bots = psutil.Process(match.pid).children(recursive=True)
        assert bots
        if name == "SIGINT":  # a terminal's goes to all processes of the command
            os.killpg(match.pid, number)
        else:
            match.send_signal(number)
        out, _ = match.communicate(timeout=60)
        assert match.returncode == 1
        assert not any(bot.is_running() and bot.status() != psutil.STATUS_ZOMBIE for bot in bots)
    assert "stopped" in out and "touches" in out and "left before the end" not in out
    assert json.loads((tmp_path / "out.json").read_text())["ended_by"] == "stopped"
    assert [path.name for path in tmp_path.glob("*.mcap*")] == [recording.name]
    assert recording.read_bytes().endswith(b"\x89MCAP0\r\n")


IMPATIENT = """
import signal, subprocess, sys, time
from rlgym_bridge.user_input.stop_signals import stopped_by_signals
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
with stopped_by_signals(lambda: print("stopping", flush=True)):
    print(child.pid, flush=True)
    time.sleep(600)
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a process are POSIX's")
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once_and_leaves_no_process(second: int) -> None:
    with child(
        [sys.executable, "-c", IMPATIENT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as program:
        started = psutil.Process(int(program.stdout.readline()))  # in a session of its own, as bots are
        program.send_signal(signal.SIGINT)
        assert program.stdout.readline() == "stopping\n"
        program.send_signal(second)
        program.send_signal(second)  # whoever is impatient
        out, errors = program.communicate(timeout=30)
    assert (program.returncode, out, errors) == (1, "", "")
    _, alive = psutil.wait_procs([started], timeout=10)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="a terminal of POSIX is closed")
def test_a_command_under_nohup_goes_on_without_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stopped: list[bool] = []
    try:
        with stopped_by_signals(lambda: stopped.append(True)):
            os.kill(os.getpid(), signal.SIGHUP)
        assert not stopped
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with stopped_by_signals(lambda: stopped.append(True)):
            os.kill(os.getpid(), signal.SIGHUP)
        assert stopped == [True]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_unwritable_output_is_refused_before_the_match(tmp_path: Path, here: Here) -> None:
    done = here("match", "rlbot.cfg", "--json", tmp_path / "none" / "x.json")
    assert done.returncode == 2 and str(tmp_path / "none" / "x.json") in done.stderr
    assert "started" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_match_with_unwritable_json_shows_its_result(tmp_path: Path, here: Here) -> None:
    bots = ("--blue", "chaser", "--orange", "chaser")
    done = here("match", *bots, *SHORT, "--json", "/dev/full", cwd=tmp_path)
    assert done.returncode == 2 and "touches" in done.stdout
    assert "/dev/full: No space left on device" in done.stderr


ONE_AGAINST_TWO = "".join(
    f'[[cars]]\nteam = "{team}"\nconfig_file = "{(ROOT / "bot" / name).as_posix()}"\n'
    for team, name in [("blue", "bot.toml"), ("orange", "chaser.bot.toml"), ("orange", "chaser.bot.toml")]
)


@pytest.mark.parametrize("pace", ["lockstep", pytest.param("realtime", marks=pytest.mark.slow)])
def test_a_bot_toml_that_does_not_fit_calls_the_match_off(pace: str, tmp_path: Path) -> None:
    (tmp_path / "match.toml").write_text(ONE_AGAINST_TWO)
    words = ("match.toml", "--pace", pace, "--record", "match.mcap", "--json", "out.json")
    done = bridge("match", *words, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "'Bridge' was trained for 1v1, 2v2, 3v3, this match is 1v2" in error
    assert "Traceback" not in done.stderr and "0 : 0" not in done.stdout
    assert not (tmp_path / "out.json").exists()
    assert not list(tmp_path.glob("*.mcap"))


def test_on_another_server_it_calls_the_match_off_as_well(tmp_path: Path, here: Here) -> None:
    (tmp_path / "match.toml").write_text(ONE_AGAINST_TWO)
    with match_server() as port:
        done = here("match", "match.toml", "--server", "rlbot", cwd=tmp_path, RLBOT_SERVER_PORT=str(port))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "'Bridge' was trained for 1v1, 2v2, 3v3, this match is 1v2" in done.stderr


@pytest.mark.parametrize(("trained", "played"), [(1, 2), (2, 1)])
def test_a_misfit_is_refused_with_the_way_to_play_it(
    trained: int, played: int, tmp_path: Path, here: Here
) -> None:
    network_folder(tmp_path / "R", team_size=trained)
    done = here("match", "--blue", *["R"] * played, "--orange", *["chaser"] * played, cwd=tmp_path)
    assert done.returncode == 2
    assert f"was trained for {trained}v{trained}, this match is {played}v{played}" in done.stderr
    advice = re.search(r"change the number of cars, such as (.*), or train one with", done.stderr)
    assert advice and advice[1] == f"--blue{' R' * trained} --orange{' chaser' * trained}"
    if trained == 1:  # one of the two is played
        assert here("match", *advice[1].split(), *SHORT, cwd=tmp_path).returncode == 0


def test_the_match_of_a_field_test_has_its_dialect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[list[str]] = []

    def play(options: Namespace) -> int:
        played.append(options.dialect)
        found = {"score": [1, 0], "playing_ticks": 120, "ended_by": "time", "bots": []}
        Path(options.json).write_text(json.dumps(found))
        return 0

    monkeypatch.setattr("rlgym_bridge.cli.match.run", play)
    options = make_parser("field-test").parse_args(["--dialect", "clock=whole", "--seconds", "1"])
    assert field_test._play_match(options, tmp_path / "match.mcap").score == (1, 0)
    assert played == [["clock=whole"]]


def test_a_report_without_faults_hides_no_traceback(tmp_path: Path, here: Here) -> None:
    (tmp_path / "bot.toml").write_text(
        f"[settings]\nname = 'Liar'\nagent_id = 'me/liar'\nrun_command = '{sys.executable} bot.py'\n"
        f"run_command_linux = '{sys.executable} bot.py'\n"
    )
    (tmp_path / "bot.py").write_text(
        "import sys\nfrom rlgym_bridge import play\n"
        "print('Traceback (most recent call last):', flush=True)\n"
        "sys.exit(play('chaser', agent_id='me/liar'))\n"
    )
    done = here("match", "--blue", "bot.toml", "--orange", "chaser", *SHORT, cwd=tmp_path)
    assert done.returncode == 1 and "Liar wrote 1 traceback" in done.stdout


@pytest.mark.parametrize(
    ("mode", "place"), [("Heatseeker", (1000.0, 2220.0, 93.0)), ("Snowday", (0.0, 0.0, 33.0))]
)  # in Soccar it plays above
def test_the_shipped_bot_plays_in_every_mode(
    mode: str, place: tuple[float, float, float], tmp_path: Path, here: Here
) -> None:
    text = f'[match]\ngame_mode = "{mode}"\ngame_map_upk = "Stadium_P"\nskip_replays = true\n'
    (tmp_path / "match.toml").write_text(text)
    bots = ("--blue", ROOT / "bot" / "policy", "--orange", "chaser")
    files = ("--json", "out.json", "--record", "match.mcap")
    done = here("match", "match.toml", *bots, *SHORT, *files, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["playing_ticks"] >= 120
    for bot in result["bots"]:
        assert bot["replies"] == result["ticks"]
        assert not (bot["exceptions"] or bot["missed"] or bot["crashed"])
    recording = read_match(tmp_path / "match.mcap", shadow=False)
    assert recording.mode == mode
    ball = np.abs(recording.state.ball_position[0])
    np.testing.assert_allclose(ball, np.abs(place), atol=2.0)  # the mode's kickoff, or its mirror image
    moved = np.linalg.norm(recording.state.car_position[-1] - recording.state.car_position[0], axis=-1)
    assert (moved > 500.0).all()


@pytest.mark.parametrize("hitbox", [box.name for box in HITBOXES])
def test_a_policy_drives_the_hitbox_it_was_trained_with(hitbox: str, tmp_path: Path) -> None:
    save(tmp_path, hitbox=hitbox)
    match = with_line_up(empty_match(), [str(tmp_path)], ["chaser"])
    loadout = match.player_configurations[0].variety.loadout
    body = 0 if loadout is None else loadout.car_id
    assert HITBOXES[HITBOX_OF_BODY.get(body, 0)].name == hitbox


def test_evaluation_gives_it_that_hitbox_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, hitbox="merc")
    seen, put = [], RocketSim2.put

    def spied(self: RocketSim2, matches: Any, wanted: MatchState) -> None:
        seen.append(wanted.car_hitbox.copy())
        put(self, matches, wanted)

    monkeypatch.setattr(RocketSim2, "put", spied)
    play_matches("chaser", tmp_path, 1, seconds=1, simulator="rocketsim2")
    names = [[HITBOXES[int(number)].name for number in row] for row in seen[0]]
    assert names == [["octane", "merc"]]


def name_of(policy: Path) -> str:
    """Return the name of a policy in a match against Chaser."""
    match = with_line_up(empty_match(), [str(policy)], ["chaser"])
    return match.player_configurations[0].variety.name


def test_the_folder_of_a_run_stands_for_its_newest_checkpoint(tmp_path: Path) -> None:
    for steps in (90, 100):
        save(tmp_path / "checkpoints" / str(steps))
    assert name_of(tmp_path) == f"{tmp_path.name} 100"
    (tmp_path / "checkpoints" / "latest").write_text("90\n")
    assert name_of(tmp_path / "checkpoints" / "latest") == f"{tmp_path.name} 90"
    with pytest.raises(ConfigError, match="expected a policy folder, a run"):
        with_line_up(empty_match(), [str(tmp_path / "checkpoints" / "none")], ["chaser"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_a_policys_manifest_is_named(tmp_path: Path) -> None:
    save(tmp_path)
    (tmp_path / "policy.json").unlink()
    os.mkfifo(tmp_path / "policy.json")
    with pytest.raises(ConfigError, match=r"policy\.json cannot be read: it is a named pipe"):
        with_line_up(empty_match(), [str(tmp_path)], ["chaser"])


def test_a_bots_own_policy_has_the_name_of_the_bot(tmp_path: Path) -> None:
    save(tmp_path / "policy")
    for text, name in (('[settings]\nname = "Bridge"\n', "Bridge"), ("[settings", "policy"), ("", "policy")):
        (tmp_path / "bot.toml").write_text(text)
        assert name_of(tmp_path / "policy") == name
