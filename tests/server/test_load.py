"""Loads are measured, and a long match takes no more memory than a short one."""

import itertools
import math
import os
import sys
import tracemalloc

import numpy as np
import pytest

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.server.bot_account import BotAccount
from tests.support.stepped_match import seats
from tools import load_table
from tools.load_table import CASES, LoadRow, load_lines, match_lines, measure_load, watch_lines
from tools.loaded_server import lateness_ms
from tools.loads import LOADS
from tools.memory_use import MemoryUse, growth_an_hour, memory_of
from tools.memory_watch import watch_command

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


def test_replies_longer_than_a_second_count_as_a_second():
    account = replied(BotAccount(seats()[0]), itertools.repeat(7.0, 3000))
    assert account.reply_ms(50.0)[0] == pytest.approx(1000.0, abs=0.01)


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
def test_a_row_shows_memory_and_handles():
    use = memory_of(os.getpid())
    assert use.resident_mb >= use.mb > 1.0 and use.handles >= 3 and use.threads >= 1
    row = LoadRow("nobody", 120.0, 0.01, 0.1, 1.0, 2.5, use, use, use)
    *_, line = load_lines([row])
    assert line.startswith("| nobody | 120.0 | 1.00% | 0.10 / 1.00 / 2.50 |") and f"{use.mb:.1f}" in line
    assert match_lines([MemoryUse(40.0, 30.0, 60.0, 9, 3, 0)])[-1] == "| 1 | 40.0 | 9 | 3 | 0 |"


def test_a_server_that_hangs_ends_the_case(monkeypatch):
    monkeypatch.setattr(load_table, "_SPARE_SECONDS", 0.0)
    row = measure_load("nobody", 0.0)
    assert "ended before it listened" in row.error
    assert "FAILS" in load_lines([row])[-1]


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


def test_unknown_cases_are_refused(capsys):
    with pytest.raises(SystemExit):
        load_table.main(["nobodies"])
    assert set(LOADS) < set(CASES) and "no case ['nobodies']" in capsys.readouterr().err


@pytest.mark.slow
@needs_proc
def test_silent_clients_cost_handles_alone():
    row = measure_load("200 silent", 3.0)
    assert not row.error
    assert row.loaded.handles == row.before.handles + 200 and row.after.handles == row.before.handles
