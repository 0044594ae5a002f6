"""Loads and late ticks are measured, and a long match takes no more memory than a short one."""

import itertools
import json
import math
import sys
import tracemalloc

import numpy as np
import pytest

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.server.bot_account import BotAccount
from tests.support.processes import run_to_end
from tests.support.stepped_match import seats
from tools.late_causes import MACHINE, OURS, samples_of, watched_ticks
from tools.load_table import measure_load, watch_lines
from tools.loaded_server import lateness_ms
from tools.memory_use import growth_an_hour
from tools.memory_watch import watch_command
from tools.real_time import RealTimeRow, measure_round
from tools.thread_watch import ThreadSample

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the tools need Linux")
AT, OWN, PREEMPTED, BLOCKED, COLLECTING, IMPORTS, LOGGED = 0, 1, 3, 4, 5, 7, 8
SENT, WOKEN = 0, 1


def quiet_match(ticks: int = 30) -> np.ndarray:
    """Return samples of a match without a late tick: `(ticks, 2, fields)`."""
    pairs = np.zeros((ticks, 2, len(ThreadSample._fields)))
    pairs[:, SENT, AT] = np.arange(ticks) * TICK_SECONDS
    pairs[:, WOKEN, AT] = (np.arange(ticks) + 1) * TICK_SECONDS - 0.0002
    pairs[:, SENT, OWN] = np.arange(ticks) * 0.0006
    pairs[:, WOKEN, OWN] = pairs[:, SENT, OWN] + 0.0004
    return pairs


def spoilt(number: int, moment: int, field: int, amount: float, late: float = 0.004) -> np.ndarray:
    """Return a match in which a packet is late, and something happens before from a moment on."""
    pairs = quiet_match()
    pairs[number, SENT, AT] += late
    if moment == WOKEN:
        pairs[number - 1, WOKEN, field] += amount
        pairs[number:, :, field] += amount
    else:
        pairs[number:, :, field] += amount
    return pairs


def test_a_quiet_match_has_no_late_tick():
    ticks = watched_ticks(quiet_match(), 0.0)
    assert len(ticks.late) == 29 and not ticks.causes
    assert ticks.work == pytest.approx(np.full(29, 0.2), abs=1e-6)


@pytest.mark.parametrize(
    ("moment", "field", "amount", "cause"),
    [
        (WOKEN, IMPORTS, 1, "import"),
        (SENT, LOGGED, 1, "log record"),
        (SENT, COLLECTING, 0.003, "collection"),
        (SENT, OWN, 0.003, "own work"),
        (WOKEN, OWN, 0.003, "messages"),
        (SENT, BLOCKED, 1, "waited for the recorder"),
        (SENT, PREEMPTED, 1, "preempted"),
    ],
)
def test_a_late_tick_has_the_cause_that_is_in_it(moment, field, amount, cause):
    assert watched_ticks(spoilt(10, moment, field, amount), 0.0).causes == {cause: 1}
    assert cause in OURS or cause in MACHINE


def test_a_wait_that_ends_late_is_the_machines():
    pairs = quiet_match()
    pairs[9, WOKEN, AT] += 0.004
    pairs[10, SENT, AT] += 0.004
    assert watched_ticks(pairs, 0.0).causes == {"woken late": 1}


def test_a_tick_after_a_very_late_one_is_put_down_to_it():
    pairs = spoilt(10, SENT, PREEMPTED, 1, late=0.013)
    pairs[10, WOKEN, AT] += 0.007
    pairs[11, SENT, AT] += 0.007
    assert watched_ticks(pairs, 0.0).causes == {"preempted": 1, "the tick before": 1}


@needs_linux
def test_a_watch_counts_what_a_thread_does():
    code = """
import gc, json, logging
from tools.thread_watch import ThreadWatch
watch = ThreadWatch()
before = watch.read()
import wave
logging.getLogger("quiet").warning("a record")
gc.collect()
watch.note(before, watch.read())
print(json.dumps([list(watch.samples), watch.imported]))
"""
    samples, imported = json.loads(run_to_end([sys.executable, "-c", code], check=True).stdout)
    ((before, after),) = samples_of(samples)
    done = ThreadSample(*(after - before))
    assert "wave" in imported and done.imports >= 1
    assert (done.logged, done.oldest) == (1, 1) and done.collecting > 0.0 and done.own > 0.0


