"""Play the file that a panic left once more: `python -m rocketsim_batch.replay FILE`."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import rocketsim_batch as rs


def replay(file: str | Path) -> tuple[bool, str]:
    """Play a crash file once more.

    Args:
        file: JSON, as `rocketsim_batch.crash_folder` has them.

    Returns:
        Whether the match panicked again, and a sentence that says what happened.

    Raises:
        ValueError: It is no such file, or has values that no panic leaves.
        FileNotFoundError: It is not there, or the collision meshes are not.
    """
    text = Path(file).read_bytes()
    rs.load_meshes()
    try:
        return _play(json.loads(text))
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{file} is no file of a panic, expected one of {rs.crash_folder}: {error!r}"
        ) from error


def _play(crash: dict[str, Any]) -> tuple[bool, str]:
    own = _layout(crash)
    call, seeds, before = crash["call"], tuple(crash["seeds"]), crash["message"]
    state, given = (
        np.array([crash[name]], np.int64).astype(np.uint32).view(np.float32)
        for name in ("state_bits", "given_bits")
    )
    ticks, cars = len(crash["controls"]), own.blue + own.orange
    controls = np.array(crash["controls"], np.float32).reshape(1, ticks, cars, 8).swapaxes(1, 2)
    matches, buffer = rs.Matches(1, own), np.zeros((1, own.size), np.float32)
    matches.set_mutators(0, crash["mutators"])
    same = crash["source_hash"] == rs.SOURCE_HASH
    build = "" if same else f" (version {crash['version']}, another build)"
    arguments = crash["arguments"]
    moves = np.array([arguments], bool)
    calls: dict[str, Callable[[], object]] = {
        "step": lambda: matches.play(buffer, np.ascontiguousarray(controls)),
        "put": lambda: matches.put([0], given, buffer),
        "nudge": lambda: matches.nudge(
            [0], given, buffer, ball=bool(moves[0, 0]), cars=np.ascontiguousarray(moves[:, 1:])
        ),
        "kickoff": lambda: matches.kickoff([0], buffer),
        "clone_into": lambda: matches.clone_into([0], [0], buffer),
        "forecast_ball": lambda: matches.forecast_ball([0], *arguments),
        "forecast": lambda: matches.forecast([0], np.ascontiguousarray(controls), buffer.copy()),
        "respawn": lambda: matches.respawn(0, *arguments, buffer),
        "demolish": lambda: matches.demolish(0, *arguments, buffer),
    }
    again = calls[call]
    try:
        if call != "put":
            matches.put([0], state, buffer)
        matches.set_seeds(0, seeds)
        again()
    except rs.MatchError as error:
        return True, f"It panicked again: {error.args[0]}. Before{build}: {before}"
    what = f"within {ticks} ticks" if call == "step" else f"in {call}"
    return False, f"It did not panic {what}. Before{build}: {before}"


def _layout(crash: dict[str, Any]) -> rs.Layout:
    layout = crash["layout"]
    match_columns: dict[str, int] = {}
    car_columns: dict[str, int] = {}
    for name, column in layout["fields"].items():
        of = car_columns if name.startswith("car_") else match_columns
        of[name.removeprefix("car_")] = column
    return rs.Layout(
        *crash["team_sizes"],
        match_columns=match_columns,
        car_columns=car_columns,
        **{name: layout[name] for name in ("size", "car_start", "car_stride", "pads")},
    )


def main(arguments: Sequence[str]) -> int:
    """Play the named file; return 0 if it panicked again, 1 if not, 2 if it is no such file."""
    if len(arguments) != 1:
        print("usage: python -m rocketsim_batch.replay FILE", file=sys.stderr)
        return 2
    try:
        again, words = replay(arguments[0])
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(words)
    return 0 if again else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
