"""Matches of ours, played as fast as they go and recorded, for tests to read."""

from contextlib import chdir
from pathlib import Path
from typing import Final

from rlgym_bridge.cli import main

POLICY: Final = str(Path(__file__).parents[2] / "bot" / "policy")


def record(
    file: Path, *words: str, blue: str = POLICY, orange: str = "chaser", seconds: int = 8, seed: int = 0
) -> Path:
    """Play a match, 1v1 and without overtime, and return its recording; `words` are further options."""
    match = ["match", "--blue", blue, "--orange", orange, "--pace", "lockstep", "--max-overtime", "0", "-q"]
    ends = ["--seconds", str(seconds), "--seed", str(seed), "--record", str(file)]
    with chdir(file.parent):  # bots log there
        assert main([*match, *ends, *words]) == 0
    return file
