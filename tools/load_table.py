"""Measure how late and how large a match server gets under load: `python -m tools.load_table`.

Chaser plays itself in real time on a server in a process of its own, an observer counts packets, and other
processes load the server. Every case ends by itself.
"""

import argparse
import json
import math
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

from rlgym_bridge.game import Phase
from tests.support.processes import child, guard
from tools.loaded_server import LATE_MS, LoadedServer, chaser_match, lateness_ms, loaded_server
from tools.loads import LOADS
from tools.memory_use import MemoryUse
from tools.memory_watch import MemoryWatch, watch_match, watch_training

_BOTS: Final = "8 bots"
_IN_A_ROW: Final = "ten matches"
_WATCHED: Final = {"long match": watch_match, "trainer": watch_training}

CASES: Final = (*LOADS, _BOTS, _IN_A_ROW, *_WATCHED)
"""All cases; the last two take the minutes that are given."""

_SETTLE_SECONDS: Final = 2.0
_CONNECT_SECONDS: Final = 30.0
_GONE_SECONDS: Final = 15.0
_ERRORS: Final = (OSError, EOFError, ValueError, psutil.Error, subprocess.SubprocessError)
_LOOK_SECONDS: Final = 10.0  # between two looks at a long run
_SPARE_SECONDS: Final = 150.0  # of a case, beside what is measured: its processes start and end
_MATCH_SECONDS: Final = 3.0  # of game time, in a row


@dataclass
class LoadRow:
    """Measurements of a match under one load.

    Attributes:
        case: The load.
        packets_a_second: That the observer got.
        late: Share of packets that the server sent more than a quarter of a tick late.
        late_p50_ms: Median of how late they were sent [ms].
        late_p99_ms: 99th percentile [ms].
        late_max_ms: Largest [ms].
        before: The server before the load.
        loaded: The server at the load's end, while it goes on.
        after: The server after the load.
        error: Why there are no measurements; empty where there are.
    """

    case: str
    packets_a_second: float = math.nan
    late: float = math.nan
    late_p50_ms: float = math.nan
    late_p99_ms: float = math.nan
    late_max_ms: float = math.nan
    before: MemoryUse | None = None
    loaded: MemoryUse | None = None
    after: MemoryUse | None = None
    error: str = ""


def measure_load(case: str, seconds: float, team_size: int = 0) -> LoadRow:
    """Play a match under one load; an error ends up in the row."""
    row = LoadRow(case)
    try:
        with loaded_server(seconds + _SPARE_SECONDS, seconds=3600.0) as server:
            server.begin(chaser_match(team_size or (4 if case == _BOTS else 1)))
            _measure(row, server, seconds)
    except _ERRORS as error:
        row.error = f"{type(error).__name__}: {error}"
    return row


def _measure(row: LoadRow, server: LoadedServer, seconds: float) -> None:
    """Fill in a row of a match that is in play."""
    server.count(_SETTLE_SECONDS)
    row.before = server.memory
    load = row.case if row.case in LOADS else "nobody"
    command = [sys.executable, "-m", "tools.loads", load, str(server.port)]
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as crowd:
        assert crowd.stdout is not None
        deadline = time.monotonic() + _CONNECT_SECONDS
        while not select.select([crowd.stdout], [], [], 0.0)[0] and time.monotonic() < deadline:
            server.count(0.1)  # so that the observer's packets do not pile up
        server.count(_SETTLE_SECONDS)
        first = server.read_times()
        row.packets_a_second = server.count(seconds)
        last = server.read_times()
        row.loaded = server.memory
        if crowd.poll() is not None:
            row.error = "the server closed a connection of the load"
    late = lateness_ms(server.times)[first:last]
    row.late = float(np.mean(late > LATE_MS))
    row.late_p50_ms, row.late_p99_ms = (float(x) for x in np.percentile(late, (50, 99)))
    row.late_max_ms = float(late.max())
    deadline = time.monotonic() + _GONE_SECONDS  # what it has sent is taken in first
    while server.memory.handles > row.before.handles and time.monotonic() < deadline:
        server.count(0.5)
    row.after = server.memory


def measure_in_a_row(matches: int, used: list[MemoryUse]) -> None:
    """Play short matches, one after the other on one server; append what it uses after each."""
    limits = {"seconds": _MATCH_SECONDS, "max_kickoff": _MATCH_SECONDS, "max_overtime": 0.1}
    with loaded_server(matches * 60.0 + _SPARE_SECONDS, **limits) as server:
        for _ in range(matches):
            server.begin(chaser_match(1))
            server.watch_until(Phase.ENDED)
            server.stop_match()
            used.append(server.memory)


