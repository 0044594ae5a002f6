"""A late tick is put down to what happened in it, and nothing of the server's own happens in play."""

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from rlgym_bridge.game import TICK_SECONDS
from tests.support.processes import child, run_to_end
from tools.late_causes import MACHINE, OURS, samples_of, watched_ticks
from tools.real_time import RealTimeRow, measure_round, table_lines
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


def test_ticks_of_the_first_moments_are_left_out():
    pairs = spoilt(10, SENT, OWN, 0.003)
    assert not watched_ticks(pairs, 20 * TICK_SECONDS).causes


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


def test_tables_show_every_match_and_only_causes_that_were():
    row = RealTimeRow(4, True, timer=[0.1, 3.0], woken=[0.1, 0.2], sent=[0.5, 2.5], work=[0.4, 0.5])
    row.replies, row.causes = [0.3, 2.0], Counter(preempted=1)
    lines = "\n".join(table_lines([row]))
    assert "| 4v4, recorded | 2 | 50.00% / 0.00% / 50.00% |" in lines
    assert "| preempted |" in lines and "own work |" not in lines


@needs_linux
def test_a_bare_timer_ends_when_its_input_is_closed():
    command = [sys.executable, "-m", "tools.bare_timer", "wake", "60"]
    with child(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as timer:
        out, _ = timer.communicate(timeout=30.0)
    assert isinstance(json.loads(out), list)


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
