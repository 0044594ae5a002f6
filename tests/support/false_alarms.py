"""Count what `compare` claims of clean matches and tables: `python -m tests.support.false_alarms 1 20`.

A third number is that of windows; after it come the rules that they are played by.
"""

import sys
from collections.abc import Iterator, Sequence

from rlgym_bridge.compare.comparison import compare_recordings
from tests.support.fault_matches import plant

_CALLED_FOR = ("input latency", "clock")  # what clean recordings have by design


def alarms(
    first: int, last: int, windows: int = 240, rules: str = "rocketsim"
) -> Iterator[tuple[int, str, list[str]]]:
    """Yield each seed with a text about its recording, and the claims that nothing was planted for."""
    for seed in range(first, last + 1):
        planted = plant(seed, "nothing", cars=2 if seed % 2 else 4, seconds=32, rules=rules)
        found = compare_recordings(planted.recording, windows=windows)
        claims = [gap.text for gap in found.gaps if gap.name not in _CALLED_FOR]
        claims += [f"{row.name} is not explained" for row in found.unexplained]
        yield seed, planted.text, claims


def main(words: Sequence[str]) -> None:
    """Print each recording with a false claim, and how many there are."""
    count = total = 0
    for seed, text, claims in alarms(*map(int, words[:3]), *words[3:]):
        total += 1
        count += bool(claims)
        print(f"{seed} | {text} | {'; '.join(claims) or 'no alarm'}", flush=True)
    print(f"{count} of {total} recordings with an alarm")


if __name__ == "__main__":
    main(sys.argv[1:])