@needs_linux
def test_a_goal_and_a_demolition_import_nothing():
    code = """
import json
from rlgym_bridge.game import Phase
from tests.support.stepped_match import go_on, kicked_off, put_ball, put_car, to_phase
from tools.thread_watch import ThreadWatch
match = kicked_off()
watch = ThreadWatch()
put_car(match, 0, (0, -3000, 17), (0, 2300, 0), yaw=1.5708)
put_car(match, 1, (0, -2700, 17))
go_on(match, 60)
demolished = match.scores.demolitions[0]
put_ball(match, (0, 5000, 200), (0, 3000, 0))
to_phase(match, Phase.COUNTDOWN)
to_phase(match, Phase.KICKOFF)
print(json.dumps([demolished, list(match.referee.score), watch.imported]))
"""
    demolished, score, imported = json.loads(run_to_end([sys.executable, "-c", code], check=True).stdout)
    assert (demolished, sum(score)) == (1, 1) and not imported


@pytest.mark.slow
@needs_linux
@pytest.mark.parametrize("recorded", [False, True])
def test_in_play_nothing_is_imported_or_fully_collected(recorded):
    row = RealTimeRow(1, recorded)
    measure_round(row, 8.0, "chaser")
    assert not row.errors and len(row.sent) > 900
    assert not row.imported and row.oldest == 0


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


def replied(account, times):
    for seconds in times:
        account.reply(account.sent_at + seconds)
    return account


def test_an_hour_of_replies_takes_no_more_memory():
    account = BotAccount(seats()[0])
    replied(account, itertools.repeat(0.003, 2000))
    tracemalloc.start()
    try:
        replied(account, itertools.repeat(0.003, 140_000))  # 19 minutes
        assert tracemalloc.get_traced_memory()[0] < 50_000
    finally:
        tracemalloc.stop()
    assert account.reply_ms(50.0, 99.0) == pytest.approx((3.0, 3.0), abs=0.01)


def test_percentiles_of_many_replies_are_those_of_all():
    times = np.random.default_rng(0).gamma(2.0, 0.0005, 5000)
    account = replied(BotAccount(seats()[0]), times.tolist())
    expected = np.percentile(times, (50.0, 99.0)) * 1e3
    assert account.reply_ms(50.0, 99.0) == pytest.approx(expected, abs=0.02)
    assert account.reply_ms(50.0, latest=512)[0] == pytest.approx(np.median(times[-512:]) * 1e3, rel=1e-4)


def test_lateness_is_measured_from_the_schedule():
    times = np.arange(50) * TICK_SECONDS
    times[10] += 0.004
    late = lateness_ms(times)
    assert late[10] == pytest.approx(4.0) and np.delete(late, 10) == pytest.approx(np.zeros(49), abs=1e-9)


def test_time_that_is_given_up_is_not_late_any_more():
    times = np.arange(50) * TICK_SECONDS
    times[20:] += 1.0
    late = lateness_ms(times)
    assert late[20] == pytest.approx(1000.0) and late[21:] == pytest.approx(np.zeros(29), abs=1e-9)


def test_growth_is_that_of_the_later_half():
    minutes = list(range(21))
    megabytes = [200.0 if minute < 10 else 100.0 + minute / 30.0 for minute in minutes]
    assert growth_an_hour(minutes, megabytes) == pytest.approx(2.0)
    assert math.isnan(growth_an_hour([1.0], [50.0]))


@needs_proc
@pytest.mark.parametrize(
    ("code", "minutes", "ended"),
    [
        ("import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: pass", 0.02, "stopped"),
        ("import time\ntime.sleep(0.5)\nraise SystemExit(3)", 1.0, "exit code 3 before its time"),
    ],
)
def test_a_watched_command_is_ended_in_time(tmp_path, code, minutes, ended):
    reports = []
    command = [sys.executable, "-S", "-c", code]
    watch = watch_command("sleeper", command, tmp_path, minutes, 0.2, "child", reports.append)
    assert watch.ended == ended and reports
    assert watch_lines([watch])[-1].startswith("| sleeper | main |")


@pytest.mark.slow
@needs_proc
def test_silent_clients_cost_handles_alone():
    row = measure_load("200 silent", 3.0)
    assert not row.error
    assert row.loaded.handles == row.before.handles + 200 and row.after.handles == row.before.handles
