"""Measure how late a match in real time is, against a bare timer: `python -m tools.real_time`.

A bot plays itself on a server in a process of its own. In the same seconds a bare timer sleeps as the
server's clock does and does nothing else; in the seconds after it, bare processes echo packets. For each late
tick of the server a cause is named: its own, or the machine's. Every run ends by itself.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.support.processes import child, guard, run_to_end
from tools.late_causes import MACHINE, OURS, samples_of, watched_ticks
from tools.loaded_server import LATE_MS

_FIRST_SECONDS: Final = 1.0  # of a match, which are left out: its bots have just begun
_SPARE_SECONDS: Final = 180.0  # of a run, beside what is measured: its processes start and end
_PACKET_BYTES: Final = {1: 990, 2: 1380, 3: 1770, 4: 2154}  # measured, by cars of a team


@dataclass
class RealTimeRow:
    """Measurements of one kind of match, of all rounds.

    Attributes:
        team_size: Cars of each team.
        recorded: Whether server and bots recorded it.
        timer: How late a bare timer woke [ms].
        woken: How late the server's clock woke [ms].
        sent: How late the server's packets were sent [ms].
        work: Processor time that the server took for a packet [ms].
        echoes: How long the answers of bare processes took, as many as bots [ms].
        replies: How long the bots' answers took [ms].
        bot_work: Processor time that a bot took for an answer [ms].
        causes: Of the late ticks, by cause.
        imported: Modules that server and bots imported in play.
        oldest: Collections of the oldest generation in play, of the server.
        errors: Why a run gave no measurements.
    """

    team_size: int
    recorded: bool
    timer: list[float] = field(default_factory=list)
    woken: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    echoes: list[float] = field(default_factory=list)
    replies: list[float] = field(default_factory=list)
    bot_work: list[float] = field(default_factory=list)
    causes: Counter[str] = field(default_factory=Counter)
    imported: list[str] = field(default_factory=list)
    oldest: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return what a line of the tables is called."""
        return f"{self.team_size}v{self.team_size}" + (", recorded" if self.recorded else "")


def measure_round(row: RealTimeRow, seconds: float, bot: str) -> None:
    """Play one match and add what is measured; an error ends up in the row."""
    python = [sys.executable, "-m"]
    try:
        with tempfile.TemporaryDirectory(prefix="real-time-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            settings = json.dumps(
                {
                    "seconds": seconds + _FIRST_SECONDS, "team_size": row.team_size, "bot": bot,
                    "record": row.recorded,
                }
            )  # fmt: skip
            limit = seconds + _SPARE_SECONDS
            timer_command = [*python, "tools.bare_timer", "wake", str(limit)]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            with child(timer_command, **pipes) as timer:
                command = [*python, "tools.watched_server", str(folder / "server.json"), settings]
                run_to_end(command, seconds=limit, check=True)
                wakes = np.array(json.loads(timer.communicate(timeout=limit)[0]))
            _add_match(row, folder, wakes)
        peers = str(2 * row.team_size), str(_PACKET_BYTES[row.team_size])
        command = [*python, "tools.bare_timer", "echo", str(0.5 * seconds), *peers]
        echoes = np.array(json.loads(run_to_end(command, seconds=limit, check=True).stdout))
        row.echoes += (1e3 * echoes[:, 1]).tolist()
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        row.errors.append(f"{type(error).__name__}: {error}")


