"""Play equal matches in lockstep again and again, and compare their packets and recordings.

`python -m tools.determinism [CASE...] [--repeats N] [--seconds S] [--busy]` prints a row for each
case. A match that differs has to name a reason in its result. With `--busy` every match but the first of a
case runs beside busy processes, twice as many as there are cores.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any, Final

from rlbot import flat

from rlgym_bridge.live.play import SEED_VARIABLE
from rlgym_bridge.recording.mcap.channels import PACKETS
from rlgym_bridge.recording.mcap.mcap_reader import Contents, read_contents
from rlgym_bridge.server import Impairments, MatchServer
from rlgym_bridge.server.lineup import empty_match, with_environment, with_line_up
from tests.support.processes import child, run_to_end

POLICY: Final = str(Path(__file__).parents[1] / "bot" / "policy")
_SEED: Final = 3
_PERFECT: Final = Impairments()
_MATCH_SECONDS: Final = 900.0  # a match that takes longer is stopped
_PAUSED_AT: Final = 600  # packets
_BUSY: Final = "import time\nend = time.monotonic() + 900\nwhile time.monotonic() < end: pass"


@dataclass(frozen=True)
class Case:
    """A match to be played several times.

    Attributes:
        blue: Policies of blue, see `with_line_up`.
        orange: Policies of orange.
        recorded: Play it by the command line and record it, every third time without a recording.
        hiveminds: Let one process drive all cars of a team.
        by_hand: Start the bots by hand, in another order each time.
        paused: Seconds for which the first bot's process is stopped in all repetitions but the first.
        pace: The server's pace.
        impairments: Imperfections of the connection.
    """

    blue: Sequence[str]
    orange: Sequence[str]
    recorded: bool = False
    hiveminds: bool = False
    by_hand: bool = False
    paused: float = 0.0
    pace: Any = "lockstep"
    impairments: Impairments = _PERFECT


CASES: Final = {
    "1v1": Case([POLICY], ["chaser"], recorded=True),
    "3v3": Case(["chaser"] * 3, ["chaser"] * 3, recorded=True),
    "hiveminds 2v2": Case(["chaser"] * 2, ["chaser"] * 2, hiveminds=True),
    "by hand 1v1": Case([POLICY], ["chaser"], by_hand=True),
    "by hand 3v3": Case(["chaser"] * 3, ["chaser"] * 3, by_hand=True),
    "latency": Case([POLICY], ["chaser"], impairments=Impairments(latency=6)),
    "loss": Case([POLICY], ["chaser"], impairments=Impairments(drop=5.0)),
    "bursts": Case([POLICY], ["chaser"], impairments=Impairments(burst=4)),
    "all, 3v3": Case(
        ["chaser"] * 3, ["chaser"] * 3, impairments=Impairments(latency=2, drop=5.0, burst=2, fps=60)
    ),
    "paused 2 s": Case([POLICY], ["chaser"], by_hand=True, paused=2.0),
    "jitter": Case([POLICY], ["chaser"], pace="realtime", impairments=Impairments(jitter=10.0)),
}


@dataclass(frozen=True)
class Played:
    """A match that was played.

    Attributes:
        packets: Its packets, in order.
        unrepeatable: See `MatchResult`.
        contents: Its recording; None without one.
    """

    packets: Sequence[bytes]
    unrepeatable: Sequence[str]
    contents: Contents | None = None


def first_difference(first: Contents, second: Contents) -> str | None:
    """Return where two recordings differ first but for arrival times; None where they are equal."""
    for field in sorted({*first.about, *second.about}):
        if first.about.get(field) != second.about.get(field):
            return f"about the match: {field}"
    if list(first.topics) != list(second.topics):
        return f"topics: {sorted({*first.topics} ^ {*second.topics}) or 'their order'}"
    found = []
    for topic, messages in first.topics.items():
        ours, theirs = (
            sorted((one.frame, one.content) for one in each) for each in (messages, second.topics[topic])
        )
        if ours == theirs:
            continue
        place = _first_unequal(ours, theirs)
        found.append((min(each[place][0] for each in (ours, theirs) if place < len(each)), topic))
    return None if not found else "tick {:,}, topic {}".format(*min(found))


def compare(first: Played, second: Played) -> str | None:
    """Return where two matches differ first; None where they are equal."""
    if first.packets != second.packets:
        return f"packet {_first_unequal(first.packets, second.packets):,}"
    if first.contents is None or second.contents is None:
        return None
    return first_difference(first.contents, second.contents)


def _first_unequal(first: Sequence[Any], second: Sequence[Any]) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(first), len(second)))


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep `count` processes busy until the block is left."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(child([sys.executable, "-c", _BUSY]))
        yield


def play_recorded(case: Case, seconds: int, file: Path) -> Played:
    """Play a match by the command line and read its recording."""
    words = ["match", "--blue", *case.blue, "--orange", *case.orange, "--pace", case.pace, "--seconds"]
    words += [str(seconds), "--max-overtime", "0", "--seed", str(_SEED), "-q", "--record", str(file)]
    command = [sys.executable, "-m", "rlgym_bridge.cli", *words]
    run_to_end(command, seconds=_MATCH_SECONDS, check=True, cwd=file.parent)
    contents = read_contents(file)
    packets = [message.content for message in contents.topics[PACKETS]]
    return Played(packets, contents.about.get("unrepeatable", ()), contents)


def play_here(case: Case, seconds: int, number: int) -> Played:
    """Play a match with a server in this process; `number` decides the order of bots started by hand."""
    match = with_line_up(empty_match(), case.blue, case.orange)
    with_environment(match, [{SEED_VARIABLE: str(_SEED)}] * len(match.player_configurations))
    if case.hiveminds:
        for player in match.player_configurations:
            player.variety.hivemind = True
    match.auto_start_agents = not case.by_hand
    packets: list[bytes] = []
    bots: list[Popen[Any]] = []

    def keep(packet: bytes) -> None:
        packets.append(packet)
        if case.paused and number and len(packets) == _PAUSED_AT:
            threading.Thread(target=_pause, args=(bots[0], case.paused), daemon=True).start()

    server = MatchServer(
        pace=case.pace, seed=_SEED, seconds=seconds, max_overtime=0.0, allow_clients=case.by_hand,
        on_packet=keep, impairments=case.impairments,
    )  # fmt: skip
    limit = threading.Timer(_MATCH_SECONDS, server.stop)
    limit.daemon = True
    with ExitStack() as stack:
        stack.enter_context(server)
        if case.by_hand:
            players = list(match.player_configurations)
            random.Random(number).shuffle(players)
            bots += [stack.enter_context(_started(player, server.port)) for player in players]
        limit.start()
        try:
            result = server.play(match)
        finally:
            limit.cancel()
    if result.ended_by == "stopped":
        raise TimeoutError(f"a match took longer than {_MATCH_SECONDS:g} s")
    return Played(packets, result.unrepeatable)


@contextmanager
def _started(player: flat.PlayerConfiguration, port: int) -> Iterator[Popen[Any]]:
    """Start a player's bot as a user does."""
    bot = player.variety
    policy = "chaser" if bot.name == "Chaser" else POLICY
    env = os.environ | {SEED_VARIABLE: str(_SEED), "RLBOT_AGENT_ID": bot.agent_id}
    env["RLBOT_SERVER_PORT"] = str(port)
    with child([sys.executable, "-P", "-m", "rlgym_bridge.live", policy], env=env, stderr=DEVNULL) as process:
        yield process


