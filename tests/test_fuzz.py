"""The fuzzers find a reader that fails, and every reader takes what it is fuzzed from."""

from pathlib import Path

import pytest

from tools.fuzz import targets
from tools.fuzz.engines import by_chance
from tools.fuzz.targets import TARGETS, FuzzTarget

SECONDS = 20.0


def test_a_reader_that_fails_is_found_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def read(data: bytes) -> None:
        if b"4" in data or b"\0" in data:
            raise KeyError("4")
        raise ValueError("refused in good order")

    planted = FuzzTarget("planted", read, lambda: [b"1,2,3"])
    monkeypatch.setattr(targets, "TARGETS", [planted])
    assert by_chance("planted", SECONDS, 1, tmp_path) == 1
    (text,) = tmp_path.glob("*.txt")
    kept = text.with_suffix("").read_bytes()
    assert (b"4" in kept or b"\0" in kept) and "KeyError" in text.read_text()


@pytest.mark.parametrize(
    "one", [one for one in TARGETS if one.name != "checkpoint"], ids=lambda one: one.name
)
@pytest.mark.odd_packets("a client puts bodies elsewhere in the countdown")
def test_a_reader_takes_its_seeds_and_refuses_nothing_else(one: FuzzTarget) -> None:
    for data in one.seeds():
        one.read(data)
    targets.run_one(one, b"")
