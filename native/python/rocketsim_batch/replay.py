"""Play the file that a panic left once more: `python -m rocketsim_batch.replay FILE`."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import rocketsim_batch as rs


def replay(file: str | Path) -> tuple[bool, str]:
    """Play a crash file once more.

    Args:
        file: JSON, as `rocketsim_batch.crash_folder` has them.

    Returns:
        Whether the match panicked again, and a sentence that says what happened.

    Raises:
        ValueError: It is no such file.
    """
    try:
        crash = json.loads(Path(file).read_text(encoding="utf-8"))
        layout = crash["layout"]
        match_columns: dict[str, int] = {}
        car_columns: dict[str, int] = {}
        for name, column in layout["fields"].items():
            of = car_columns if name.startswith("car_") else match_columns
            of[name.removeprefix("car_")] = column
        own = rs.Layout(
            *crash["team_sizes"],
            match_columns=match_columns,
            car_columns=car_columns,
            **{name: layout[name] for name in ("size", "car_start", "car_stride", "pads")},
        )
        call, seeds, before = crash["call"], tuple(crash["seeds"]), crash["message"]
        state, given = (
            np.array([crash[name]], np.uint32).view(np.float32) for name in ("state_bits", "given_bits")
        )
        arguments, mutators = crash["arguments"], crash["mutators"]
        ticks, cars = len(crash["controls"]), own.blue + own.orange
        controls = np.array(crash["controls"], np.float32).reshape(1, ticks, cars, 8).swapaxes(1, 2)
    except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{file} is no file of a panic: {error!r}") from error
    rs.load_meshes()
    matches, buffer = rs.Matches(1, own), np.zeros((1, own.size), np.float32)
    matches.set_mutators(0, mutators)
    same = crash["source_hash"] == rs.SOURCE_HASH
    build = "" if same else f" (version {crash['version']}, another build)"
    try:
        if call != "put":
            matches.put([0], state, buffer)
        matches.set_seeds(0, seeds)
        if call == "step":
            matches.play(buffer, np.ascontiguousarray(controls))
        elif call == "put":
            matches.put([0], given, buffer)
        elif call == "nudge":
            moves = np.array([arguments], bool)
            matches.nudge([0], given, buffer, ball=bool(moves[0, 0]), cars=np.ascontiguousarray(moves[:, 1:]))
        elif call == "kickoff":
            matches.kickoff([0], buffer)
        elif call == "clone_into":
            matches.clone_into([0], [0], buffer)
        elif call == "forecast_ball":
            matches.forecast_ball([0], *arguments)
        else:  # respawn and demolish
            getattr(matches, call)(0, *arguments, buffer)
    except rs.MatchError as error:
        return True, f"It panicked again: {error.args[0]}. Before{build}: {before}"
    what = f"within {ticks} ticks" if call == "step" else f"in {call}"
    return False, f"It did not panic {what}. Before{build}: {before}"


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