def load_lines(rows: Sequence[LoadRow]) -> list[str]:
    """Return the loads as a table of Markdown."""
    lines = [
        "| load | packets/s | late | lateness p50 / p99 / max, ms | memory before / loaded / after, MB | "
        "handles before / loaded / after |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        uses = [row.before, row.loaded, row.after]
        if any(use is None for use in uses):
            lines.append(f"| {row.case} | FAILS: {row.error} | - | - | - | - |")
            continue
        times = " / ".join(f"{x:.2f}" for x in (row.late_p50_ms, row.late_p99_ms, row.late_max_ms))
        memory = " / ".join(f"{use.mb:.1f}" for use in uses if use is not None)
        handles = " / ".join(str(use.handles) for use in uses if use is not None)
        note = f" ({row.error})" if row.error else ""
        lines.append(
            f"| {row.case}{note} | {row.packets_a_second:.1f} | {row.late:.2%} | {times} | {memory} "
            f"| {handles} |"
        )
    return lines


def match_lines(used: Sequence[MemoryUse]) -> list[str]:
    """Return what a server uses after each match, as a table of Markdown."""
    lines = ["| after match | memory, MB | handles | threads | child processes |", "|---|---|---|---|---|"]
    for number, use in enumerate(used, 1):
        lines.append(f"| {number} | {use.mb:.1f} | {use.handles} | {use.threads} | {use.children} |")
    return lines


def watch_lines(watches: Sequence[MemoryWatch]) -> list[str]:
    """Return how memory grew over time, as a table of Markdown."""
    lines = ["| run | process | minutes | first, MB | last, MB | growth, MB/h |", "|---|---|---|---|---|---|"]
    for watch in watches:
        for role, growth in watch.growth.items():
            seen = [(point["minute"], point[role]) for point in watch.points if role in point]
            (_, first), (minute, last) = seen[0], seen[-1]
            lines.append(
                f"| {watch.name} | {role} | {minute:.0f} | {first:.1f} | {last:.1f} | {growth:+.2f} |"
            )
    return lines


def main(words: Sequence[str] | None = None) -> int:
    """Measure cases and print their tables; return 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each load (default: 20)")
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="of long match and trainer (default: neither is run)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE, as it comes")
    options = parser.parse_args(words)
    if unknown := sorted(set(options.cases) - set(CASES)):
        parser.error(f"no case {unknown}, expected some of {list(CASES)}")
    cases = options.cases or [case for case in CASES if options.minutes or case not in _WATCHED]
    if set(cases) & set(_WATCHED) and not options.minutes:
        parser.error(f"{' and '.join(_WATCHED)} need --minutes")
    guard()
    rows: list[LoadRow] = []
    used: list[MemoryUse] = []
    watches: list[MemoryWatch] = []
    failed: list[str] = []

    def write(running: MemoryWatch | None = None) -> None:
        if options.json is None:
            return
        every = [*watches, *([] if running is None else [running])]
        found: dict[str, Any] = {
            "loads": [asdict(row) for row in rows],
            "matches": [asdict(use) for use in used],
            "watches": [watch.as_json() for watch in every],
        }
        part = options.json.with_name(options.json.name + ".part")
        part.write_text(json.dumps(found, indent=1) + "\n")
        part.replace(options.json)

    for case in cases:
        print(f"{time.strftime('%H:%M:%S')} {case}", file=sys.stderr, flush=True)
        if case in _WATCHED:
            with tempfile.TemporaryDirectory(prefix="load-", ignore_cleanup_errors=True) as folder:
                watches.append(_WATCHED[case](Path(folder), options.minutes, _LOOK_SECONDS, write))
        elif case == _IN_A_ROW:
            try:
                measure_in_a_row(10, used)
            except _ERRORS as error:
                failed.append(f"{case}: {type(error).__name__}: {error}")
        else:
            rows.append(measure_load(case, options.seconds))
        write()
    for lines in (load_lines(rows), match_lines(used), watch_lines(watches)):
        if len(lines) > 2:
            print("\n".join(lines), end="\n\n")
    failed += [f"{row.case}: {row.error}" for row in rows if row.error]
    failed += [f"{watch.name}: {watch.ended}" for watch in watches if watch.ended != "stopped"]
    for failure in failed:
        print(failure, file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