def _pause(process: Popen[Any], seconds: float) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGCONT)


def run_case(name: str, repeats: int, seconds: int, busy: int) -> bool:
    """Play a case `repeats` times and print a row; return whether what differs is named."""
    case = CASES[name]
    first: Played | None = None
    equal, named, unnamed = 0, set[str](), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(repeats):
            with busy_processes(busy if number else 0):
                if case.recorded and number % 3 != 2:
                    played = play_recorded(case, seconds, Path(folder, f"{number}.mcap"))
                else:
                    played = play_here(case, seconds, number)
            named.update(played.unrepeatable)
            if first is None:
                first = played
                continue
            where = compare(first, played)
            equal += where is None
            if where is not None and not (first.unrepeatable or played.unrepeatable):
                unnamed.append(where)
    assert first is not None
    reasons = "; ".join(sorted(named)) or "nothing"
    row = [name, f"{len(first.packets):,}", f"{equal} of {repeats - 1}", reasons, ", ".join(unnamed) or "-"]
    print("| " + " | ".join(row) + " |", flush=True)
    return not unnamed


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the cases; return 1 where a match differs without a reason in its result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--repeats", type=int, default=3, help="matches of each case (default: 3)")
    parser.add_argument("--seconds", type=int, default=60, help="playing time of a match (default: 60)")
    parser.add_argument("--busy", action="store_true", help="play beside busy processes")
    options = parser.parse_args(arguments)
    names = options.cases or list(CASES)
    if unknown := [name for name in names if name not in CASES]:
        parser.error(f"unknown cases {unknown}, expected some of {list(CASES)}")
    busy = 2 * (os.cpu_count() or 1) if options.busy else 0
    print("| case | packets | equal to the first | named | differs without a reason |\n|---|---|---|---|---|")
    good = [run_case(name, options.repeats, options.seconds, busy) for name in names]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
