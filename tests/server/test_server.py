"""Whole matches with real bot processes over TCP."""

import json
import logging
import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.live.agent_connections import AgentConnections
from rlgym_bridge.server import ConfigError, MatchCalledOff, MatchServer, match_server
from rlgym_bridge.server.net.hosted_match import HostedMatch
from rlgym_bridge.server.net.wire import is_this_machine
from tests.support.processes import run_to_end
from tests.support.serving import serve, start, wait_for
from tests.support.short_waits import shorten_answer_wait, shorten_farewell
from tests.support.stepped_match import HERE, match_of, player, result_of


@pytest.fixture(autouse=True)
def logs_of_bots_in_the_tests_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(autouse=True)
def goodbyes_are_short(monkeypatch):
    shorten_farewell(monkeypatch)


def lockstep(**settings):
    return MatchServer(pace="lockstep", **settings)


def no_bots_running():
    """Tell whether none of the bots of this test runs any more; other workers play matches, too."""
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    running = []
    for process in psutil.process_iter(["cmdline"]):
        with suppress(psutil.Error):  # it ended meanwhile
            if "simple_bots.py" in (process.info["cmdline"] or []):
                running.append(process.environ().get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0])
    return test not in running


@pytest.mark.protocol("transport.root-tables", "match.processes")
def test_two_rlbot_bots_play_a_match_to_its_end(tmp_path):
    packets, stati = [], []
    result = result_of(
        match_of(player(0, name="A"), player(1, name="B")), seed=3, seconds=6.0, max_overtime=6.0,
        on_packet=packets.append, on_progress=stati.append, log_dir=tmp_path,
    )  # fmt: skip
    phases = [int(flat.CorePacket.unpack(one).message.match_info.match_phase) for one in packets]
    assert phases[:480] == [Phase.COUNTDOWN] * 480
    assert (phases[480], phases[-1]) == (Phase.KICKOFF, Phase.ENDED)
    assert result.ticks == len(packets) > 480 + 6 * 120
    assert result.ended_by in ("time", "overtime goal", "max overtime: draw")
    assert (result.winner == "draw") == (result.score[0] == result.score[1])
    assert (result.seed, result.server_late) == (3, 0)
    for index, bot in enumerate(result.bots):
        assert (bot.index, bot.team, bot.name, bot.agent_id) == (index, index, "AB"[index], "test/ball")
        assert (bot.connected, bot.crashed, bot.exit_code) == (True, False, None)
        assert (bot.replies, bot.late, bot.dropped_messages) == (result.ticks, 0, 0)
        assert 0.0 < bot.reply_p50_ms <= bot.reply_p99_ms
        assert bot.touches > 0
        assert bot.boost_used > 10.0
        assert Path(bot.log_path).is_file()
    assert stati[-1].ticks <= result.ticks
    assert no_bots_running()


@pytest.mark.protocol("steady.rate")
@pytest.mark.usefixtures("short_countdowns")
def test_in_real_time_ticks_are_due_120_times_a_second():
    result = result_of(match_of(player(0), player(1)), pace="realtime", max_kickoff=0.5)
    # Never ahead of time; how far behind it may fall is the machine's affair, and that of `make bench`.
    assert result.seconds >= 0.99 * result.ticks / 120
    assert all(bot.replies > 0.5 * result.ticks for bot in result.bots)


RUN = """
import hashlib, json, sys
from rlbot import flat
from rlgym_bridge.server import MatchServer
from tests.support.stepped_match import match_of, player
from tests.support.watched_matches import watching
sha = hashlib.sha256()
mutators = flat.MutatorSettings(boost_amount=flat.BoostAmountMutator.UnlimitedBoost)
match = match_of(*[player(team, "ram") for team in (0, 0, 1, 1)], mutators=mutators)
with watching() as watch, MatchServer(pace="lockstep", seed=int(sys.argv[1]), seconds=20.0,
                                      max_overtime=5.0, on_packet=sha.update) as server:
    result = server.play(match)
watch.check()
print(json.dumps([sha.hexdigest(), result.ticks, sum(bot.demolitions for bot in result.bots)]))
"""


