"""Write a small file for each panic of a match, which `rocketsim_batch.replay` plays again."""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import rocketsim_batch
from rocketsim_batch._native import SOURCE_HASH, VERSION, Layout

MOST_FILES = 20
"""Files that the folder holds at most; older ones are deleted."""


def write(reports: Sequence[tuple[int, Mapping[str, object]]]) -> None:
    """Write a file for each report; a folder that cannot be written is logged.

    The compiled module calls this wherever a match panics.

    Args:
        reports: The match's number, and what a replay needs: the fields of `Report` in `src/panics.rs`.
    """
    if rocketsim_batch.crash_folder is None:
        return
    folder = Path(rocketsim_batch.crash_folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, report in reports:
            text = json.dumps({"match": number, **_describe(report)})
            Path(folder, f"crash-{time.time_ns()}-{number}.json").write_text(text, encoding="utf-8")
        for old in sorted(folder.glob("crash-*.json"))[:-MOST_FILES]:
            old.unlink(missing_ok=True)
    except OSError as problem:
        logging.getLogger("rocketsim_batch").warning("The panic left no file in %s: %s", folder, problem)


def _describe(report: Mapping[str, object]) -> dict[str, object]:
    layout = report["layout"]
    assert isinstance(layout, Layout)
    return {
        "version": VERSION,
        "source_hash": SOURCE_HASH,
        **report,
        "team_sizes": [layout.blue, layout.orange],
        "layout": {
            "size": layout.size,
            "car_start": layout.car_start,
            "car_stride": layout.car_stride,
            "pads": layout.pads,
            "fields": {name: column for name, (column, _) in layout.fields.items()},
        },
    }
