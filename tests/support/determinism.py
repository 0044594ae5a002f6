"""Play equal lockstep matches twice and compare their recordings.

`python -m tests.support.determinism [--pairs N] [--load]` plays 1v1 (shipped policy against Chaser) and 3v3
(Chaser). With `--load` the second match of a pair is played beside busy processes, more of them than cores.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from rlgym_bridge.recording.mcap.mcap_reader import Contents, read_contents
from tests.support.processes import child, run_to_end

POLICY: Final = str(Path(__file__).parents[2] / "bot" / "policy")
TEAMS: Final = {"1v1": ([POLICY], ["chaser"]), "3v3": (["chaser"] * 3, ["chaser"] * 3)}
_MATCH_SECONDS: Final = 240.0
_BUSY: Final = "import time\nend = time.monotonic() + 240\nwhile time.monotonic() < end: pass"


def first_difference(first: Contents, second: Contents) -> str | None:
    """Return where two recordings differ first but for arrival times; None where they are equal.

    Args:
        first: A recording of a lockstep match.
        second: One of an equal match. Within a tick the bots may answer in any order.
    """
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
        pairs = zip(ours, theirs, strict=False)
        place = next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs)))
        found.append((min(each[place][0] for each in (ours, theirs) if place < len(each)), topic))
    return None if not found else "tick {:,}, topic {}".format(*min(found))


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep `count` processes busy until the block is left."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(child([sys.executable, "-c", _BUSY]))
        yield


def play(file: Path, size: str, seconds: int) -> Contents:
    """Play a recorded lockstep match of `seconds` and return its recording."""
    blue, orange = TEAMS[size]
    words = ["match", "--blue", *blue, "--orange", *orange, "--pace", "lockstep", "--seconds", str(seconds)]
    words += ["--max-overtime", "0", "--seed", "3", "-q", "--record", str(file)]
    command = [sys.executable, "-m", "rlgym_bridge.cli", *words]
    run_to_end(command, seconds=_MATCH_SECONDS, check=True, cwd=file.parent)
    return read_contents(file)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare pairs of matches; return 1 where two differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args(arguments)
    differ = 0
    for size in TEAMS:
        for number in range(options.pairs):
            with tempfile.TemporaryDirectory() as folder:
                first = play(Path(folder, "a.mcap"), size, options.seconds)
                with busy_processes(2 * (os.cpu_count() or 1) if options.load else 0):
                    second = play(Path(folder, "b.mcap"), size, options.seconds)
            where = first_difference(first, second)
            differ += where is not None
            named = second.about.get("unrepeatable") or "nothing"
            print(f"{size} {number}: {where or 'equal'}; named: {named}", flush=True)
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