def _add_match(row: RealTimeRow, folder: Path, wakes: np.ndarray) -> None:
    """Add a match that is over."""
    report = json.loads((folder / "server.json").read_text())
    pairs = samples_of(report["ticks"])
    begin, end = pairs[0, 0, 0] + _FIRST_SECONDS, pairs[-1, 1, 0]
    ticks = watched_ticks(pairs, begin)
    pairs = pairs[pairs[:, 0, 0] >= begin]
    row.sent += ticks.late.tolist()
    row.woken += ticks.woken.tolist()
    row.work += ticks.work.tolist()
    row.causes += ticks.causes
    row.timer += [1e3 * late for at, late in wakes.tolist() if begin <= at <= end]
    replies = np.array(report["replies"]).reshape(-1, 2)
    row.replies += (1e3 * replies[replies[:, 0] >= begin, 1]).tolist()
    row.oldest += int(pairs[-1, 1, 6] - pairs[0, 0, 6])
    row.imported += report["imported"][int(pairs[0, 0, 7]) : int(pairs[-1, 1, 7])]
    for number in range(2 * row.team_size):
        its = json.loads((folder / f"bot-{number}.json").read_text())
        answers = samples_of(its["answers"])
        answers = answers[answers[:, 0, 0] >= begin]
        row.bot_work += (1e3 * (answers[:, 1, 1] - answers[:, 0, 1])).tolist()
        row.imported += its["imported"][int(answers[0, 0, 7]) : int(answers[-1, 1, 7])]


def _spread(values: Sequence[float], *percentiles: float) -> str:
    if not values:
        return "-"
    return " / ".join(f"{value:.2f}" for value in (*np.percentile(values, percentiles), max(values)))


def _share(values: Sequence[float]) -> str:
    return f"{np.mean(np.array(values) > LATE_MS):.2%}" if values else "-"


def table_lines(rows: Sequence[RealTimeRow]) -> list[str]:
    """Return ticks, replies and causes as tables of Markdown."""
    lines = [
        "| match | ticks | late: timer / clock / packets | timer p50 / p99 / max, ms "
        "| clock p50 / p99 / max, ms | packets p50 / p99 / max, ms | work p50 / p99 / max, ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        shares = " / ".join(_share(values) for values in (row.timer, row.woken, row.sent))
        spreads = " | ".join(_spread(v, 50, 99) for v in (row.timer, row.woken, row.sent, row.work))
        lines.append(f"| {row.name} | {len(row.sent)} | {shares} | {spreads} |")
    lines += [
        "",
        "| match | replies | bare echo p50 / p99 / p99.9 / max, ms | reply p50 / p99 / p99.9 / max, ms "
        "| bot's work p50 / p99 / p99.9 / max, ms |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        spreads = " | ".join(_spread(v, 50, 99, 99.9) for v in (row.echoes, row.replies, row.bot_work))
        lines.append(f"| {row.name} | {len(row.replies)} | {spreads} |")
    names = [name for name in (*OURS, *MACHINE, "unknown") if any(row.causes[name] for row in rows)]
    lines += [
        "",
        f"| match | late ticks | {' | '.join(names)} | imports in play | full collections |",
        "|---" * (len(names) + 4) + "|",
    ]
    for row in rows:
        counts = " | ".join(str(row.causes[name]) for name in names)
        late = sum(row.causes.values())
        lines.append(f"| {row.name} | {late} | {counts} | {len(row.imported)} | {row.oldest} |")
    return lines


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print the tables; return 1 where a run failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each match (default: 20)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 4], choices=sorted(_PACKET_BYTES),
                        help="cars of a team (default: 1 4)")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=3, help="of all matches (default: 3)")
    parser.add_argument("--bot", default="chaser", help="BOT of both teams (default: chaser)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE, as it comes")
    options = parser.parse_args(words)
    guard()
    rows = [RealTimeRow(size, recorded) for size in options.sizes for recorded in (False, True)]
    for number in range(options.rounds):
        for row in rows:
            said = f"{time.strftime('%H:%M:%S')} round {number + 1} of {options.rounds}: {row.name}"
            print(said, file=sys.stderr, flush=True)
            measure_round(row, options.seconds, options.bot)
            if options.json is not None:
                options.json.write_text(json.dumps([vars(one) for one in rows]) + "\n")
    print("\n".join(table_lines(rows)))
    for row in rows:
        for error in row.errors:
            print(f"{row.name}: {error}", file=sys.stderr)
        if row.imported:
            print(f"{row.name}: imported in play: {' '.join(sorted(set(row.imported)))}", file=sys.stderr)
    return int(any(row.errors for row in rows))


if __name__ == "__main__":
    sys.exit(main())
