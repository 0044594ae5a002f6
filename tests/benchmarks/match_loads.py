"""Measure what a match costs by its bots: `python -m tests.benchmarks.match_loads [CASE...]`.

Cases differ in the number of cars, in who wants the ball's prediction, in whether one process drives a
team, and in whether somebody watches. In lockstep the ticks a second count, in real time the late ones.
Processor time of the server and of all bots is taken from a time when all of them play.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil
from rlbot import flat

from rlgym_bridge.matches.lineup import empty_match, with_line_up
from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.result import MatchStatus
from rlgym_bridge.view.watch import Watch
from tests.support.processes import guard
from tests.support.stepped_match import player

_FIRST_TICKS: Final = 600  # of a match, which are left out: its bots have just begun


@dataclass(frozen=True)
class LoadCase:
    """A match to measure.

    Attributes:
        team_size: Cars of each team, all driven by Chaser but the readers'.
        readers: Cars, of blue first, of bots that read a whole prediction at every packet.
        hiveminds: Whether one process drives a team.
        watched: Whether Rerun shows the match while it is played.
    """

    team_size: int
    readers: int = 0
    hiveminds: bool = False
    watched: bool = False


CASES: Final = {
    "1v1": LoadCase(1),
    "1v1, prediction": LoadCase(1, readers=2),
    "1v1, watched": LoadCase(1, watched=True),
    "3v3": LoadCase(3),
    "3v3, hiveminds": LoadCase(3, hiveminds=True),
    "4v4": LoadCase(4),
    "4v4, 2 with prediction": LoadCase(4, readers=2),
    "4v4, watched": LoadCase(4, watched=True),
}


@dataclass
class LoadRow:
    """Figures of a match.

    Attributes:
        name: Of the case.
        ticks_per_second: From the first tick that counts on.
        server_us: Processor time of the server's process for a tick [us].
        bots_us: Processor time of all its child processes for a tick [us].
        late: Share of the ticks that the server sent late; 0 in lockstep.
        unanswered: Largest share of packets that a bot left unanswered in play.
    """

    name: str
    ticks_per_second: float
    server_us: float
    bots_us: float
    late: float
    unanswered: float


def match_of_case(case: LoadCase) -> flat.MatchConfiguration:
    """Return the match of a case."""
    chasers = ["chaser"] * case.team_size
    match = with_line_up(empty_match(), chasers, chasers)
    players = list(match.player_configurations)
    for number in range(case.readers):
        slot = number if case.readers < 2 * case.team_size else number % len(players)
        players[slot] = player(players[slot].team, "reader", f"Reader {number}")
    for one in players:
        if case.hiveminds and isinstance(one.variety, flat.CustomBot):
            one.variety.hivemind = True
    match.player_configurations = players
    return match


class _Clock:
    """Wall time and processor times since all play, taken at reports of the server."""

    def __init__(self) -> None:
        self.first: tuple[int, float, float, float] | None = None
        self.last: tuple[int, float, float, float] | None = None

    def take(self, status: MatchStatus) -> None:
        if status.ticks < _FIRST_TICKS:
            return
        bots = 0.0
        for process in psutil.Process().children(recursive=True):
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            bots += times.user + times.system
        self.last = (status.ticks, time.perf_counter(), time.process_time(), bots)
        if self.first is None:
            self.first = self.last

    def per_tick(self) -> tuple[float, float, float]:
        """Return ticks a second, and the server's and the bots' processor time for a tick [us]."""
        if self.first is None or self.last is None or self.last[0] == self.first[0]:
            raise ValueError("the match was too short, expected more seconds")
        ticks, seconds, server, bots = (b - a for a, b in zip(self.first, self.last, strict=True))
        return ticks / seconds, 1e6 * server / ticks, 1e6 * bots / ticks


def measure_match(name: str, pace: str, seconds: float) -> LoadRow:
    """Play the match of a case for some seconds of the game."""
    case, clock = CASES[name], _Clock()
    with ExitStack() as stack:
        watch = None
        if case.watched:
            watch = Watch("web")
            stack.callback(watch.close)
        server = stack.enter_context(
            MatchServer(pace=pace, seconds=seconds, max_overtime=0.0, on_progress=clock.take, watch=watch)
        )
        result = server.play(match_of_case(case))
    unanswered = max(bot.unanswered for bot in result.bots) / max(result.playing_ticks, 1)
    return LoadRow(name, *clock.per_tick(), result.server_late / result.ticks, unanswered)


def table_lines(rows: Sequence[LoadRow]) -> list[str]:
    """Return the rows as a table of Markdown."""
    lines = [
        "| match | ticks/s | server, us a tick | all bots, us a tick | late | unanswered |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row.name} | {row.ticks_per_second:,.0f} | {row.server_us:.0f} | {row.bots_us:.0f} "
            f"| {row.late:.2%} | {row.unanswered:.2%} |"
        )
    return lines


def main(words: Sequence[str] | None = None) -> int:
    """Measure the cases in turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {'; '.join(CASES)} (default: all)")
    parser.add_argument("--pace", choices=("lockstep", "realtime"), default="lockstep")
    parser.add_argument("--seconds", type=float, default=40.0, help="of each match (default: 40)")
    parser.add_argument("--rounds", type=int, default=1, help="of all matches (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows to FILE, as they come")
    options = parser.parse_args(words)
    for name in options.cases:
        if name not in CASES:
            parser.error(f"no case {name!r}, expected one of {'; '.join(CASES)}")
    guard()
    rows = []
    for _ in range(options.rounds):
        for name in options.cases or CASES:
            rows.append(measure_match(name, options.pace, options.seconds))
            print(table_lines(rows)[-1], file=sys.stderr, flush=True)
            if options.json is not None:
                options.json.write_text(json.dumps([asdict(row) for row in rows]) + "\n")
    print(f"{options.pace}, {options.seconds:g} s a match, {os.cpu_count()} cores")
    print("\n".join(table_lines(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
