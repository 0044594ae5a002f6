"""`python -m tools.rlgym_table`: check all of `rlgym.api`, and write docs/measured/rlgym.md."""

import datetime
import platform
import sys
import traceback
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from tests.support.rlgym_members import CHECKS, members
from tests.support.rlgym_worlds import WORLDS, world_of

FILE = Path(__file__).parents[1] / "docs" / "measured" / "rlgym.md"
Results = Mapping[tuple[str, str], bool]


def rows(results: Results | None) -> list[str]:
    """Return a line for each member."""
    lines = []
    for member in members():
        check = CHECKS[member]
        said = {True: "yes", False: "**no**", None: ""}
        cells = [said[None if results is None else results[check.__name__, world]] for world in WORLDS]
        lines.append(f"| `{member}` | {check.__doc__} | {' | '.join(cells)} |")
    return lines


def text(results: Results | None) -> str:
    """Return the page."""
    packages = ("rlgym-api", "rlgym-rocket-league", "rocketsim", "rlbot")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    lines = [
        "# RLGym's API over the simulator, over a match, and with RLGym's own engine",
        "",
        f"Made by `python -m tools.rlgym_table` on {datetime.date.today().isoformat()} "
        f"with {versions}, Python {platform.python_version()}.",
        "",
        "Every public member of `rlgym.api`, checked in an environment over `SimEngine`, over `LiveEngine` "
        "on the match server in lockstep, and over RLGym's `RocketSimEngine`. Components are passed on "
        "through classes that nobody here knows. The checks are in `tests/support/rlgym_members.py`.",
        "",
        "| member | what is checked | " + " | ".join(WORLDS) + " |",
        "|---|---|" + "---|" * len(WORLDS),
        *rows(results),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Run all checks; 1 where one fails."""
    results = {}
    for check in dict.fromkeys(CHECKS.values()):
        for world in WORLDS:
            try:
                with world_of(world) as one:
                    check(one)
                results[check.__name__, world] = True
            except Exception:
                traceback.print_exc()
                results[check.__name__, world] = False
    FILE.write_text(text(results), encoding="utf-8")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
