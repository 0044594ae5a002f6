"""Plant faults by seeds and print what `compare` names: `python -m tests.support.planted 1 20`.

With names of kinds behind the two numbers, each seed plants these in turn.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from rlgym_bridge.compare.comparison import compare_recordings
from tests.support.fault_matches import plant


def rows(first: int, last: int, kinds: Sequence[str] = (), windows: int = 240) -> Iterator[tuple[str, str]]:
    """Yield the outcome of each seed, and a line about it."""
    for seed in range(first, last + 1):
        began = time.monotonic()
        planted = plant(seed, kinds[(seed - first) % len(kinds)] if kinds else None)
        try:
            found = compare_recordings(planted.recording, windows=windows)
        except ValueError as error:
            yield "wrong", f"{seed} | {planted.text} | refused | {error}"
            continue
        outcome, named = planted.outcome(found)
        others = [f"{each.phrase} (or {', '.join(each.alike)})" for each in found.mechanisms if each.alike]
        took = f"{time.monotonic() - began:.0f} s"
        yield outcome, " | ".join([str(seed), planted.text, outcome, "; ".join(named + others), took])


def main(words: Sequence[str]) -> None:
    """Print a table of planted against named, and the counts of outcomes."""
    counts: Counter[str] = Counter()
    for outcome, line in rows(int(words[0]), int(words[1]), words[2:]):
        counts[outcome] += 1
        print(line, flush=True)
    print(", ".join(f"{outcome}: {count}" for outcome, count in counts.most_common()))


if __name__ == "__main__":
    main(sys.argv[1:])