def play_elsewhere(seed):
    root = HERE.parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = run_to_end([sys.executable, "-c", RUN, str(seed)], cwd=root, env=environment, seconds=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow  # `test_seeded_lockstep_runs_lose_the_same_packets` plays in this process
def test_two_processes_send_the_same_packets_of_a_seeded_2v2():
    first = play_elsewhere(seed=5)
    assert first[2] >= 2  # demolitions
    assert play_elsewhere(seed=5) == first


@pytest.mark.protocol("match.crash")
@pytest.mark.usefixtures("short_countdowns")
def test_a_bot_that_crashes_is_reported_and_its_car_idles():
    inputs = []

    def note(payload):
        packet = flat.CorePacket.unpack(payload).message
        if packet.match_info.frame_num > 200:
            inputs.append(packet.players[0].last_input.throttle)

    match = match_of(player(0, "crash", "Poor"), player(1))
    result = result_of(match, seconds=3.0, max_overtime=0.1, max_kickoff=10.0, on_packet=note)
    poor, other = result.bots
    assert (poor.connected, poor.crashed, poor.exit_code) == (False, True, 3)
    assert "out of luck" in poor.log_tail and set(inputs) == {0.0}
    assert (other.crashed, other.late) == (False, 0)
    assert other.replies == result.ticks > 60 + 360
    assert result.ended_by != "no bots left"


@pytest.mark.usefixtures("short_countdowns")
def test_a_bot_that_takes_half_a_second_to_end_has_an_exit_code():
    result = result_of(match_of(player(0, "slow"), player(1)), seconds=3.0, max_overtime=0.1)
    assert (result.bots[0].crashed, result.bots[0].exit_code) == (True, 3)


@pytest.mark.usefixtures("short_countdowns")
def test_what_a_bot_left_unanswered_and_raised_is_counted(monkeypatch):
    shorten_answer_wait(monkeypatch, 0.6)  # longer than a busy machine holds up the other bot
    result = result_of(match_of(player(0, "skip", "Skipper"), player(1)), max_kickoff=1.5)
    skipper, other = result.bots
    # the countdown does not count; on a busy machine each answer may come too late
    assert 0.85 < skipper.unanswered / result.playing_ticks <= 1.0
    assert skipper.exceptions > 10  # each packet that it reads raises one; a busy machine lets it read few
    assert skipper.troubles[0].endswith("% of its packets unanswered") and len(skipper.troubles) == 2
    assert (other.troubles, other.unanswered) == ((), 0)
    assert "list index out of range" in Path(skipper.log_path).read_text()


@pytest.mark.usefixtures("short_countdowns")
def test_a_match_without_any_bot_left_ends():
    result = result_of(match_of(player(0, "crash"), player(1, "crash")), seconds=60.0)
    assert result.ended_by == "no bots left"
    assert all(bot.crashed for bot in result.bots)


@pytest.mark.usefixtures("short_countdowns")
def test_controls_that_are_no_numbers_are_dropped_and_counted():
    match = match_of(player(0, "nan"), player(1))
    result = result_of(match, seconds=3.0, max_overtime=0.1, max_kickoff=10.0)
    assert result.bots[0].invalid_inputs == pytest.approx(result.ticks / 2, abs=2)
    assert (result.bots[0].late, result.bots[1].invalid_inputs) == (0, 0)


@pytest.mark.timeout(60)  # a wait for each tick would take many minutes
@pytest.mark.usefixtures("short_countdowns")
def test_a_bot_that_never_answers_costs_three_waits(monkeypatch):
    shorten_answer_wait(monkeypatch, 1.5)  # a busy machine holds up the other bot for longer than 0.3 s
    match = match_of(player(0, "silent"), player(1))
    result = result_of(match, seconds=2.0, max_overtime=0.1, max_kickoff=10.0)
    silent, other = result.bots
    assert (silent.replies, silent.late) == (0, result.ticks)
    assert other.late == 0


LONG = 600.0  # s, longer than a test may take
LEFT_RUNNING = {"run_command": "python simple_bots.py sleep &"}  # for a POSIX shell
LAST_WORDS = ("exit code 7", "no such model: weights.safetensors", "python simple_bots.py exit")


@pytest.mark.parametrize(
    ("bot", "timeout", "said"),
    [
        (player(1, "exit", "Gone"), LONG, ["'Gone' (agent_id 'test/exit', orange) did not con", *LAST_WORDS]),
        (player(1, "done", "Done"), LONG, ["'Done'", "ended with exit code 0", "nothing to do"]),
        pytest.param(player(1, name="Left", **LEFT_RUNNING), 1.0, ["'Left'", "did not connect"],
                     marks=pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")),
        (player(1, "sleep", "Asleep"), 1.0, ["'Asleep'", "did not connect within 1 s"]),
        (player(1, "unready"), 4.0, ["'Bot'", "did not say that it is ready within 4 s"]),
        pytest.param(player(1, run_command=""), 0.2, ["you start this bot by hand"],
                     marks=pytest.mark.protocol("match.by-hand")),
        (player(1, root_dir=str(HERE / "nowhere")), 20.0, ["cannot be started: ", "nowhere"]),
    ],
)  # fmt: skip
def test_a_bot_that_does_not_come_is_named_with_the_reason(bot, timeout, said):
    with pytest.raises(MatchCalledOff) as error:
        result_of(match_of(bot), connect_timeout=timeout)
    assert not [words for words in said if words not in str(error.value)], str(error.value)
    assert no_bots_running()


@pytest.mark.protocol("match.processes", "handshake.names-unique")
@pytest.mark.usefixtures("short_countdowns")
def test_a_hivemind_drives_both_cars_from_one_process(tmp_path):
    hive = [player(0, "hive", "Hive", hivemind=True) for _ in range(2)]
    match = match_of(*hive, player(1), player(1))
    result = result_of(match, seconds=2.0, max_overtime=0.1, log_dir=tmp_path)
    assert [bot.replies for bot in result.bots] == [result.ticks] * 4
    assert [bot.name for bot in result.bots] == ["Hive", "Hive (2)", "Bot", "Bot (2)"]
    assert result.bots[0].log_path == result.bots[1].log_path


@pytest.mark.protocol("match.environment")
def test_bots_are_given_their_environment_and_this_python(tmp_path):
    (tmp_path / "tell.py").write_text(
        "import os, sys\n"
        "print(sys.executable, os.environ['RLBOT_AGENT_ID'], os.environ['RLBOT_SERVER_IP'],"
        " os.environ['RLBOT_SERVER_PORT'], os.environ['MODEL'], os.getcwd())\n"
        "sys.exit(9)\n"
    )
    bot = player(
        0, run_command="python tell.py", root_dir=str(tmp_path),
        environment=[flat.EnvironmentVariable("MODEL", "best")],
    )  # fmt: skip
    with lockstep() as server:
        with pytest.raises(MatchCalledOff) as error:
            server.play(match_of(bot))
        port = server.port
    told = f"test/ball 127.0.0.1 {port} best {tmp_path}"
    assert told in str(error.value)
    assert str(Path(sys.executable).parent) in str(error.value)


def test_bots_are_ended_when_the_match_is_interrupted():
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        result_of(match_of(player(0), player(1)), on_progress=interrupt)
    assert no_bots_running()


def test_a_stopped_match_ends_its_bots_and_keeps_its_result(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with lockstep(on_progress=lambda _: server.stop()) as server:
        result = server.play(match_of(player(0), player(1)))
    assert not list(tmp_path.iterdir()) and [bot.log_path for bot in result.bots] == [None, None]
    assert no_bots_running()
    assert result.ended_by == "stopped" and result.ticks > 1


def test_who_stops_the_match_owes_no_answer_to_its_last_packet():
    agents = ("us/blue", "us/orange")
    players = [
        flat.PlayerConfiguration(flat.CustomBot(one, agent_id=one), team) for team, one in enumerate(agents)
    ]
    match = flat.MatchConfiguration(
        player_configurations=players,
        mutators=flat.MutatorSettings(),
    )
    results = []
    with lockstep() as server:
        thread = threading.Thread(target=lambda: results.append(server.play(match)), daemon=True)
        thread.start()
        seats = AgentConnections((server.host, server.port), agents, patience=10.0)
        for _ in range(5):
            assert seats.packets(10.0)
            seats.answer([flat.PlayerInput(index) for index in range(2)])
        assert seats.packets(10.0)
        seats.stop_match()
        seats.close()
        thread.join(10.0)
    (result,) = results
    assert [(bot.replies, bot.late) for bot in result.bots] == [(5, 0), (5, 0)]


def test_impossible_rules_are_refused_before_anything_starts():
    with pytest.raises(ConfigError, match="game_mode is Hoops"):
        result_of(match_of(player(0), game_mode=flat.GameMode.Hoops))


@pytest.mark.parametrize(
    ("seconds", "message"),
    [(1e308, r"expected 86400 \(a day\) at most"), (-1.0, "expected seconds, 0 or more")],
)
def test_a_playing_time_that_no_clock_can_count_is_refused(seconds, message):
    with pytest.raises(ValueError, match=message):
        MatchServer(seconds=seconds)


@pytest.fixture
def serving(caplog):
    """A server that serves for ever in a thread of its own."""
    caplog.set_level(logging.INFO)
    with serve(seconds=2.0, max_kickoff=2.0, max_overtime=0.1) as manager:
        yield manager


def goes_on(manager):
    """Play another match on a server, with a car that nobody drives."""
    start(manager, match_of(player(0, run_command=""), wait_for_agents=False), "Bot")


@pytest.fixture
def open_to_others(monkeypatch):
    """Have servers take their address for one that other machines reach; tests stay on this machine."""
    monkeypatch.setattr(match_server, "is_this_machine", lambda address: False)


@pytest.mark.protocol("match.no-wait")
def test_where_others_can_connect_no_command_is_run(open_to_others, serving, caplog, tmp_path):
    command = f"{sys.executable} -c \"open('ran', 'w')\""
    bots = (player(0, run_command=command, root_dir=str(tmp_path)), player(1, run_command=""))
    start(serving, match_of(*bots, wait_for_agents=False), "Bot", "Bot (2)")
    assert "bots of the match are not started" in caplog.text
    wait_for(lambda: serving.packet.match_info.frame_num > 30)  # it was played without them
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("address", "runs"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
    ],
)
def test_commands_are_run_where_this_machine_alone_connects(address, runs):
    assert is_this_machine(address) == runs


@pytest.mark.protocol("match.start-configuration", "match.stop")
def test_the_official_manager_starts_stops_and_starts_again(serving, caplog):
    for number in (1, 2):
        serving.packet = None  # that of the match before would do at once
        start(serving, match_of(player(0), player(1)), "Bot", "Bot (2)")
        wait_for(lambda: serving.packet.match_info.frame_num > 30)
        serving.stop_match()
        wait_for(lambda number=number: caplog.text.count("match over (stopped)") == number)
        assert no_bots_running()


@pytest.mark.protocol("match.end-closes-nothing")
@pytest.mark.usefixtures("short_countdowns")
def test_an_ended_match_says_so_120_times_a_second(serving):
    start(serving, match_of(player(0)), "Bot")
    wait_for(lambda: serving.packet.match_info.match_phase == flat.MatchPhase.Ended)
    first, started = serving.packet.match_info.frame_num, time.perf_counter()
    time.sleep(1.0)
    rate = (serving.packet.match_info.frame_num - first) / (time.perf_counter() - started)
    assert 80 < rate < 130


@pytest.mark.protocol("match.invalid")
def test_a_bad_start_is_logged_and_leaves_the_match_alone(serving, caplog, tmp_path):
    (tmp_path / "nested.toml").write_text("a=" + "{a=" * 3000)
    human = flat.MatchConfiguration(player_configurations=[flat.PlayerConfiguration(flat.Human(), 0)])
    bad = [flat.StartCommand(str(tmp_path / name)) for name in ("none.toml", "nested.toml")] + [human]
    said = ("none.toml: no such file", "it is nested more than 100 levels deep", "player 0 is a human")
    for played in (False, True):
        caplog.clear()
        for one in bad:
            serving.rlbot_interface.send_msg(one)
        wait_for(lambda: all(words in caplog.text for words in said))
        if not played:
            start(serving, match_of(player(0), player(1)), "Bot", "Bot (2)")
            wait_for(lambda: serving.packet.match_info.frame_num > 30)
    frame = serving.packet.match_info.frame_num
    wait_for(lambda: serving.packet.match_info.frame_num > frame + 60)
    assert len(serving.packet.players) == 2 and "match over" not in caplog.text


@pytest.mark.parametrize("place", ["__init__", "gather", "run", "end"])
def test_an_unexpected_error_costs_a_match_not_the_server(place, serving, caplog, monkeypatch):
    original = getattr(HostedMatch, place)

    def failing(self, *words, **named):
        monkeypatch.setattr(HostedMatch, place, original)
        original(self, *words, **named)
        raise ZeroDivisionError(f"planted in {place}")

    monkeypatch.setattr(HostedMatch, place, failing)
    serving.start_match(match_of(player(0)), wait_for_start=False, ensure_server_started=False)
    wait_for(lambda: serving.packet is not None or "planted" in caplog.text)
    serving.stop_match()
    wait_for(lambda: f"ZeroDivisionError: planted in {place}" in caplog.text)
    serving.packet = None
    goes_on(serving)


@pytest.mark.parametrize(
    "order",
    [
        flat.StartCommand("x\0.toml"),
        match_of(player(0, root_dir="x\0")),
        match_of(player(0, name="n" * 300)),
    ],
    ids=["NUL in a path", "NUL in a folder", "a name too long for a file"],
)
def test_whatever_a_client_orders_the_server_stays(serving, order):
    serving.rlbot_interface.send_msg(order)
    time.sleep(0.5)
    serving.rlbot_interface.stop_match()
    serving.packet = None
    goes_on(serving)


@pytest.mark.parametrize("field", ["root_dir", "run_command", "name", "agent_id"])
def test_a_folder_whose_name_is_no_utf_8_is_refused(field: str, tmp_path: Path) -> None:
    folder = os.fsdecode(b"/home/me/b\xff\xfet")
    match = match_of(player(0, **{field: folder}), player(1))
    with pytest.raises(ConfigError, match=rf"{field} of a bot is b'/home/me/b\\xff\\xfet', expected UTF-8"):
        result_of(match, log_dir=tmp_path)
    assert not [*tmp_path.iterdir()]
