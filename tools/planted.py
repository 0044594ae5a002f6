"""Plant faults by seeds and print what `compare` says of them: `python -m tools.planted 1 20`.

Names of kinds behind the two numbers have each seed plant these in turn; `aside` stands for all kinds of
`KINDS_ASIDE`.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Final

from rlgym_bridge.compare.comparison import compare_recordings
from tests.support.fault_matches import Planted, plant

OUTCOMES: Final = ("right", "among others", "untried", "nothing", "wrong")
_SCORE: Final = 1.96  # of a normal distribution, for intervals of 95 %


def outcomes(first: int, last: int, kinds: Sequence[str] = ()) -> Iterator[tuple[Planted, str, list[str]]]:
    """Yield what each seed plants, the outcome, and what `compare` says; a refusal is "wrong"."""
    aside = list(kinds) == ["aside"]
    for seed in range(first, last + 1):
        kind = kinds[(seed - first) % len(kinds)] if kinds and not aside else None
        planted = plant(seed, kind, aside=aside)
        try:
            outcome, said = planted.outcome(compare_recordings(planted.recording))
        except ValueError as error:
            outcome, said = "wrong", [f"refused: {error}"]
        yield planted, outcome, said


def interval(count: int, total: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % of a share of which `count` of `total` were counted."""
    share, square = count / total, _SCORE**2 / total
    middle, half = share + square / 2, _SCORE * sqrt(share * (1 - share) / total + square / (4 * total))
    return (middle - half) / (1 + square), (middle + half) / (1 + square)


def table(counts: Mapping[tuple[str, bool], Counter[str]]) -> str:
    """Return outcomes of kinds as a table, with sums of the tellable and the untellable ones."""
    sums = {name: Counter[str]() for name in ("all tellable", "all untellable")}
    for (_, tellable), count in counts.items():
        sums["all tellable" if tellable else "all untellable"] += count
    rows = [(kind, count) for (kind, _), count in sorted(counts.items())]
    rows += [row for row in sums.items() if row[1]]
    lines = [" | ".join([f"{'kind':22}", *(f"{name:>18}" for name in OUTCOMES)])]
    for kind, count in rows:
        cells = []
        for name in OUTCOMES:
            low, high = interval(count[name], count.total())
            cells.append(f"{count[name]:>4} ({100 * low:3.0f}..{100 * high:3.0f} %)")
        lines.append(" | ".join([f"{kind:22}", *cells]))
    return "\n".join(lines)


def main(words: Sequence[str]) -> None:
    """Print a line for each seed, and a table of outcomes."""
    counts: dict[tuple[str, bool], Counter[str]] = {}
    began = time.monotonic()
    for planted, outcome, said in outcomes(int(words[0]), int(words[1]), words[2:]):
        counts.setdefault((planted.kind, planted.tellable), Counter())[outcome] += 1
        took, began = time.monotonic() - began, time.monotonic()
        what = "; ".join(said) or "no gap"
        print(f"{planted.recording.source} | {planted.text} | {outcome} | {what} | {took:.0f} s", flush=True)
    print(table(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
