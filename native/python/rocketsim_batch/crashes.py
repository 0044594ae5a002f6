"""Write a small file for each panic of a match, which `rocketsim_batch.replay` plays again."""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from rocketsim_batch import _native

MOST_FILES = 20
"""Files that the folder holds at most; older ones are deleted."""

Group = tuple[_native.Matches, "np.ndarray | Mapping[int, np.ndarray]", int | None]
"""Matches, their rows as the call began, and its ticks; None where the call was `put`."""


def write_crashes(error: _native.MatchError, groups: Sequence[Group], folder: Path | None) -> None:
    """Write a file for each match that panicked in a call; a folder that cannot be written is logged.

    Args:
        error: What the call raised. Where it only refuses matches that were dead before, nothing is written.
        groups: The groups of the call.
        folder: Where the files go; None writes none.
    """
    if folder is None or not str(error.args[0]).startswith("RocketSim panicked"):
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for number, group in zip(error.args[1], error.args[2], strict=True):
            matches, rows, ticks = groups[group]
            text = json.dumps(_describe(matches, number, rows[number], ticks))
            Path(folder, f"crash-{time.time_ns()}-{number}.json").write_text(text, encoding="utf-8")
        for old in sorted(Path(folder).glob("crash-*.json"))[:-MOST_FILES]:
            old.unlink(missing_ok=True)
    except OSError as problem:
        logging.getLogger("rocketsim_batch").warning("The panic left no file in %s: %s", folder, problem)


def _describe(matches: _native.Matches, number: int, row: np.ndarray, ticks: int | None) -> dict[str, object]:
    layout = matches.layout
    seed, simulated, controls = matches.latest_step(number)
    return {
        "version": _native.VERSION,
        "source_hash": _native.SOURCE_HASH,
        "message": matches.dead()[number],
        "match": number,
        "seed": seed,
        "team_sizes": [layout.blue, layout.orange],
        "layout": {
            "size": layout.size,
            "car_start": layout.car_start,
            "car_stride": layout.car_stride,
            "pads": layout.pads,
            "fields": {name: column for name, (column, _) in layout.fields.items()},
        },
        "mutators": matches.mutators(number),
        "state_bits": row.view(
            np.uint32
        ).tolist(),  # as the call began; bits, since a frame may look like NaN
        "ticks": ticks,
        "simulated": None if ticks is None else simulated,
        "controls": None if ticks is None else controls.tolist(),  # (cars, simulated + 1, 8)
    }
