"""Count what `compare` claims of clean matches and tables: `python -m tools.false_alarms 1 20`."""

import sys
from collections.abc import Iterator, Sequence

from rlgym_bridge.compare.comparison import compare_recordings
from tests.support.fault_matches import clean
from tools.planted import interval


def alarms(first: int, last: int) -> Iterator[tuple[str, list[str]]]:
    """Yield a text about the recording of each seed, and the claims for which nothing was planted.

    Lags, lost rows and clocks that a recording has may be named.
    """
    for seed in range(first, last + 1):
        planted = clean(seed)
        try:
            found = compare_recordings(planted.recording)
        except ValueError as error:
            yield f"seed {seed} | {planted.text}", [f"refused: {error}"]
            continue
        claims = [each.phrase for each in found.causes if not planted.is_harmless(each.name)]
        claims += [f"untried: {', '.join(each.situations)}" for each in found.untried]
        claims += [gap.text for gap in found.gaps if not planted.is_harmless(gap.name)]
        yield f"seed {seed} | {planted.text}", claims


def main(words: Sequence[str]) -> None:
    """Print each recording with its false claims, and how many have one."""
    found = []
    for text, claims in alarms(int(words[0]), int(words[1])):
        found.append(bool(claims))
        print(f"{text} | {'; '.join(claims) or 'no alarm'}", flush=True)
    low, high = interval(sum(found), len(found))
    print(f"{sum(found)} of {len(found)} recordings with an alarm ({100 * low:.1f} to {100 * high:.1f} %)")


if __name__ == "__main__":
    main(sys.argv[1:])
