"""`python -m tools.physics [--write lab/physics.md]`: both simulators beside the real game."""

import argparse
import datetime
import importlib.metadata
from pathlib import Path
from typing import Final

from rlgym_bridge.sim.simulator import ROCKETSIM3, check_simulator
from tests.support.captures import load_capture
from tests.support.free_runs import capture_files
from tests.support.real_data import REAL_DATA
from tools.physics.capture_tables import describe_captures
from tools.physics.window_tables import CAPTURES, describe_windows

_SITUATIONS: Final = (
    "",
    "Below, windows begin all along the captures, as in [compare](../docs/gap/compare.md). A cell holds",
    "p50 / p90 of the error of position in uu, then of velocity in uu/s, and how many windows there were.",
    "The capture without the pitch of its dodge is left out. What this means for training is in",
    "[a text for RLGym's makers](game-physics.md#a-text-for-rlgyms-makers).",
)
_OLDER: Final = (
    "## Older recordings",
    "",
    "Here clocks have to be fitted, and ticks by which inputs act late, for each simulator by itself.",
    "The cars of replays are left out, because a replay does not hold all of their inputs. Not all errors",
    "are of the physics:",
    "the balls of 2018 show no cut of velocities as today's do, the rows of replays say no exact tick,",
    "drives and turns hang on the ticks by which inputs act late, and speeds at the end of turns were not",
    "measured in all directions. Cars on the floor of 2018 show 8.3 uu/s downwards that move them nowhere.",
    "The flight of 2018 boosts without throttle, where rocketsim2 pushes with 992 uu/s² in place of 1,058.",
)


def main() -> None:
    """Write the page, or print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="write the page to this file")
    options = parser.parse_args()
    check_simulator(ROCKETSIM3)
    files = capture_files()
    if not files:
        raise SystemExit(
            f"no captures in {REAL_DATA / 'game-2026'}, expected *.csv; "
            "RLGYM_BRIDGE_REAL_DATA says where recordings of the real game are"
        )
    captures = [load_capture(path) for path in files]
    older = [*_OLDER, *describe_windows()]
    situations = [*_SITUATIONS, *describe_windows([CAPTURES])]
    text = "\n".join([*_heading(), *describe_captures(captures), *situations, "", *older]) + "\n"
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        print(text)


def _heading() -> list[str]:
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("rocketsim", "rocketsim-batch")
    )
    return [
        "# Both simulators beside the real game",
        "",
        f"Made by `make physics` on {datetime.date.today().isoformat()} with {versions}.",
        "Recordings of the real game are not part of this project, so the command needs a folder of them.",
        "",
        "## Captures of 2026",
        "",
        "Each capture has a row a tick (120 Hz), with the states of the bodies and the controls of the cars.",
        "The first row is put, the bodies are nudged to each of the next three, and from there on the",
        "simulator runs free: every tick is driven by the controls recorded before it. Nothing is fitted.",
        "A cell holds the error of position in uu and of velocity in uu/s. The game itself rounds",
        "positions to 0.01 uu and cuts velocities to 0.01 uu/s.",
        "",
        "¹ The pitch of its dodge was not recorded: -1 is put in on that tick. It is not among the targets.",
    ]


if __name__ == "__main__":
    main()
